#include "replayer/acl_level/handles.h"

#include "analyzer/acl/acl_order.h"

namespace acltape::replayer::acl_level {

using analyzer::AclCall;
using analyzer::AclCallKind;
using analyzer::AclVariant;

namespace {

// The flags for fast launch and fast sync. The other flags make streams that do not run work by
// themselves.
constexpr uint32_t kPlainStreamFlags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC;

}  // namespace

Handles::~Handles() {
  for (const auto& [id, stream] : streams_) device_.work().EndStream(stream.get());
  models.clear();  // before the events and streams
}

aclrtStream Handles::Stream(int64_t id) {
  const auto [found, created] = streams_.try_emplace(id);
  if (found->second.get() == nullptr) {
    const auto row = program_.streams.find(id);
    const auto flags = row == program_.streams.end() ? 0 : static_cast<uint32_t>(row->second.flags);
    // A stream that is bound to a model keeps all its flags: it must not run work by itself.
    const bool bound = program_.bound_streams.count(id) != 0;
    found->second = MakeStream(device_.work(), bound ? flags : flags & kPlainStreamFlags);
  }
  return found->second.get();
}

Event& Handles::EventOf(int64_t id) {
  const auto found = events_.find(id);
  if (found != events_.end()) return found->second;
  // The replay makes an event of the old kind where the trace tells that it was one. Others have no
  // reset (rule EVT-08).
  const analyzer::EventKinds& kinds = program_.event_kinds;
  if (!kinds.IsOld(id)) return events_.try_emplace(id, device_).first->second;
  const auto flags = static_cast<uint32_t>(kinds.FlagsOf(id));
  return events_.try_emplace(id, device_, flags, kinds.MakerOf(id)).first->second;
}

aclrtNotify Handles::Notify(int64_t handle) {
  const auto [found, fresh] = notifies_.try_emplace(handle);
  if (fresh) {
    aclrtNotify notify = nullptr;
    device_.work().CreateNotify(0, &notify).Check();
    found->second = OwnedNotify(device_.work(), notify);
  }
  return found->second.get();
}

void Handles::SetOlderObjects() {
  const analyzer::SetBefore set = analyzer::FindSetBefore(program_);
  if (set.events.empty() && set.notifies.empty()) return;
  const OwnedStream stream = MakeStream(device_.work(), std::nullopt);
  for (const int64_t event : set.events) EventOf(event).Record(stream.get());
  for (const int64_t notify : set.notifies) {
    device_.work().RecordNotify(Notify(notify), stream.get()).Check();
  }
  device_.work().WaitForStream(stream.get()).Check();
}

void Handles::Create(const AclCall& call) {
  const int64_t id = call.Integer(call.function->object);
  const auto flags = static_cast<uint32_t>(call.Integer(call.function->detail));
  if (call.kind() == AclCallKind::kStreamCreate) {
    Stream(call.stream());
  } else if (call.kind() == AclCallKind::kNotifyCreate) {
    aclrtNotify notify = nullptr;
    device_.work().CreateNotify(flags, &notify).Check();
    notifies_[id] = OwnedNotify(device_.work(), notify);
  } else {
    events_.insert_or_assign(id, Event(device_, flags, call.op->name));
  }
}

void Handles::Destroy(const AclCall& call) {
  const DeviceWork& work = device_.work();
  const auto drop = [](auto& map, int64_t id, const auto& destroy) {
    const auto found = map.find(id);
    if (found == map.end()) return;
    destroy(found->second.get()).Check();
    found->second.Release();
    map.erase(found);
  };
  const int64_t id = call.Integer(call.function->object);
  switch (call.kind()) {
    case AclCallKind::kStreamDestroy:
      drop(streams_, call.stream(), [&](aclrtStream stream) {
        return IsForced(call) ? work.DestroyStreamNow(stream) : work.DestroyStream(stream);
      });
      return;
    case AclCallKind::kEventDestroy:
      drop(events_, id, [&](aclrtEvent event) { return work.DestroyEvent(event); });
      return;
    case AclCallKind::kNotifyDestroy:
      drop(notifies_, id, [&](aclrtNotify notify) { return work.DestroyNotify(notify); });
      return;
    default:
      if (const auto found = models.find(id); found != models.end()) {
        found->second.Destroy();
        models.erase(found);
      }
      return;
  }
}

}  // namespace acltape::replayer::acl_level
