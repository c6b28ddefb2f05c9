#include "analyzer/lint/stretch.h"

#include <algorithm>
#include <map>

#include "analyzer/calls/acl_uses.h"
#include "generated/meaning/interface_numbers.h"
#include "generated/meaning/parameter_positions.h"
#include "storage/error.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;

// True if a capture can hold the call beside operators. Stretches grow over such calls at both
// ends.
bool CanBeHeld(const Work& work, size_t call) {
  const K kind = work.form(call).acl_kind();
  if (kind == K::kNoEffect) return true;
  return IsStreamTask(kind) && !IsPageableCopy(work, call);
}

bool IsCore(const Work& work, size_t call) {
  const WorkForm& form = work.form(call);
  if (work.dialect == Dialect::kAcl) return form.acl_kind() == K::kOperator;
  return form.active() && form.kind != LeafKind::kHostRead;
}

// Shrinks [first, end) to its work. It becomes empty if there is no work.
void CutToWork(const Work& work, Stretch& stretch) {
  const size_t low = stretch.first;
  const size_t high = stretch.end;
  while (stretch.first < high && !IsCore(work, stretch.first)) ++stretch.first;
  while (stretch.end > stretch.first && !IsCore(work, stretch.end - 1)) --stretch.end;
  if (stretch.first == stretch.end || work.dialect == Dialect::kAten) return;
  // Another thread may make an event, or take memory, between the waits of a fork and its first
  // operator, or between the last operator and the wait that joins.
  const int32_t thread = work.calls[stretch.first].thread;
  const auto passes = [&](size_t call) {
    const K kind = work.form(call).acl_kind();
    if (kind == K::kEventCreate || kind == K::kEventDestroy) return true;
    return work.calls[call].thread != thread && !IsStreamTask(kind) && !WaitsOnHost(kind);
  };
  // An allocator may take memory between the two as well. Past such a call only a fork or a join is
  // looked for.
  const auto is_edge = [&](size_t call) {
    const K kind = work.form(call).acl_kind();
    return kind == K::kEventRecord || kind == K::kEventWait;
  };
  bool past_memory = false;
  const auto takes = [&](size_t call) {
    if (IsMemoryCall(work.form(call).acl_kind())) past_memory = true;
    return past_memory ? is_edge(call) : CanBeHeld(work, call);
  };
  const auto goes_on = [&](size_t call) {
    return passes(call) || IsMemoryCall(work.form(call).acl_kind()) ||
           (past_memory && work.form(call).acl_kind() == K::kNoEffect);
  };
  // The fork of the first step may lie before the step, which begins with an operator.
  size_t lowest = low;
  while (lowest > 0 && stretch.step >= 0 && work.calls[lowest - 1].step < 0) --lowest;
  for (size_t i = stretch.first; i > lowest; --i) {
    if (takes(i - 1)) {
      stretch.first = i - 1;
    } else if (!goes_on(i - 1)) {
      break;
    }
  }
  past_memory = false;
  for (size_t i = stretch.end; i < high; ++i) {
    if (takes(i)) {
      stretch.end = i + 1;
    } else if (!goes_on(i)) {
      break;
    }
  }
}

// Returns the stream that has most of the operators if the stretch begins with an operator of
// another one: a side stream, whose fork came before. Returns 0 if the first task is no operator,
// such as the record of a fork.
int64_t StreamBesideTheFirst(const Work& work, const Stretch& stretch) {
  std::map<int64_t, size_t> tasks;
  int64_t busiest = 0;
  bool any = false;
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const K kind = work.form(i).acl_kind();
    if (!any && IsStreamTask(kind) && kind != K::kOperator) return 0;
    any = any || IsStreamTask(kind);
    if (kind == K::kOperator) ++tasks[work.calls[i].stream_id];
  }
  for (const auto& [stream, count] : tasks) {
    if (busiest == 0 || count > tasks[busiest]) busiest = stream;
  }
  return busiest;
}

