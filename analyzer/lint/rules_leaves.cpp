// Rules about leaves of an aten program that a capture cannot hold: host reads, shapes that depend
// on data, copies between devices.
#include <algorithm>

#include "analyzer/lint/rule.h"
#include "analyzer/program/regions.h"
#include "meaning/torch_operators.h"

namespace acltape::analyzer::lint {
void CheckHostReadLeaf(const LintContext& context, Found& found) {
  if (context.options.around_captures) return;
  const Work& work = context.work;
  const Stretch& stretch = context.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkForm& form = work.form(i);
    if (!form.active()) continue;
    const std::string reason = BarrierReason(work, i);
    if (reason.empty() || reason == kCopyBarrier) continue;  // copies have their own rule
    Found::Options options;
    options.subject = reason;
    found.Add(static_cast<int64_t>(i),
              Named(i) + " lies inside the work (" + reason +
                  "): the host would wait for the capturing stream",
              options);
  }
}

void CheckReadAtStepEdge(const LintContext& context, Found& found) {
  const Work& work = context.work;
  const Stretch& stretch = context.stretch();
  if (context.options.around_captures) {
    for (size_t i = stretch.first; i < stretch.end; ++i) {
      if (work.form(i).kind != LeafKind::kHostRead) continue;
      Found::Options options;
      options.merged = true;
      found.Add(static_cast<int64_t>(i),
                Named(i) +
                    " reads a tensor of the device on the host: the host waits there for the work "
                    "before it, and no graph is launched ahead",
                options);
    }
    return;
  }
  if (stretch.step < 0) return;
  const auto check = [&](size_t first, size_t end, const char* edge) {
    for (size_t i = first; i < end; ++i) {
      if (work.form(i).kind != LeafKind::kHostRead) continue;
      found.Add(static_cast<int64_t>(i),
                Named(i) + " lies at the step's " + edge +
                    ": a graph of the step can do without it, but the host waits there for the "
                    "work before it in each step");
    }
  };
  check(stretch.step_first, stretch.first, "begin");
  check(stretch.end, stretch.step_end, "end");
}

void CheckDeviceCopyLeaf(const LintContext& context, Found& found) {
  const Work& work = context.work;
  const Stretch& stretch = context.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkForm& form = work.form(i);
    if (form.kind != LeafKind::kKernel) continue;
    if (!meaning::TorchOperatorOf(form.op->name, form.op->overload).copies_between_devices)
      continue;
    // A non-blocking copy from pinned host memory is a task of the stream. A trace of this level
    // does not say whether the memory is pinned.
    const bool blocks = std::none_of(
        form.arguments->begin(), form.arguments->end(), [](const storage::ArgumentValue& argument) {
          return argument.name == "non_blocking" && argument.integer != 0;
        });
    int to = -1;
    int from = -1;
    work.VisitAccesses(i, [&](const ByteAccess& access) {
      (access.write ? to : from) = work.trace->GetBuffer(access.buffer).device;
    });
    if (!blocks || to < 0 || from < 0 || to == from) continue;
    found.Add(static_cast<int64_t>(i), Named(i) + " copies between device " + std::to_string(from) +
                                           " and device " + std::to_string(to) +
                                           " (0: the host) and waits for it");
  }
}

}  // namespace acltape::analyzer::lint
