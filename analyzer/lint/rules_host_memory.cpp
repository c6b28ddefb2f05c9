// The rule about memory of the host that a copy reads or writes while the host uses it.
#include "analyzer/lint/host_memory_use.h"
#include "analyzer/lint/rule.h"

namespace acltape::analyzer::lint {

void CheckHostMemory(const LintContext& context, Found& found) {
  if (context.options.host_too == nullptr || context.options.graphs == nullptr) return;
  const Work& leaves = *context.options.host_too;
  const Work& calls = *context.options.graphs->calls;
  const Places places(leaves);
  for (const HostMemoryUse& use : FindHostMemoryUses(leaves, calls)) {
    const int64_t copy = context.work.Find(leaves.calls[use.copy].call_id);
    if (copy < 0) continue;
    const std::string place = places.Text(use.use);
    const std::string user = leaves.Describe(use.use) + (place.empty() ? "" : " at " + place);
    static constexpr Codes kNoCodes = {};
    Found::Options options;
    options.codes = &kNoCodes;
    options.of_graphs = true;
    options.merged = true;
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
