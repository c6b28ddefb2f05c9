#include "analyzer/lint/ordered_walk.h"

#include <algorithm>

#include "analyzer/acl/acl_order.h"
#include "analyzer/lint/stretch.h"
#include "generated/meaning/parameter_positions.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;

// Tells the checker what the call says about order by itself. False: it says nothing.
bool AddOrder(const Work& work, size_t index, streams::RaceChecker& checker) {
  const WorkForm& form = work.form(index);
  const WorkCall& call = work.calls[index];
  const int64_t object = form.Integer(form.function->object);
  const bool ended = form.Integer(form.function->detail) == form.function->done;
  switch (form.acl_kind()) {
    case K::kEventRecord:
      checker.Record(call.stream_id, object);
      return true;
    case K::kEventWait:
      checker.Wait(call.stream_id, object);
      return true;
    case K::kDeviceSync:
      checker.SynchronizeDevice();
      return true;
    case K::kStreamQuery:
      if (ended) checker.SynchronizeStream(call.stream_id);
      return true;
    case K::kStreamSync:
    case K::kStreamDestroy:
      checker.SynchronizeStream(call.stream_id);
      return true;
    case K::kEventQuery:
      if (ended) checker.SynchronizeEvent(object);
      return true;
    case K::kEventTime:
      checker.SynchronizeEvent(object);
      if (form.function->detail >= 0) {
        checker.SynchronizeEvent(form.Integer(form.function->detail));
      }
      return true;
    case K::kEventSync:
      checker.SynchronizeEvent(object);
      return true;
    default:
      return false;
  }
}

}  // namespace

OrderedWalk::OrderedWalk(const Work& work, streams::RaceChecker& checker,
                         std::function<void(size_t)> take)
    : work_(work), checker_(checker), take_(std::move(take)) {
  const bool any = std::any_of(work_.forms.begin(), work_.forms.end(), [](const WorkForm& form) {
    return form.acl_kind() == K::kValueWait || form.acl_kind() == K::kNotifyWait;
  });
  if (!any) return;
  FindLocations();
  FindGraphs();
}

void OrderedWalk::FindLocations() {
  Location location;
  for (size_t i = 0; i < work_.size(); ++i) {
    if (work_.form(i).acl_kind() == K::kValueWait && LocationOf(i, &location)) written_[location];
  }
}

void OrderedWalk::FindGraphs() {
  for (size_t i = 0; i < work_.size(); ++i) {
    const WorkCall& call = work_.calls[i];
    if (call.model_id == 0 || call.status != 0) continue;
    const K kind = work_.form(i).acl_kind();
    bool sets = false;
    work_.VisitAccesses(i, [&](const ByteAccess& access) {
      const auto written = written_.lower_bound({access.buffer, access.first});
      sets |= access.write && written != written_.end() &&
              written->first < Location{access.buffer, access.end};
    });
    if (sets || kind == K::kNotifyRecord || kind == K::kNotifyWait || kind == K::kValueWait) {
      graphs_[call.model_id].push_back(i);
    }
  }
}

bool OrderedWalk::LocationOf(size_t call, Location* location) const {
  bool found = false;
  work_.VisitAccesses(call, [&](const ByteAccess& access) {
    *location = {access.buffer, access.first};
    found = true;
  });
  return found;
}

bool OrderedWalk::IsReached(size_t call, uint64_t memory) const {
  const WorkForm& form = work_.form(call);
  namespace wait_for = meaning::position::aclrtValueWait;
  return IsValueReached(memory, static_cast<uint64_t>(form.Integer(wait_for::kValue)),
                        form.Integer(wait_for::kFlag));
}

bool OrderedWalk::MustWait(size_t call) const {
  const WorkForm& form = work_.form(call);
  const int64_t object = form.Integer(form.function->object);
  Location location;
  switch (form.acl_kind()) {
    case K::kEventWait: {
      const auto records = held_records_.find(object);
      return records != held_records_.end() && records->second > 0;
    }
    case K::kNotifyWait: {
      const auto notify = notifies_.find(object);
      return notify == notifies_.end() || !notify->second.set;
    }
    case K::kValueWait: {
      if (!LocationOf(call, &location)) return false;
      const std::vector<Written>& writes = written_.at(location);
      if (writes.empty()) return !IsReached(call, 0);  // memory that nothing wrote is zero
      return writes.back().known && !IsReached(call, writes.back().value);
    }
    default:
      return false;
  }
}

void OrderedWalk::Call(size_t call) {
  const WorkForm& form = work_.form(call);
  const int64_t stream = work_.calls[call].stream_id;
  const K kind = form.acl_kind();
  // The host goes on when all streams have ended, and this walk sees no threads.
  if (kind == K::kDeviceSync) End();
  if (MustWait(call) || (!held_.empty() && held_.contains(stream))) {
    held_[stream].push_back(call);
    if (kind == K::kEventRecord) ++held_records_[form.Integer(form.function->object)];
    return;
  }
  Do(call);
  if (!held_.empty()) DoHeld();
}

