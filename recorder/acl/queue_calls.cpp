#include "recorder/acl/queue_calls.h"

#include <stdlib.h>

#include "acl/acl.h"
#include "acl/acl_tdt_queue.h"
#include "recorder/acl/memory.h"

namespace {

using namespace acltape::acl_agent;

// True for memory of a device that holds so many bytes. What does not is refused by the library.
bool IsDeviceMemory(const void* data, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(data);
  Block block;
  return FindBlock(address, &block) && block.device != 0 &&
         bytes <= block.begin + block.bytes - address;
}

}  // namespace

extern "C" {

// The message comes into memory of the host first, and the wrapper of aclrtMemcpy records the copy.
aclError acltdtDequeueData(uint32_t qid, void* data, size_t dataSize, size_t* retDataSize,
                           void* userData, size_t userDataSize, int32_t timeout) {
  const auto real =
      reinterpret_cast<decltype(&acltdtDequeueData)>(Real(QueueFunctionNumber(/*dequeue=*/0)));
  const bool staged = retDataSize != nullptr && IsDeviceMemory(data, dataSize);
  void* stage = staged ? malloc(dataSize) : nullptr;
  if (stage == nullptr) {
    return real(qid, data, dataSize, retDataSize, userData, userDataSize, timeout);
  }
  aclError result = real(qid, stage, dataSize, retDataSize, userData, userDataSize, timeout);
  if (result == ACL_SUCCESS) {
    result = aclrtMemcpy(data, dataSize, stage, *retDataSize, ACL_MEMCPY_HOST_TO_DEVICE);
  }
  free(stage);
  return result;
}

}  // extern "C"

namespace acltape::acl_agent {

const WrappedFunction kQueueFunctions[] = {
    {"acltdtDequeueData", reinterpret_cast<void*>(&::acltdtDequeueData)},
    {nullptr, nullptr},
};

}  // namespace acltape::acl_agent
