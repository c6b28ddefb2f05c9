// Callbacks about states of streams and devices (CB-11, DEV-17).
#include "runtime/device/named_callbacks.h"

using namespace acltape::device;

namespace {

NamedCallbacks<aclrtStreamStateCallback>& StreamCallbacks() {
  static auto& callbacks = *new NamedCallbacks<aclrtStreamStateCallback>;
  return callbacks;
}

NamedCallbacks<aclrtDeviceStateCallback>& DeviceCallbacks() {
  static auto& callbacks = *new NamedCallbacks<aclrtDeviceStateCallback>;
  return callbacks;
}

void CallDeviceStateCallbacks(int32_t device, aclrtDeviceState state) {
  if (DeviceAt(device) == nullptr) return;
  DeviceCallbacks().ForEach(
      [&](aclrtDeviceStateCallback callback, void* args) { callback(device, state, args); });
}

// Calls the callbacks before the call, makes it, and calls them again after it if it succeeded.
template <typename Change>
aclError Changing(int32_t device, aclrtDeviceState before, aclrtDeviceState after,
                  const Change& change) {
  CallDeviceStateCallbacks(device, before);
  const aclError code = change();
  if (code == ACL_SUCCESS) CallDeviceStateCallbacks(device, after);
  return code;
}

aclError Reset(int32_t device, bool force) {
  return Changing(device, ACL_RT_DEVICE_STATE_RESET_PRE, ACL_RT_DEVICE_STATE_RESET_POST,
                  [&] { return ResetDevice(device, force); });
}

}  // namespace

namespace acltape::device {

void CallStreamStateCallbacks(const Stream& stream, aclrtStreamState state) {
  StreamCallbacks().ForEach([&](aclrtStreamStateCallback callback, void* args) {
    callback(stream.handle(), state, args);
  });
}

}  // namespace acltape::device

aclError aclrtSetDevice(int32_t deviceId) {
  ACLTAPE_CALL("aclrtSetDevice");
  return Changing(deviceId, ACL_RT_DEVICE_STATE_SET_PRE, ACL_RT_DEVICE_STATE_SET_POST,
                  [&] { return SetDevice(deviceId); });
}

aclError aclrtResetDevice(int32_t deviceId) {
  ACLTAPE_CALL("aclrtResetDevice");
  return Reset(deviceId, false);
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  ACLTAPE_CALL("aclrtResetDeviceForce");
  return Reset(deviceId, true);
}

aclError aclrtRegStreamStateCallback(const char* regName, aclrtStreamStateCallback callback,
                                     void* args) {
  ACLTAPE_CALL("aclrtRegStreamStateCallback");
  return StreamCallbacks().Set(regName, callback, args, kCall);
}

aclError aclrtRegDeviceStateCallback(const char* regName, aclrtDeviceStateCallback callback,
                                     void* args) {
  ACLTAPE_CALL("aclrtRegDeviceStateCallback");
  return DeviceCallbacks().Set(regName, callback, args, kCall);
}
