#include "analyzer/acl/acl_order.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "generated/meaning/interface_numbers.h"
#include "generated/meaning/parameter_positions.h"
#include "meaning/options.h"
#include "storage/error.h"

namespace acltape::analyzer {
namespace {

using K = AclCallKind;

bool IsEventCall(K kind) {
  return kind == K::kEventRecord || kind == K::kEventWait || kind == K::kEventReset;
}

class OrderFinder {
 public:
  explicit OrderFinder(const AclProgram& program) : program_(program) {}

  std::vector<AclTurn> Find() {
    for (const AclCall& call : program_.calls) {
      if (call.fate != AclFate::kIssued) continue;
      if (!call.before.empty()) Arrive(call);
      Issue(call);
    }
    for (const auto& [stream, queue] : queues_) {
      if (!queue.empty()) Stuck(program_.calls.back(), "work of stream " + std::to_string(stream));
    }
    return std::move(turns_);
  }

  const SetBefore& set_before() const { return set_before_; }

 private:
  struct Entry {
    std::function<bool()> ready;  // empty: always ready
    std::function<void()> leave;  // empty: nothing to do
    // Takes what the entry waits for as set before the recording. Returns false if it was not.
    // Empty: it was not.
    std::function<bool()> assume;
  };

  void Push(int64_t stream, Entry entry) {
    queues_[stream].push_back(std::move(entry));
    Progress();
  }

  void Progress() {
    for (bool progress = true; progress;) {
      progress = false;
      for (auto& [id, queue] : queues_) {
        while (!queue.empty() && (!queue.front().ready || queue.front().ready())) {
          const Entry next = std::move(queue.front());
          queue.pop_front();
          if (next.leave) next.leave();
          progress = true;
        }
      }
    }
  }

  void Take(const AclCall& call, int64_t execution) {
    turns_.push_back(
        {call.index, execution, std::exchange(contents_, {}), std::exchange(waited_, false)});
    NoteValue(call);
  }

  // The recorder saw the contents after the work before the call, so they arrive in its queue: what
  // still waits there may read what the memory held until then.
  void Arrive(const AclCall& call) {
    const auto arrive = [this, &call] { contents_.push_back(call.index); };
    if (call.RunsOnItsStream()) {
      Push(call.stream(), {nullptr, arrive, nullptr});
    } else {
      arrive();
    }
  }

  void Issue(const AclCall& call) {
    const K kind = call.kind();
    if (ChangesMemory(kind)) {
      if (call.call.model_id != 0) return;  // it runs when its graph is executed
      if (call.group >= 0) {
        updates_[call.stream()].push_back(call.index);
      } else if (WaitsOnHost(kind)) {
        Take(call, -1);  // it does not wait for streams (rule CPY-04)
      } else {
        if (call.IsPageableCopy()) WaitForStream(call, call.stream());
        Push(call.stream(), {nullptr, [this, &call] { Take(call, -1); }});
      }
      return;
    }
    if (WaitsOnHost(kind)) {
      WaitOnHost(call);
    } else {
      Control(call);
    }
  }

  void WaitOnHost(const AclCall& call) {
    const int64_t object = call.Integer(call.function->object);
    const bool ended = call.Integer(call.function->detail) == call.function->done;
    switch (call.kind()) {
      case K::kDeviceSync:
        WaitForStream(call, 0);
        return;
      case K::kStreamSync:
        WaitForStream(call, call.stream());
        return;
      case K::kStreamQuery:
        if (ended) WaitForStream(call, call.stream());
        return;
      case K::kEventSync:
        WaitForEvent(call, object);
        return;
      case K::kEventQuery:
        if (ended) WaitForEvent(call, object);
        return;
      case K::kEventTime:
        WaitForEvent(call, object);
        if (call.function->detail >= 0) {
          WaitForEvent(call, call.Integer(call.function->detail));
        }
        return;
      case K::kExecuteNow:
        Execute(call);
        WaitForStream(call, call.stream());
        return;
      // Destroys a stream. A forced destruction drops the stream's work.
      default:
        if (call.function->variant == AclVariant::kForced) {
          queues_.erase(call.stream());
        } else {
          WaitForStream(call, call.stream());
        }
        return;
    }
  }

