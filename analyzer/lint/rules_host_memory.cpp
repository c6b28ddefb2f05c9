// The rule about memory of the host that a copy reads or writes while the host uses it.
#include "analyzer/lint/host_memory_use.h"
#include "analyzer/lint/rewritten_sources.h"
#include "analyzer/lint/rule.h"

namespace acltape::analyzer::lint {
namespace {

Found::Options OfHostMemory() {
  static constexpr Codes kNoCodes = {};
  Found::Options options;
  options.codes = &kNoCodes;
  options.of_graphs = true;
  options.merged = true;
  return options;
}

// Calls of the interface alone tell nothing of what the host does with its memory but the contents
// that copies found there.
void FindRewritten(const LintContext& context, Found& found) {
  for (const RewrittenSource& rewritten : FindRewrittenSources(context.work)) {
    Found::Options options = OfHostMemory();
    options.other = rewritten.next;
    const bool graph = IsExecution(context.work.form(rewritten.copy).acl_kind());
    found.Add(rewritten.copy,
              Named(rewritten.copy) + (graph ? " executes a copy of" : " copies") +
                  " memory of the host that held something else when " + Named(rewritten.next) +
                  " copied it again: no wait of the host lies between the two, so the first copy "
                  "may still have to read",
              options);
  }
}

}  // namespace

void CheckHostMemory(const LintContext& context, Found& found) {
  if (context.work.dialect == Dialect::kAcl && context.options.graphs != nullptr) {
    FindRewritten(context, found);
    return;
  }
  if (context.options.host_too == nullptr || context.options.graphs == nullptr) return;
  const Work& leaves = *context.options.host_too;
  const Work& calls = *context.options.graphs->calls;
  const Places places(leaves);
  for (const HostMemoryUse& use : FindHostMemoryUses(leaves, calls)) {
    const int64_t copy = context.work.Find(leaves.calls[use.copy].call_id);
    if (copy < 0) continue;
    const std::string place = places.Text(use.use);
    const std::string user = leaves.Describe(use.use) + (place.empty() ? "" : " at " + place);
    Found::Options options = OfHostMemory();
    options.subject = place;
    const std::string of_copy = "the copy of " + Named(static_cast<size_t>(copy)) + " before it";
    std::string text =
        user + " reads memory of the host that " + of_copy + " may not have written yet";
    if (use.unseen) {
      text = "memory of the host that " + of_copy + " may still have to read had changed when " +
             user + " read it, though no operator wrote it (NumPy and the like write past PyTorch)";
    } else if (use.overwrites) {
      text = user + " writes the memory of the host that " + of_copy + " may still have to read";
    }
    found.Add(
        copy,
        text + " (" + calls.Describe(use.call) + "): no wait of the host lies between the two",
        options);
  }
}

}  // namespace acltape::analyzer::lint
