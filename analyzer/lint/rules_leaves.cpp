// Rules about leaves of an aten program that a capture cannot hold: host reads, shapes that depend
// on data, copies between devices.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/lint/rule.h"
#include "analyzer/program/regions.h"
#include "meaning/torch_operators.h"

namespace acltape::analyzer::lint {
namespace {

// False for reasons that do not refuse a capture. Copies have a rule of their own.
bool EndsCapture(std::string_view reason) {
  constexpr std::string_view kOthers[] = {kCopyBarrier,   kOtherWorkBarrier,
                                          kHiddenBarrier, kChangingBarrier,
                                          kUntoldBarrier, kDeviceCollectiveBarrier};
  return std::find(std::begin(kOthers), std::end(kOthers), reason) == std::end(kOthers);
}

// Reports lines that read between executions of graphs again and again. A read once, such as that
// of the final result, holds up nothing.
void ReportReadsBetweenExecutions(const LintContext& context, Found& found) {
  const Work& work = context.work;
  const Stretch& stretch = context.stretch();
  std::vector<int64_t> executions;  // call ids
  if (context.options.graphs != nullptr) {
    for (const executions::Turn& turn : context.options.graphs->turns) {
      if (turn.graph >= 0) executions.push_back(turn.call_id);
    }
  }
  struct Reads {
    std::vector<size_t> entries;
    std::set<std::ptrdiff_t> between;  // numbers of executions before the reads
  };
  std::map<int32_t, Reads> lines;
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (work.form(i).kind != LeafKind::kHostRead) continue;
    Reads& reads = lines[context.places.Of(i)];
    reads.entries.push_back(i);
    const auto next = std::upper_bound(executions.begin(), executions.end(), work.calls[i].call_id);
    reads.between.insert(next - executions.begin());
  }
  for (const auto& [place, reads] : lines) {
    if (reads.between.size() < 2) continue;
    for (const size_t read : reads.entries) {
      Found::Options options;
      options.merged = true;
      found.Add(static_cast<int64_t>(read),
                Named(read) +
                    " reads a tensor of the device on the host: the host waits there for the work "
                    "before it, and no graph is launched ahead",
                options);
    }
  }
}

}  // namespace

void CheckHostReadLeaf(const LintContext& context, Found& found) {
  if (context.options.around_captures) return;
  const Work& work = context.work;
  const Stretch& stretch = context.stretch();
  Barriers barriers(work);
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkForm& form = work.form(i);
    if (!form.active()) continue;
    const std::string reason = barriers.ReasonOf(i);
    if (reason.empty() || !EndsCapture(reason)) continue;
    const bool waits = reason == kWaitBarrier, unknown = waits || reason == kUnknownBarrier;
    const std::string effect =
        waits     ? ", and the host waits for a stream in it"
        : unknown ? ", and nobody knows what it does: the host may wait in it for the capturing "
                    "stream"
                  : " (" + reason + "): the host would wait for the capturing stream";
    Found::Options options;
    options.subject = unknown ? kUnknownBarrier : reason;
    found.Add(static_cast<int64_t>(i), Named(i) + " lies inside the work" + effect, options);
  }
}

void CheckReadAtStepEdge(const LintContext& context, Found& found) {
  const Work& work = context.work;
  const Stretch& stretch = context.stretch();
  if (context.options.around_captures) {
    ReportReadsBetweenExecutions(context, found);
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