  [[noreturn]] void Stuck(const AclCall& call, const std::string& what) const {
    throw WithoutLeaves(program_.Describe(call) + " waits for " + what +
                            " that nothing in the trace releases, so that its work has no order",
                        "replay it with @streams recorded"_cli);
  }

  // The stream with work that the host waits for; -1: none.
  int64_t BusyStream(int64_t stream) const {
    for (const auto& [id, queue] : queues_) {
      if (!queue.empty() && (stream == 0 || stream == id)) return id;
    }
    return -1;
  }

  // The host has waited in the recording, so the device had gone on. Looks for an object that was
  // set before the recording, first on the stream for which the host waited.
  bool AssumeSetBefore(int64_t stream) {
    for (const bool own : {true, false}) {
      for (auto& [id, queue] : queues_) {
        if (queue.empty() || (id == stream) != own || !queue.front().assume) continue;
        if (!queue.front().assume()) continue;
        Progress();
        return true;
      }
    }
    return false;
  }

  void WaitForStream(const AclCall& call, int64_t stream) {
    waited_ = true;
    for (int64_t busy = BusyStream(stream); busy >= 0; busy = BusyStream(stream)) {
      if (!AssumeSetBefore(busy)) Stuck(call, "work of stream " + std::to_string(busy));
    }
  }

  void WaitForEvent(const AclCall& call, int64_t event) {
    waited_ = true;
    const int64_t ticket = newest_[event];
    while (ticket != 0 && left_.count(ticket) == 0) {
      if (!AssumeSetBefore(0)) Stuck(call, "event " + std::to_string(event));
    }
  }

  void Control(const AclCall& call) {
    const int64_t object = call.Integer(call.function->object);
    const bool stored = call.call.model_id != 0;
    if (IsEventCall(call.kind())) {
      if (!stored) Event(call, /*stored=*/false, call.stream());
      return;
    }
    switch (call.kind()) {
      case K::kNotifyRecord:
        if (stored) return;
        touched_notifies_.insert(object);
        Push(call.stream(), {nullptr, [this, object] { ++notifies_[object]; }, nullptr});
        return;
      case K::kNotifyWait:
        if (stored) return;
        Push(call.stream(), {[this, object] { return notifies_[object] > 0; },
                             [this, object] { notifies_[object] = 0; },
                             [this, object] { return AssumeNotify(object); }});
        return;
      case K::kNotifyCreate:
        touched_notifies_.insert(object);
        notifies_[object] = 0;
        return;
      case K::kNotifyReset:
        if (call.arguments.empty()) return;
        for (const int64_t notify : call.arguments[0].integers) {
          touched_notifies_.insert(notify);
          notifies_[notify] = 0;
        }
        return;
      case K::kValueWait:
        if (stored) return;
        Push(call.stream(), {[this, &call] { return IsReached(call); }, nullptr});
        return;
      case K::kUpdateBegin:
        updates_[call.stream()].clear();
        return;
      case K::kUpdateEnd: {
        auto calls = std::make_shared<std::vector<int64_t>>(std::move(updates_[call.stream()]));
        updates_.erase(call.stream());
        Push(call.stream(),
             {nullptr, [this, calls, group = call.group] { group_calls_[group] = *calls; }});
        return;
      }
      case K::kExecute:
        Execute(call);
        return;
      default:
        return;  // handles, and calls without effect on order
    }
  }

  // A notify that no call of the trace created, recorded or reset.
  bool AssumeNotify(int64_t notify) {
    if (!touched_notifies_.insert(notify).second) return false;
    notifies_[notify] = 1;
    set_before_.notifies.insert(notify);
    return true;
  }

