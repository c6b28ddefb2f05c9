#include "analyzer/lint/capture_facts.h"

#include <algorithm>
#include <unordered_set>

#include "analyzer/streams/budget.h"
#include "generated/meaning/interface_numbers.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;
using Refers = WaitOfEvent::Refers;

// The event of an event call. For aclrtEventElapsedTime this is the second event.
int64_t EventOf(const WorkForm& form) { return form.Integer(form.function->object); }

class Walk {
 public:
  Walk(const Work& work, const Stretch& stretch, const Handles& handles)
      : work_(work), stretch_(stretch), handles_(handles) {
    facts_.capturing.resize(stretch.end - stretch.first);
    facts_.members.push_back({stretch.stream});
    member_of_[stretch.stream] = 0;
  }

  CaptureFacts Run() {
    for (size_t i = stretch_.first; i < stretch_.end; ++i) Visit(i);
    return std::move(facts_);
  }

 private:
  struct Record {
    int64_t call = -1;
    bool captured = false;
  };

  CaptureMember* MemberOf(int64_t stream) {
    const auto found = member_of_.find(stream);
    return found == member_of_.end() ? nullptr : &facts_.members[found->second];
  }

  void Visit(size_t i) {
    const WorkCall& call = work_.calls[i];
    const WorkForm& form = work_.form(i);
    const K kind = form.acl_kind();
    CaptureMember* member = call.stream_id == 0 ? nullptr : MemberOf(call.stream_id);
    facts_.capturing[i - stretch_.first] = member != nullptr;
    switch (kind) {
      case K::kCaptureBegin:
        if (member == nullptr && call.status == 0) others_.insert(call.stream_id);
        return;
      case K::kCaptureEnd:
        if (!LeavesCaptureOpen(call.status)) others_.erase(call.stream_id);
        return;
      case K::kEventRecord:
        VisitRecord(i, member);
        return;
      case K::kEventWait:
        VisitWait(i, member);
        return;
      case K::kEventSync:
      case K::kEventQuery:
        NoteHostCall(i, EventOf(form));
        return;
      case K::kEventTime:
        if (!NoteHostCall(i, EventOf(form)) && form.function->detail >= 0) {
          NoteHostCall(i, form.Integer(form.function->detail));
        }
        return;
      default:
        break;
    }
    if (member == nullptr || !IsStreamTask(kind) || call.status != 0) return;
    if (IsPageableCopy(work_, i) || kind == K::kGroupBegin || kind == K::kGroupEnd) return;
    AddTask(*member, i, 1);
  }

  static void AddTask(CaptureMember& member, size_t i, int64_t entries) {
    member.last_task = static_cast<int64_t>(i);
    member.last_record = -1;
    member.waiter = 0;
    member.entries += entries;
  }

  bool NoteHostCall(size_t i, int64_t event) {
    const auto record = records_.find(event);
    if (record == records_.end() || !record->second.captured) return false;
    facts_.host_calls_on_captured.push_back({i, record->second.call});
    return true;
  }

  bool IsExternal(const WorkForm& form, int64_t event) const {
    return IsExternalFlag(form.Integer(form.function->detail)) || handles_.IsExternalEvent(event);
  }

  void VisitRecord(size_t i, CaptureMember* member) {
    const WorkCall& call = work_.calls[i];
    const WorkForm& form = work_.form(i);
    const int64_t event = EventOf(form);
    if (member != nullptr && IsExternal(form, event)) {
      AddTask(*member, i, 1);
      return;
    }
    if (handles_.IsOldEvent(event) && member != nullptr) return;  // refused (CAP-43)
    if (others_.count(call.stream_id) != 0) return;
    Record& record = records_[event];
    if (member == nullptr && record.captured) return;  // waits refer to the capture (CAP-53)
    record = {static_cast<int64_t>(i), member != nullptr};
    if (member == nullptr) return;
    AddTask(*member, i, 1);
    member->last_record = static_cast<int64_t>(i);
  }