bool OrderedWalk::Counts(const Work& work, size_t index) {
  const WorkCall& call = work.calls[index];
  const WorkForm& form = work.form(index);
  if (call.model_id != 0 || form.function == nullptr) return false;
  return call.status == 0 || WaitedForFailedWork(form.acl_kind(), call.status);
}

void OrderedWalk::CallAllOutsideOfCaptures() {
  for (size_t i = 0; i < work_.size(); ++i) {
    if (Counts(work_, i)) Call(i);
  }
  End();
}

void OrderedWalk::Do(size_t call) {
  const WorkForm& form = work_.form(call);
  const int64_t stream = work_.calls[call].stream_id;
  if (WaitOn(stream, call)) return;
  if (form.acl_kind() == K::kNotifyReset && !form.arguments->empty()) {
    for (const int64_t notify : form.arguments->front().integers) notifies_[notify].set = false;
  }
  if (AddOrder(work_, call, checker_)) return;
  static const std::vector<size_t> none;
  const auto graph = IsExecution(form.acl_kind())
                         ? graphs_.find(form.Integer(form.function->object))
                         : graphs_.end();
  const std::vector<size_t>& stored = graph == graphs_.end() ? none : graph->second;
  for (const size_t i : stored) WaitOn(stream, i);
  take_(call);
  // The host has waited for the stream and the copy (rule CPY-06).
  if (IsPageableCopy(work_, call)) checker_.SynchronizeStream(stream);
  NoteWhatIsSet(stream, call);
  for (const size_t i : stored) NoteWhatIsSet(stream, i);
}

bool OrderedWalk::WaitOn(int64_t stream, size_t call) {
  const WorkForm& form = work_.form(call);
  if (form.acl_kind() == K::kValueWait) {
    WaitForValue(stream, call);
    return true;
  }
  if (form.acl_kind() != K::kNotifyWait) return false;
  Notify& notify = notifies_[form.Integer(form.function->object)];
  if (notify.set) checker_.Wait(stream, notify.event);
  notify.set = false;
  return true;
}

void OrderedWalk::NoteWhatIsSet(int64_t stream, size_t call) {
  constexpr size_t kMostWrites = 64;  // most writes of one place that are remembered
  const WorkForm& form = work_.form(call);
  const K kind = form.acl_kind();
  if (kind == K::kNotifyRecord) {
    Notify& notify = notifies_[form.Integer(form.function->object)];
    if (notify.event == 0) notify.event = --last_event_;
    notify.set = true;
    checker_.Record(stream, notify.event);
  }
  if (written_.empty()) return;
  const std::optional<uint64_t> value =
      ValueLeftBy(kind, static_cast<uint64_t>(form.Integer(PositionOfValue(kind))));
  work_.VisitAccesses(call, [&](const ByteAccess& access) {
    if (!access.write) return;
    for (auto location = written_.lower_bound({access.buffer, access.first});
         location != written_.end() && location->first < Location{access.buffer, access.end};
         ++location) {
      std::vector<Written>& writes = location->second;
      int64_t event = 0;
      if (writes.size() < kMostWrites) {
        event = --last_event_;
      } else {  // the oldest write is forgotten
        event = writes.front().event;
        writes.erase(writes.begin());
      }
      checker_.Record(stream, event);
      writes.push_back({event, value.has_value(), value.value_or(0)});
    }
  });
}

// The earliest of the latest writes that all let the wait go on may have released it. Only what is
// ordered before that one is ordered before the wait.
void OrderedWalk::WaitForValue(int64_t stream, size_t call) {
  Location location;
  if (!LocationOf(call, &location)) return;
  const std::vector<Written>& writes = written_.at(location);
  if (writes.empty()) return;
  size_t first = writes.size();
  while (first > 0 && writes[first - 1].known && IsReached(call, writes[first - 1].value)) --first;
  if (first == writes.size()) {
    if (writes.back().known) return;  // nothing that is known releases it
    --first;
  }
  if (first == 0 && IsReached(call, 0)) return;  // as the memory was at the beginning
  checker_.Wait(stream, writes[first].event);
}

void OrderedWalk::DoHeld() {
  for (bool done = true; done;) {
    done = false;
    for (auto held = held_.begin(); held != held_.end();) {
      std::deque<size_t>& calls = held->second;
      while (!calls.empty() && !MustWait(calls.front())) {
        const WorkForm& form = work_.form(calls.front());
        if (form.acl_kind() == K::kEventRecord) {
          --held_records_[form.Integer(form.function->object)];
        }
        Do(calls.front());
        calls.pop_front();
        done = true;
      }
      held = calls.empty() ? held_.erase(held) : std::next(held);
    }
  }
}

void OrderedWalk::End() {
  while (!held_.empty()) {
    // The wait that came first goes on.
    auto first = held_.begin();
    for (auto held = held_.begin(); held != held_.end(); ++held) {
      if (held->second.front() < first->second.front()) first = held;
    }
    Do(first->second.front());
    first->second.pop_front();
    if (first->second.empty()) held_.erase(first);
    DoHeld();
  }
}

}  // namespace acltape::analyzer::lint