  // An event that is older than the recording, and that no call of the trace recorded or reset.
  bool AssumeEvent(int64_t event) {
    if (!program_.event_kinds.IsOlder(event) || touched_events_.count(event) != 0) return false;
    set_events_.insert(event);
    return set_before_.events.insert(event).second;
  }

  // Each record gets a ticket number. A wait waits for the newest one (rule EVT-05).
  void Event(const AclCall& call, bool stored, int64_t stream) {
    const int64_t event = call.Integer(call.function->object);
    // Such an event stays set until it is reset.
    const bool external = program_.HasExternalEvent(call) || (program_.event_kinds.IsOlder(event) &&
                                                              program_.event_kinds.IsOld(event));
    if (stored && !program_.IsExternal(call)) return;  // an event inside of a graph
    if (call.kind() == K::kEventRecord) {
      const int64_t ticket = ++tickets_;
      newest_[event] = ticket;
      touched_events_.insert(event);
      Push(stream, {nullptr, [this, ticket, event] {
                      left_.insert(ticket);
                      set_events_.insert(event);
                    }});
    } else if (call.kind() == K::kEventWait) {
      const int64_t ticket = newest_[event];
      Push(stream, {[this, ticket, event, external] {
                      return external ? set_events_.count(event) != 0
                                      : ticket == 0 || left_.count(ticket) != 0;
                    },
                    nullptr, [this, event] { return AssumeEvent(event); }});
    } else {
      Push(stream, {nullptr, [this, event] {
                      touched_events_.insert(event);
                      set_events_.erase(event);
                    }});
    }
  }

  void Execute(const AclCall& call) {
    const auto model = program_.models.find(call.Integer(call.function->object));
    if (model == program_.models.end()) {
      throw Error(ErrorKind::kTrace, program_.Describe(call) +
                                         " executes a graph whose capture the trace does not hold");
    }
    if (model->second.branches) {
      throw WithoutLeaves(program_.Describe(call) +
                              " executes a graph in which the device chooses what runs, so that "
                              "its work has no order",
                          "replay it with @streams recorded"_cli);
    }
    for (const int64_t index : model->second.calls) {
      const AclCall& stored = program_.calls[index];
      const K kind = stored.kind();
      if (IsEventCall(kind)) {
        Event(stored, /*stored=*/true, call.stream());
      } else if (kind == K::kValueWait) {
        Push(call.stream(), {[this, &stored] { return IsReached(stored); }, nullptr});
      } else if (ChangesMemory(kind)) {
        Push(call.stream(), {nullptr, [this, &stored, &call] { TakeStored(stored, call); }});
      }
    }
  }

  void TakeStored(const AclCall& stored, const AclCall& execution) {
    const auto updated = group_calls_.find(stored.group);
    if (stored.group < 0 || updated == group_calls_.end()) {
      Take(stored, execution.index);
      return;
    }
    const std::vector<int64_t>& calls = program_.groups[stored.group].calls;
    const auto place =
        static_cast<size_t>(std::find(calls.begin(), calls.end(), stored.index) - calls.begin());
    if (place < updated->second.size()) {
      Take(program_.calls[updated->second[place]], execution.index);
    }
  }

  // Notes what value writes and fills left, by buffer and byte. Value waits compare with it.
  void NoteValue(const AclCall& call) {
    namespace position = meaning::position;
    const bool write = call.kind() == K::kValueWrite;
    const TensorUse* to =
        call.Use(write ? position::aclrtValueWrite::kDevAddr : position::aclrtMemset::kDevPtr);
    if (to == nullptr) return;
    const std::optional<uint64_t> value =
        ValueLeftBy(call.kind(), static_cast<uint64_t>(call.Integer(PositionOfValue(call.kind()))));
    if (!value) return;
    const std::pair<int64_t, int64_t> first{to->tensor.buffer_id, to->layout->FirstByte()};
    if (write) values_[first] = *value;
    for (auto known = values_.lower_bound(first);
         known != values_.end() && known->first.first == first.first &&
         known->first.second < to->layout->EndByte();
         ++known) {
      known->second = *value;
    }
  }