  void VisitWait(size_t i, CaptureMember* member) {
    const WorkCall& call = work_.calls[i];
    const WorkForm& form = work_.form(i);
    if (others_.count(call.stream_id) != 0)
      return;  // the event is another capture's: see CheckSharedEvent
    const int64_t event = EventOf(form);
    WaitOfEvent wait{i};
    if (IsExternal(form, event)) {
      wait.refers = Refers::kExternal;
      facts_.waits.push_back(wait);
      if (member != nullptr) AddTask(*member, i, streams::kWaitEntries);
      return;
    }
    const auto found = records_.find(event);
    if (found != records_.end()) {
      wait.record = found->second.call;
      wait.refers = found->second.captured ? Refers::kCaptured : Refers::kOutside;
    } else {
      wait.record = handles_.LastOutsideRecord(event, stretch_.first);
      wait.refers = wait.record >= 0 ? Refers::kOutside : Refers::kNever;
    }
    facts_.waits.push_back(wait);
    if (wait.refers != Refers::kCaptured || handles_.IsOldEvent(event)) return;
    if (member == nullptr) {
      if (handles_.IsDefaultStream(call.stream_id)) return;  // refused (CAP-42)
      member_of_[call.stream_id] = facts_.members.size();
      facts_.members.push_back({call.stream_id, static_cast<int64_t>(i), wait.record});
      member = &facts_.members.back();
    }
    AddTask(*member, i, streams::kWaitEntries);
    CaptureMember* recorder = MemberOf(work_.calls[wait.record].stream_id);
    if (recorder != nullptr && recorder != member && recorder->last_record == wait.record) {
      recorder->waiter = call.stream_id;
    }
  }

  const Work& work_;
  const Stretch& stretch_;
  const Handles& handles_;
  CaptureFacts facts_;
  std::unordered_map<int64_t, size_t> member_of_;  // by stream
  std::unordered_map<int64_t, Record> records_;    // by event
  std::unordered_set<int64_t> others_;             // streams that began another capture in between
};

}  // namespace

Handles::Handles(const Work& work) {
  for (const storage::Handle& stream : work.trace->Streams()) streams_.emplace(stream.id, stream);
  kinds_ = EventKinds(work.trace->Events());
  for (size_t i = 0; i < work.size(); ++i) {
    const WorkForm& form = work.form(i);
    const K kind = form.acl_kind();
    if (form.acl_variant() == AclVariant::kFree) {
      for (const int64_t buffer : work.buffers(i)) frees_[buffer] = static_cast<uint32_t>(i);
    }
    if (work.calls[i].status != 0 || form.function == nullptr) continue;
    if (kind == K::kEventCreate || kind == K::kEventReset) {
      kinds_.Note(*form.function, EventOf(form));
    }
    if (kind != K::kEventRecord || work.calls[i].model_id != 0) continue;
    records_[EventOf(form)].push_back(static_cast<uint32_t>(i));
  }
}

bool Handles::IsDefaultStream(int64_t stream) const {
  const auto found = streams_.find(stream);
  return found != streams_.end() && found->second.handle == 0;
}

bool Handles::IsOldEvent(int64_t event) const {
  return kinds_.IsOld(event) && !kinds_.IsExternal(event);
}

bool Handles::IsExternalEvent(int64_t event) const { return kinds_.IsExternal(event); }

int64_t Handles::LastOutsideRecord(int64_t event, size_t call) const {
  const auto found = records_.find(event);
  if (found == records_.end()) return -1;
  const auto after = std::lower_bound(found->second.begin(), found->second.end(), call);
  return after == found->second.begin() ? -1 : static_cast<int64_t>(*(after - 1));
}
int64_t Handles::FreeOf(int64_t buffer) const {
  const auto found = frees_.find(buffer);
  return found == frees_.end() ? -1 : static_cast<int64_t>(found->second);
}

CaptureFacts FindCaptureFacts(const Work& work, const Stretch& stretch, const Handles& handles) {
  return Walk(work, stretch, handles).Run();
}

std::vector<ModeExchange> FindExchanges(const Work& work) {
  std::vector<ModeExchange> exchanges;
  for (size_t i = 0; i < work.size(); ++i) {
    if (work.form(i).acl_variant() != AclVariant::kExchangeMode || work.calls[i].status != 0) {
      continue;
    }
    const int64_t mode = work.form(i).Integer(0);
    exchanges.push_back(
        {i, work.calls[i].thread, static_cast<CaptureMode>(std::clamp<int64_t>(mode, 0, 2))});
  }
  return exchanges;
}

bool RefusesUnsafe(CaptureMode mode, bool own_thread, CaptureMode exchanged) {
  switch (exchanged) {
    case CaptureMode::kGlobal:
      return mode == CaptureMode::kGlobal || (own_thread && mode == CaptureMode::kThreadLocal);
    case CaptureMode::kThreadLocal:
      return own_thread && mode != CaptureMode::kRelaxed;
    default:
      return false;
  }
}

}  // namespace acltape::analyzer::lint
