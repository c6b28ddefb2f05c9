// Rules about the order and the place of begin, end, record and wait: forks and joins, events from
// outside, streams and threads, task groups.
#include <unordered_map>
#include <unordered_set>

#include "analyzer/lint/rule.h"
#include "generated/meaning/interface_numbers.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;
using Refers = WaitOfEvent::Refers;

int64_t CallId(const LintContext& context, int64_t call) {
  return call < 0 ? 0 : context.work.calls[call].call_id;
}

// The streams from which a chain of records and waits leads to the origin (rules JOIN-01, JOIN-02).
std::unordered_set<int64_t> JoinedStreams(const CaptureFacts& facts) {
  std::unordered_set<int64_t> joined = {facts.members.front().stream};
  for (bool grew = true; grew;) {
    grew = false;
    for (const CaptureMember& member : facts.members) {
      if (joined.count(member.waiter) == 0) continue;
      grew = joined.insert(member.stream).second || grew;
    }
  }
  return joined;
}

// Edits that fork the stream of `call` before it and join the stream after its last task. Host
// waits for the stream are moved out of the capture.
std::vector<Edit> TakeIntoCapture(const LintContext& context, size_t call) {
  const Stretch& stretch = context.stretch();
  const Work& work = context.work;
  const int64_t stream = work.calls[call].stream_id;
  std::vector<Edit> edits = {WaitEdit(0, work.calls[call].call_id)};
  size_t last = call;
  for (size_t i = call; i < stretch.end; ++i) {
    if (work.calls[i].stream_id != stream) continue;
    const K kind = work.form(i).acl_kind();
    if (IsStreamTask(kind)) last = i;
    if (kind == K::kStreamSync || kind == K::kStreamQuery) {
      edits.push_back(HoistEdit(work.calls[i].call_id));
    }
  }
  edits.push_back(WaitEdit(work.calls[last].call_id, 0));
  return edits;
}

}  // namespace

void CheckUnjoinedFork(const LintContext& context, Found& found) {
  const std::unordered_set<int64_t> joined = JoinedStreams(*context.facts);
  bool waits = false;  // a stream that is not joined has a waiter
  bool told = false;
  const Codes codes = context.EndCodes(meaning::kAclErrorRtStreamUnjoined);
  const auto tell = [&](const CaptureMember& member) {
    told = true;
    const int64_t last = member.last_task >= 0 ? member.last_task : member.fork_wait;
    Found::Options options;
    options.other = member.fork_wait;
    options.codes = &codes;
    options.edits = {WaitEdit(CallId(context, last), 0)};
    found.Add(last,
              Named(last) + " is the last task of " + OnStream(member.stream) +
                  ", and no captured stream waits for it; " + Named(member.fork_wait) +
                  " forked that stream",
              options);
  };
  for (const CaptureMember& member : context.facts->members) {
    if (joined.count(member.stream) != 0) continue;
    if (member.waiter == 0) {
      tell(member);
    } else {
      waits = true;
    }
  }
  if (told || !waits) return;
  // Some streams wait for each other and none of them for the origin.
  for (const CaptureMember& member : context.facts->members) {
    if (joined.count(member.stream) != 0) continue;
    tell(member);
    return;
  }
}

void CheckOutsideEvent(const LintContext& context, Found& found) {
  for (const WaitOfEvent& wait : context.facts->waits) {
    if (wait.refers != Refers::kOutside) continue;
    if (!context.facts->IsCapturing(context.stretch(), wait.call)) continue;
    const int64_t event =
        context.work.form(wait.call).Integer(context.work.form(wait.call).function->object);
    if (context.handles.IsOldEvent(event)) continue;  // LINT-31 reports it
    Found::Options options;
    options.other = wait.record;
    options.edits = {HoistEdit(CallId(context, static_cast<int64_t>(wait.call)))};
    found.Add(static_cast<int64_t>(wait.call),
              Named(wait.call) + " waits on a capturing stream for what " + Named(wait.record) +
                  " recorded outside of the capture",
              options);
  }
}

