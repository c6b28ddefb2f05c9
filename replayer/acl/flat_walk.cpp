#include "replayer/acl/flat_walk.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "analyzer/acl_order.h"

namespace acltape::replayer {

using analyzer::AclCall;
using analyzer::AclCallKind;

namespace {

constexpr int64_t kFlatStream = -1;  // not a stream id of the recording

}  // namespace

void FlatWalk::Push(int64_t stream, Entry entry) {
  queues_[stream].push_back(std::move(entry));
  Pump();
}

void FlatWalk::Pump() {
  for (bool progress = true; progress;) {
    progress = false;
    for (auto& [stream, queue] : queues_) {
      while (!queue.empty() && (!queue.front().ready || queue.front().ready())) {
        const Entry entry = std::move(queue.front());
        queue.pop_front();
        entry.leave();
        progress = true;
      }
    }
  }
}

void FlatWalk::Submit(AclTask task) {
  Observe(task);
  sink_.Submit(kFlatStream, std::move(task));
}

// Notes the values that a task writes, because a value wait may look at them.
void FlatWalk::Observe(const AclTask& task) {
  if (task.work == AclTask::Work::kValueWrite) values_[task.to] = task.value;
  const bool fill = task.work == AclTask::Work::kFill || task.work == AclTask::Work::kFill32;
  if (!fill) return;
  const uint64_t pattern = task.work == AclTask::Work::kFill
                               ? 0x0101010101010101u * (task.value & 0xff)
                               : (task.value << 32 | (task.value & 0xffffffffu));
  for (auto& [address, value] : values_) {
    if (task.to <= address && address < task.to + task.bytes) value = pattern;
  }
}

// Returns true if a value wait is satisfied (rule STR-21). Memory that nothing wrote is zero.
bool FlatWalk::ValueReached(const AclCall& call) const {
  const analyzer::AclUse* at = call.Use(0);
  if (at == nullptr) return true;
  const auto found =
      values_.find(session_.rooms.Address(at->tensor.buffer_id, at->layout->FirstByte()));
  const uint64_t memory = found == values_.end() ? 0 : found->second;
  return analyzer::IsValueReached(call, memory);
}

void FlatWalk::Work(const AclCall& call) {
  Push(call.stream(), {nullptr, [this, &call] {
                         for (AclTask& task : BindWithTakes(call)) Submit(std::move(task));
                       }});
}

void FlatWalk::UpdatedWork(const AclCall& call) { updates_[call.stream()].push_back(call.index); }

void FlatWalk::Event(const AclCall& call, bool stored, int64_t stream) {
  const int64_t event = call.Integer(call.function->object);
  const bool flagged = call.Integer(call.function->detail) == analyzer::kExternalWait;
  const auto row = session_.program.events.find(event);
  const bool external =
      row != session_.program.events.end() && row->second.flags == analyzer::kExternalEvent;
  if (stored && !flagged && !external) return;  // tasks of a graph are issued in an allowed order
  switch (call.kind()) {
    case AclCallKind::kEventRecord: {
      const int64_t ticket = ++tickets_;
      newest_[event] = ticket;
      Push(stream, {nullptr, [this, ticket, event] {
                      left_.insert(ticket);
                      set_events_.insert(event);
                    }});
      return;
    }
    case AclCallKind::kEventWait: {
      const int64_t ticket = newest_[event];
      Push(stream, {[this, ticket, event, external] {
                      return external ? set_events_.count(event) != 0
                                      : ticket == 0 || left_.count(ticket) != 0;
                    },
                    [] {}});
      return;
    }
    default:
      Push(stream, {nullptr, [this, event] { set_events_.erase(event); }});
      return;
  }
}

void FlatWalk::Control(const AclCall& call) {
  const int64_t object = call.Integer(call.function->object);
  switch (call.kind()) {
    case AclCallKind::kEventRecord:
    case AclCallKind::kEventWait:
    case AclCallKind::kEventReset:
      if (call.call.model_id == 0) Event(call, /*stored=*/false, call.stream());
      return;
    case AclCallKind::kNotifyRecord:
      if (call.call.model_id != 0) return;
      Push(call.stream(), {nullptr, [this, object] { ++notifies_[object]; }});
      return;
    case AclCallKind::kNotifyWait:
      if (call.call.model_id != 0) return;
      Push(call.stream(), {[this, object] { return notifies_[object] > 0; },
                           [this, object] { notifies_[object] = 0; }});
      return;
    case AclCallKind::kValueWait:
      if (call.call.model_id != 0) return;
      Push(call.stream(), {[this, &call] { return ValueReached(call); }, [] {}});
      return;
    case AclCallKind::kUpdateBegin:
      updates_[call.stream()].clear();
      return;
    case AclCallKind::kUpdateEnd: {
      auto calls = std::make_shared<std::vector<int64_t>>(std::move(updates_[call.stream()]));
      updates_.erase(call.stream());
      Push(call.stream(),
           {nullptr, [this, calls, group = call.group] { group_calls_[group] = *calls; }});
      return;
    }
    case AclCallKind::kExecute:
      Execute(call);
      return;
    case AclCallKind::kStreamDestroy:
      if (IsForced(call)) {
        queues_.erase(call.stream());
      } else {
        WaitForStream(call, call.stream());
      }
      return;
    default:
      return;  // handles need no work: there is one stream and no graph
  }
}

void FlatWalk::Execute(const AclCall& call) {
  const auto model = session_.program.models.find(call.Integer(call.function->object));
  if (model == session_.program.models.end()) {
    throw Error(ErrorKind::kTrace, session_.program.Describe(call) +
                                       " executes a graph whose capture the trace does not hold");
  }
  ++session_.report.acl.executions;
  const auto contents = std::make_shared<const HostContents>(host_contents_);
  for (const int64_t index : model->second.calls) {
    const AclCall& stored = session_.program.calls[index];
    const AclCallKind kind = stored.kind();
    if (kind == AclCallKind::kEventRecord || kind == AclCallKind::kEventWait ||
        kind == AclCallKind::kEventReset) {
      Event(stored, /*stored=*/true, call.stream());
      continue;
    }
    if (kind == AclCallKind::kValueWait) {
      Push(call.stream(), {[this, &stored] { return ValueReached(stored); }, [] {}});
      continue;
    }
    if (kind == AclCallKind::kNotifyRecord || kind == AclCallKind::kNotifyWait) continue;
    if (kind >= AclCallKind::kStreamCreate) continue;
    Push(call.stream(), {nullptr, [this, &stored, contents] {
                           const auto updated = group_calls_.find(stored.group);
                           if (stored.group < 0 || updated == group_calls_.end()) {
                             SubmitStored(stored, *contents);
                             return;
                           }
                           const auto& calls = session_.program.groups[stored.group].calls;
                           const auto place = static_cast<size_t>(
                               std::find(calls.begin(), calls.end(), stored.index) - calls.begin());
                           if (place < updated->second.size()) {
                             SubmitStored(session_.program.calls[updated->second[place]],
                                          *contents);
                           }
                         }});
  }
  Push(call.stream(), {nullptr, [this, &call] {
                         AclTask task;
                         task.call = &call;
                         task.work = AclTask::Work::kNothing;
                         task.takes = TakesAfterExecution(call);
                         if (!task.takes.empty()) Submit(std::move(task));
                       }});
}

// Submits a stored task. A captured copy from pinned memory copies the content that the memory had
// when the graph was executed.
void FlatWalk::SubmitStored(const AclCall& call, const HostContents& contents) {
  session_.known.AddWrites(call);
  for (AclTask& task : session_.binder.BindStored(call)) {
    const analyzer::AclUse* from = call.Use(2);
    if (task.work == AclTask::Work::kUpload && task.content == nullptr && from != nullptr) {
      const auto content = contents.find(from->tensor.buffer_id);
      if (content != contents.end()) {
        task.content = content->second;
        task.content_at = static_cast<size_t>(from->layout->FirstByte());
        task.from = nullptr;
      }
    }
    Submit(std::move(task));
  }
}

void FlatWalk::FeedHost(const AclCall& call, int64_t buffer, int64_t first, const Bytes& bytes) {
  const Rooms::Room& room = session_.rooms.Of(buffer);
  Bytes& content = host_contents_[buffer];
  auto image = content == nullptr
                   ? std::make_shared<std::vector<uint8_t>>(room.data, room.data + room.bytes)
                   : std::make_shared<std::vector<uint8_t>>(*content);
  std::memcpy(image->data() + first, bytes->data(), bytes->size());
  content = image;
  if (call.kind() == AclCallKind::kExecute) return;
  std::memcpy(room.data + first, bytes->data(), bytes->size());
}

void FlatWalk::Stuck(const AclCall& call, const std::string& what) const {
  throw Error(ErrorKind::kTrace, session_.program.Describe(call) + " waits for " + what +
                                     " that nothing in the trace releases; replay with --streams "
                                     "recorded");
}

void FlatWalk::WaitForStream(const AclCall& call, int64_t stream) {
  for (const auto& [id, queue] : queues_) {
    if (!queue.empty() && (stream == 0 || stream == id)) {
      Stuck(call, "work of stream " + std::to_string(id));
    }
  }
  sink_.Flush();
  session_.CheckWait(
      session_.device.api().aclrtSynchronizeStream(session_.handles.Stream(kFlatStream)),
      "aclrtSynchronizeStream");
  session_.in_flight.Synced(kFlatStream);
}

void FlatWalk::WaitForEvent(const AclCall& call, int64_t event) {
  const int64_t ticket = newest_[event];
  if (ticket != 0 && left_.count(ticket) == 0) {
    Stuck(call, "event " + std::to_string(event));
  }
  sink_.Flush();
  session_.CheckWait(
      session_.device.api().aclrtSynchronizeStream(session_.handles.Stream(kFlatStream)),
      "aclrtSynchronizeStream");
  session_.in_flight.Synced(kFlatStream);
}

void FlatWalk::Finish() {
  for (const auto& [id, queue] : queues_) {
    if (!queue.empty()) {
      Stuck(session_.program.calls.back(), "work of stream " + std::to_string(id));
    }
  }
}

}  // namespace acltape::replayer
