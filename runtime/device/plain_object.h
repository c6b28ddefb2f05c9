// Objects of the interface that need no device: descriptions, buffers, attributes, configurations.
// Their handles are checked like those of the device's objects (GEN-02, GEN-09).
#pragma once

#include "runtime/device/call.h"
#include "runtime/live_objects.h"

namespace acltape::device {

// Never destroyed (INIT-09).
template <typename T>
LiveObjects<T>& Plain() {
  static LiveObjects<T>& objects = *new LiveObjects<T>;
  return objects;
}

// Fails with 100000 for NULL and 107017 for what is no live object of this kind.
template <typename T>
aclError CheckPlain(const T* handle, const char* call, const char* name) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, name));
  if (Plain<T>().Find(handle) != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %s %p is no live object of its kind", call, name,
              static_cast<const void*>(handle));
}

template <typename T>
aclError DestroyPlain(const T* handle, const char* call, const char* name) {
  if (handle != nullptr && Plain<T>().Destroy(handle)) return ACL_SUCCESS;
  return CheckPlain(handle, call, name);
}

// For functions that return no code: the value of a live object, else `otherwise` and the message.
template <typename T, typename Value, typename Otherwise>
auto ValueOr(const T* handle, const char* call, const char* name, Value value,
             Otherwise otherwise) {
  return CheckPlain(handle, call, name) == ACL_SUCCESS
             ? value(*handle)
             : static_cast<decltype(value(*handle))>(otherwise);
}

}  // namespace acltape::device