// Finds streams and events that captures share which are open at the same time.
void CheckSharedEvent(const LintContext& context, Found& found) {
  const Work& work = context.work;
  std::unordered_map<int64_t, int64_t> capture_of_stream;  // call that began it, by stream
  struct Owner {
    int64_t capture = 0;
    int64_t record = 0;
  };
  std::unordered_map<int64_t, Owner> owner_of_event;
  for (size_t i = 0; i < work.size(); ++i) {
    const WorkForm& form = work.form(i);
    const WorkCall& call = work.calls[i];
    const auto capture = capture_of_stream.find(call.stream_id);
    const bool capturing = call.stream_id != 0 && capture != capture_of_stream.end();
    switch (form.acl_kind()) {
      case K::kCaptureBegin:
        if (call.status == 0) capture_of_stream[call.stream_id] = static_cast<int64_t>(i);
        break;
      case K::kCaptureEnd: {
        if (!capturing || LeavesCaptureOpen(call.status)) break;
        const int64_t ended = capture->second;
        std::erase_if(capture_of_stream, [&](const auto& entry) { return entry.second == ended; });
        std::erase_if(owner_of_event,
                      [&](const auto& entry) { return entry.second.capture == ended; });
        break;
      }
      case K::kEventRecord:
        if (!capturing || call.status != 0) break;
        owner_of_event[form.Integer(form.function->object)] = {capture->second,
                                                               static_cast<int64_t>(i)};
        break;
      case K::kEventWait: {
        const auto owner = owner_of_event.find(form.Integer(form.function->object));
        if (owner == owner_of_event.end()) break;
        if (!capturing) {
          if (call.status == 0) capture_of_stream[call.stream_id] = owner->second.capture;
          break;
        }
        if (owner->second.capture == capture->second) break;
        Found::Options options;
        options.other = owner->second.record;
        found.Add(static_cast<int64_t>(i),
                  Named(i) + " waits in one capture for what " +
                      Named(static_cast<size_t>(owner->second.record)) +
                      " recorded in another, which spoils both",
                  options);
        break;
      }
      default:
        break;
    }
  }
}

void CheckOldEvent(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkForm& form = context.work.form(i);
    const K kind = form.acl_kind();
    if (kind != K::kEventRecord && kind != K::kEventWait) continue;
    if (!context.facts->IsCapturing(stretch, i)) continue;
    if (!context.handles.IsOldEvent(form.Integer(form.function->object))) continue;
    found.Add(static_cast<int64_t>(i),
              Named(i) +
                  " uses an event that was not made by aclrtCreateEventExWithFlag on a capturing "
                  "stream");
  }
}

void CheckDefaultStream(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  if (context.handles.IsDefaultStream(stretch.stream)) {
    const Codes codes = InEveryMode(meaning::kAclErrorRtFeatureNotSupport);
    Found::Options options;
    options.codes = &codes;
    options.fails_at = FailsAt::kBegin;
    options.subject = "origin";
    const int64_t call =
        stretch.begin_call >= 0 ? stretch.begin_call : static_cast<int64_t>(stretch.first);
    found.Add(call,
              Named(call) + " comes first in a capture on " + OnStream(stretch.stream) +
                  ", which is the default stream",
              options);
  }
  for (const WaitOfEvent& wait : context.facts->waits) {
    const int64_t stream = context.work.calls[wait.call].stream_id;
    if (wait.refers != Refers::kCaptured || !context.handles.IsDefaultStream(stream)) continue;
    if (stream == stretch.stream) continue;
    Found::Options options;
    options.other = wait.record;
    found.Add(static_cast<int64_t>(wait.call), Named(wait.call) + " would fork the default stream",
              options);
  }
}

void CheckWrongEndStream(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (context.work.form(i).acl_kind() != K::kCaptureEnd) continue;
    if (context.work.calls[i].stream_id == stretch.stream) continue;
    if (!context.facts->IsCapturing(stretch, i)) continue;
    Found::Options options;
    options.other = stretch.begin_call;
    found.Add(static_cast<int64_t>(i),
              Named(i) + " is called on " + OnStream(context.work.calls[i].stream_id) +
                  ", but the capture began on " + OnStream(stretch.stream),
              options);
  }
}

