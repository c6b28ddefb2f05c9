#include "replayer/acl/handles.h"

namespace acltape::replayer {

using analyzer::AclCall;
using analyzer::AclCallKind;
using analyzer::AclVariant;

namespace {

// The flags for fast launch and fast sync. The other flags make streams that do not run work by
// themselves.
constexpr uint32_t kPlainStreamFlags = 0x3;

}  // namespace

Handles::~Handles() {
  const acl::Api& api = device_.api();
  for (const auto& [id, stream] : streams_) api.aclrtSynchronizeStream(stream);
  models.clear();
  for (const auto& [id, event] : events_) api.aclrtDestroyEvent(event);
  for (const auto& [id, notify] : notifies_) api.aclrtDestroyNotify(notify);
  for (const auto& [id, stream] : streams_) api.aclrtDestroyStream(stream);
}

aclrtStream Handles::Stream(int64_t id) {
  aclrtStream& stream = streams_[id];
  if (stream != nullptr) return stream;
  const auto row = program_.streams.find(id);
  const auto flags = row == program_.streams.end() ? 0 : static_cast<uint32_t>(row->second.flags);
  if (device_.api().aclrtCreateStreamWithConfig != nullptr) {
    device_.Check(device_.api().aclrtCreateStreamWithConfig(&stream, 0, flags & kPlainStreamFlags),
                  "aclrtCreateStreamWithConfig");
  } else {
    device_.Check(device_.api().aclrtCreateStream(&stream), "aclrtCreateStream");
  }
  return stream;
}

aclrtEvent Handles::Event(int64_t id) {
  aclrtEvent& event = events_[id];
  if (event != nullptr) return event;
  device_.Check(device_.api().aclrtCreateEventExWithFlag(&event, kWaitableEvent),
                "aclrtCreateEventExWithFlag");
  return event;
}

aclrtNotify Handles::Notify(int64_t handle) const {
  const auto found = notifies_.find(handle);
  return found == notifies_.end() ? nullptr : found->second;
}

void Handles::Create(const AclCall& call) {
  const acl::Api& api = device_.api();
  const int64_t id = call.Integer(call.function->object);
  const auto flags = static_cast<uint32_t>(call.Integer(call.function->detail));
  if (call.kind() == AclCallKind::kStreamCreate) {
    Stream(call.stream());
  } else if (call.kind() == AclCallKind::kNotifyCreate) {
    aclrtNotify& notify = notifies_[id];
    device_.Check(Needed(api.aclrtCreateNotify, program_, call)(&notify, flags),
                  "aclrtCreateNotify");
  } else if (call.function->variant == AclVariant::kOldEvent) {
    device_.Check(Needed(api.aclrtCreateEvent, program_, call)(&events_[id]), "aclrtCreateEvent");
  } else if (call.function->variant == AclVariant::kOldEventWithFlags) {
    device_.Check(Needed(api.aclrtCreateEventWithFlag, program_, call)(&events_[id], flags),
                  "aclrtCreateEventWithFlag");
  } else {
    device_.Check(Needed(api.aclrtCreateEventExWithFlag, program_, call)(&events_[id], flags),
                  "aclrtCreateEventExWithFlag");
  }
}

void Handles::Destroy(const AclCall& call) {
  const acl::Api& api = device_.api();
  const auto drop = [&](auto& map, int64_t id, auto destroy, const char* name) {
    const auto found = map.find(id);
    if (found == map.end()) return;
    device_.Check(destroy(found->second), name);
    map.erase(found);
  };
  const int64_t id = call.Integer(call.function->object);
  switch (call.kind()) {
    case AclCallKind::kStreamDestroy:
      drop(streams_, call.stream(),
           IsForced(call) ? Needed(api.aclrtDestroyStreamForce, program_, call)
                          : api.aclrtDestroyStream,
           "aclrtDestroyStream");
      return;
    case AclCallKind::kEventDestroy:
      drop(events_, id, api.aclrtDestroyEvent, "aclrtDestroyEvent");
      return;
    case AclCallKind::kNotifyDestroy:
      drop(notifies_, id, api.aclrtDestroyNotify, "aclrtDestroyNotify");
      return;
    default:
      if (const auto found = models.find(id); found != models.end()) {
        found->second.Destroy();
        models.erase(found);
      }
      return;
  }
}

}  // namespace acltape::replayer
