// The rule about memory that nothing wrote, for programs on the ACL interface.
#include <algorithm>
#include <functional>
#include <map>

#include "analyzer/acl/acl_order.h"
#include "analyzer/calls/byte_set.h"
#include "analyzer/executions/unwritten_memory.h"
#include "analyzer/lint/ordered_walk.h"
#include "analyzer/lint/rule.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;

bool HasWaits(const Work& work) {
  return std::any_of(work.forms.begin(), work.forms.end(), [](const WorkForm& form) {
    return form.acl_kind() == K::kValueWait || form.acl_kind() == K::kNotifyWait;
  });
}

// True if a word for which streams wait is written by a copy or a kernel, whose value is not known.
bool MissesAValue(const Work& work) {
  std::map<int64_t, ByteSet> words;  // by buffer
  for (size_t i = 0; i < work.size(); ++i) {
    if (work.form(i).acl_kind() != K::kValueWait) continue;
    work.VisitAccesses(
        i, [&](const ByteAccess& access) { words[access.buffer].Add(access.first, access.end); });
  }
  bool misses = false;
  for (size_t i = 0; i < work.size() && !misses && !words.empty(); ++i) {
    if (ValueLeftBy(work.form(i).acl_kind(), 0)) continue;
    work.VisitAccesses(i, [&](const ByteAccess& access) {
      const auto word = words.find(access.buffer);
      if (!access.write || word == words.end()) return;
      misses = misses || !word->second.Within(access.first, access.end).empty();
    });
  }
  return misses;
}

// Visits the calls in the order of issue. Where streams wait for values or notifies, which may be
// set after the wait was issued, the calls come in the order that these waits leave.
void VisitInOrder(const Work& work, const std::function<void(size_t)>& visit) {
  if (HasWaits(work)) {
    streams::RaceChecker checker;
    OrderedWalk(work, checker, visit).CallAllOutsideOfCaptures();
    return;
  }
  for (size_t i = 0; i < work.size(); ++i) {
    const WorkCall& call = work.calls[i];
    const bool runs = call.status == 0 && call.model_id == 0 && work.form(i).function != nullptr;
    if (runs) visit(i);
  }
}

}  // namespace

void FindUnwritten(const LintContext& context, Found& found) {
  const Work& work = context.work;
  if (MissesAValue(work)) return;  // when a stream went on is not known
  const auto in_order = [&](const std::function<void(size_t)>& visit) {
    VisitInOrder(work, visit);
  };
  for (const executions::UndefinedRead& read :
       executions::FindUnwrittenReads(*context.options.graphs, in_order)) {
    static constexpr Codes kNoCodes = {};
    Found::Options options;
    options.other = read.allocation;
    options.codes = &kNoCodes;
    options.of_graphs = true;
    options.merged = true;
    std::string message = Named(read.reader) + " reads " + std::to_string(read.elements) + " of " +
                          Counted(static_cast<size_t>(read.of_elements), "element") +
                          " that nothing has written, in the memory of " + Named(read.allocation);
    if (read.reader == read.host_read) {
      message = Named(read.reader) + " brings " +
                Counted(static_cast<size_t>(read.elements), "byte") +
                " to the host that nothing has written, in the memory of " + Named(read.allocation);
    } else {
      message += "; a value made of them comes to the host in " + Named(read.host_read);
    }
    found.Add(read.reader, std::move(message), options);
  }
}

}  // namespace acltape::analyzer::lint
