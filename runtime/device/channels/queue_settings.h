// The objects that programs describe queues and their routes with (QUE-02, QUE-06, QUE-07). They
// are plain values.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "acl/acl_tdt_queue.h"
#include "runtime/device/call.h"

struct tagMemQueueAttr {
  char name[128] = {};  // empty: one that no other queue has
  uint32_t depth = 8;
};

struct acltdtQueueRoute {
  uint32_t source;
  uint32_t destination;
  int32_t status;  // acltape::device::RouteStatus
};

struct acltdtQueueRouteList {
  std::vector<acltdtQueueRoute> routes;
};

struct acltdtQueueRouteQueryInfo {
  acltdtQueueRouteQueryMode mode;
  uint32_t source;
  uint32_t destination;
  bool has_mode;
  bool has_source;
  bool has_destination;
};

namespace acltape::device {

enum RouteStatus : int32_t { kRouteUnbound = 0, kRouteBound = 1 };

// Reads a value of the program, which says its size.
template <typename T>
aclError ReadSetting(const void* from, size_t bytes, T* to, const char* call) {
  if (bytes != sizeof(T)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: the value has %zu bytes, and len is %zu", call,
                sizeof(T), bytes);
  }
  std::memcpy(to, from, sizeof(T));
  return ACL_SUCCESS;
}

// Writes a value into `room` bytes of the program and says how many it took.
template <typename T>
aclError WriteSetting(const T& from, size_t room, void* to, size_t* written, const char* call) {
  if (room < sizeof(T)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: the value has %zu bytes, and len is %zu", call,
                sizeof(T), room);
  }
  std::memcpy(to, &from, sizeof(T));
  *written = sizeof(T);
  return ACL_SUCCESS;
}

}  // namespace acltape::device