void CheckWrongEndThread(const LintContext& context, Found& found) {
  if (!context.EndsInAnotherThread()) return;
  const Stretch& stretch = context.stretch();
  Found::Options options;
  options.other = stretch.begin_call;
  found.Add(stretch.end_call,
            Named(stretch.end_call) + " is called by thread " +
                std::to_string(context.work.calls[stretch.end_call].thread) + ", but thread " +
                std::to_string(stretch.thread) + " began the capture",
            options);
}

void CheckTaskGroup(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  int64_t open = -1;  // call that begins the open group
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const K kind = context.work.form(i).acl_kind();
    if (!IsStreamTask(kind) || !context.facts->IsCapturing(stretch, i)) continue;
    if (kind == K::kGroupBegin) {
      open = static_cast<int64_t>(i);
      continue;
    }
    if (kind == K::kGroupEnd) open = -1;
    if (open < 0) continue;
    const bool elsewhere = context.work.calls[i].stream_id != context.work.calls[open].stream_id;
    if (!elsewhere && kind == K::kOperator) continue;
    const Codes codes = InEveryMode(elsewhere ? meaning::kAclErrorStreamTaskGroupIntr
                                              : meaning::kAclErrorRtTaskTypeNotSupport);
    Found::Options options;
    options.other = open;
    options.codes = &codes;
    found.Add(static_cast<int64_t>(i),
              Named(i) +
                  (elsewhere ? " is a task of another stream inside the task group of "
                             : " is no launch, but lies in the task group of ") +
                  Named(open),
              options);
    open = -1;  // later entries are discarded (CAP-60)
  }
}

// Finds work on a stream outside of the capture that touches bytes of captured work. The graph does
// not repeat such work.
void CheckUncapturedWork(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  struct Use {
    int64_t call = -1;
    bool write = false;
  };
  bool any = false;
  for (size_t i = stretch.first; i < stretch.end && !any; ++i) {
    any = context.work.form(i).active() && context.work.calls[i].stream_id != 0 &&
          !context.facts->IsCapturing(stretch, i);
  }
  if (!any) return;
  std::unordered_map<int64_t, Use> captured;  // by buffer: the first captured use or write
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (!context.facts->IsCapturing(stretch, i)) continue;
    // A value that a graph waits for is written outside of it.
    if (context.work.form(i).acl_kind() == K::kValueWait) continue;
    context.work.VisitAccesses(i, [&](const ByteAccess& access) {
      Use& use = captured[access.buffer];
      if (use.call < 0 || (access.write && !use.write)) {
        use = {static_cast<int64_t>(i), access.write};
      }
    });
  }
  std::unordered_set<int64_t> told;  // streams already reported
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    const WorkCall& call = context.work.calls[i];
    const K kind = context.work.form(i).acl_kind();
    if (call.stream_id == 0 || !IsStreamTask(kind) || kind == K::kValueWait ||
        context.facts->IsCapturing(stretch, i)) {
      continue;
    }
    if (call.model_id != 0 && call.model_id != stretch.model_id)
      continue;  // it is of another capture
    Use shared;
    context.work.VisitAccesses(i, [&](const ByteAccess& access) {
      const auto use = captured.find(access.buffer);
      if (use == captured.end() || (!access.write && !use->second.write)) return;
      if (shared.call < 0) shared = use->second;
    });
    if (shared.call < 0 || !told.insert(call.stream_id).second) continue;
    Found::Options options;
    options.other = shared.call;
    options.edits = TakeIntoCapture(context, i);
    options.subject = std::to_string(call.stream_id);
    found.Add(static_cast<int64_t>(i),
              Named(i) + " on " + OnStream(call.stream_id) +
                  ", which takes no part in the capture, shares memory with captured " +
                  Named(static_cast<size_t>(shared.call)) + ": executions do not repeat it",
              options);
  }
}

}  // namespace acltape::analyzer::lint