void ChooseOrigin(const Work& work, int64_t stream, Stretch& stretch) {
  if (stream == 0) stream = StreamBesideTheFirst(work, stretch);
  stretch.stream = stream;
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkCall& call = work.calls[i];
    if (!IsStreamTask(work.form(i).acl_kind())) continue;
    if (stream != 0 && call.stream_id != stream) continue;
    stretch.stream = call.stream_id;
    stretch.thread = call.thread;
    return;
  }
  if (stretch.first < stretch.end) stretch.thread = work.calls[stretch.first].thread;
}

std::vector<Stretch> RecordedCaptures(const Work& work, size_t first, size_t end) {
  std::vector<Stretch> captures;
  std::vector<size_t> open;  // indices in `captures`
  for (size_t i = first; i < end; ++i) {
    const WorkCall& call = work.calls[i];
    const K kind = work.form(i).acl_kind();
    if (kind == K::kCaptureBegin && call.status == 0) {
      Stretch capture;
      capture.first = i + 1;
      capture.end = end;
      capture.stream = call.stream_id;
      capture.thread = call.thread;
      capture.step = call.step;
      capture.begin_call = static_cast<int64_t>(i);
      const WorkForm& begin = work.form(i);
      const int64_t mode = begin.Integer(begin.function->detail);
      capture.mode = static_cast<CaptureMode>(std::clamp<int64_t>(mode, 0, 2));
      open.push_back(captures.size());
      captures.push_back(capture);
    }
    if (call.model_id != 0) {
      for (const size_t index : open) {
        Stretch& capture = captures[index];
        if (capture.stream == call.stream_id) capture.model_id = call.model_id;
      }
    }
    if (kind != K::kCaptureEnd || LeavesCaptureOpen(call.status)) continue;
    const auto ended = std::find_if(open.begin(), open.end(), [&](size_t index) {
      return captures[index].stream == call.stream_id;
    });
    if (ended == open.end()) continue;
    captures[*ended].end = i;
    captures[*ended].end_call = static_cast<int64_t>(i);
    open.erase(ended);
  }
  return captures;
}

}  // namespace

bool LeavesCaptureOpen(int32_t status) {
  return status == meaning::kAclErrorRtStreamCaptureUnmatched ||
         status == meaning::kAclErrorRtStreamNotCaptured;
}

bool IsPageableCopy(const Work& work, size_t call) {
  const WorkForm& form = work.form(call);
  return form.function != nullptr && analyzer::IsPageableCopy(*form.function, *form.arguments);
}

std::vector<Stretch> FindStretches(const Work& work, const StretchOptions& options) {
  const bool chosen = options.first_call != 0 || options.last_call != 0;
  size_t low = 0;
  size_t high = work.size();
  if (chosen) {
    const auto before = [](const WorkCall& call, int64_t id) { return call.call_id < id; };
    const auto index_of = [&](int64_t id) {
      return static_cast<size_t>(
          std::lower_bound(work.calls.begin(), work.calls.end(), id, before) - work.calls.begin());
    };
    low = index_of(options.first_call);
    high = options.last_call == INT64_MAX ? work.size() : index_of(options.last_call + 1);
    if (low >= high) {
      throw Error(ErrorKind::kUsage, "no call of the trace's work lies in " +
                                         std::to_string(options.first_call) + "-" +
                                         std::to_string(options.last_call));
    }
  }
  std::vector<Stretch> stretches = RecordedCaptures(work, low, high);
  if (!stretches.empty()) return stretches;

  const auto add = [&](size_t first, size_t end, int64_t step, bool cut) {
    Stretch stretch;
    stretch.first = first;
    stretch.end = end;
    stretch.step_first = first;
    stretch.step_end = end;
    stretch.step = step;
    if (cut) CutToWork(work, stretch);
    if (stretch.first == stretch.end) return;
    ChooseOrigin(work, options.stream, stretch);
    stretches.push_back(stretch);
  };
  if (chosen) {
    add(low, high, -1, /*cut=*/false);
    return stretches;
  }
  for (size_t i = low; i < high;) {
    const int32_t step = work.calls[i].step;
    size_t end = i + 1;
    while (end < high && work.calls[end].step == step) ++end;
    if (step >= 0) add(i, end, step, /*cut=*/true);
    i = end;
  }
  if (stretches.empty()) add(low, high, -1, /*cut=*/true);
  return stretches;
}

}  // namespace acltape::analyzer::lint