  // True if a value wait is over (rule STR-21). Memory that nothing wrote is zero.
  bool IsReached(const AclCall& call) const {
    const TensorUse* word = call.Use(meaning::position::aclrtValueWait::kDevAddr);
    if (word == nullptr || program_.unreleased_waits.count(call.index) != 0) return true;
    const auto found = values_.find({word->tensor.buffer_id, word->layout->FirstByte()});
    const uint64_t memory = found == values_.end() ? 0 : found->second;
    return IsValueReached(call, memory);
  }

  const AclProgram& program_;
  std::vector<AclTurn> turns_;
  std::vector<int64_t> contents_;  // contents that the next turn gets
  bool waited_ = false;            // for the next turn
  std::map<int64_t, std::deque<Entry>> queues_;
  std::map<int64_t, int64_t> newest_;  // ticket by event
  std::set<int64_t> left_;             // tickets whose record has left its queue
  int64_t tickets_ = 0;
  std::set<int64_t> set_events_;      // external events that are recorded
  std::set<int64_t> touched_events_;  // events that a call has recorded or reset
  SetBefore set_before_;
  std::map<int64_t, int64_t> notifies_;  // by recorded address
  std::set<int64_t> touched_notifies_;   // notifies that a call has created, recorded or reset
  std::map<std::pair<int64_t, int64_t>, uint64_t> values_;
  std::map<int64_t, std::vector<int64_t>> updates_;      // open, by stream
  std::map<int64_t, std::vector<int64_t>> group_calls_;  // by group, after an update
};

}  // namespace

bool IsValueReached(uint64_t memory, uint64_t value, int64_t condition) {
  switch (condition) {
    case meaning::kAclStreamWaitValueGeq:
      return static_cast<int64_t>(memory - value) >= 0;
    case meaning::kAclStreamWaitValueEq:
      return memory == value;
    case meaning::kAclStreamWaitValueAnd:
      return (memory & value) != 0;
    default:
      return ~(memory | value) != 0;
  }
}

bool IsValueReached(const AclCall& wait, uint64_t memory) {
  namespace wait_for = meaning::position::aclrtValueWait;
  return IsValueReached(memory, static_cast<uint64_t>(wait.Integer(wait_for::kValue)),
                        wait.Integer(wait_for::kFlag));
}

int PositionOfValue(AclCallKind kind) {
  namespace position = meaning::position;
  return kind == K::kValueWrite ? position::aclrtValueWrite::kValue : position::aclrtMemset::kValue;
}

std::optional<uint64_t> ValueLeftBy(AclCallKind kind, uint64_t number) {
  switch (kind) {
    case K::kValueWrite:
      return number;
    case K::kFill:
    case K::kFillAsync:
      return 0x0101010101010101u * (number & 0xff);
    case K::kFill32:
    case K::kFill32Async:
      return (number & 0xffffffffu) * 0x0000000100000001u;
    default:
      return std::nullopt;
  }
}

std::vector<AclTurn> OrderOfWork(const AclProgram& program) { return OrderFinder(program).Find(); }

SetBefore FindSetBefore(const AclProgram& program) {
  std::set<int64_t> created;  // notifies
  bool older = false;
  for (const AclCall& call : program.calls) {
    const int64_t object = call.Integer(call.function->object);
    if (call.kind() == K::kNotifyCreate) created.insert(object);
    older = older || (call.kind() == K::kNotifyWait && created.count(object) == 0) ||
            (call.kind() == K::kEventWait && program.event_kinds.IsOld(object) &&
             program.event_kinds.IsOlder(object));
  }
  if (!older) return {};
  OrderFinder finder(program);
  try {
    finder.Find();
  } catch (const Error&) {
    // Work without an order: what was found until then is what is known.
  }
  return finder.set_before();
}

}  // namespace acltape::analyzer
