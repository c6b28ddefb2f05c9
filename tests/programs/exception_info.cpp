// A callback learns which kernel failed: its device, stream, thread and code, its function and its
// arguments. The program is run with a fault in the second aclnnMuls.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "acl/acl.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);

struct Seen {
  std::atomic<int> calls{0};
  uint32_t device = 0;
  uint32_t stream = 0;
  uint32_t thread = 0;
  uint32_t code = 0;
  uint32_t args_bytes = 0;
  char function[64] = "";
} seen;

void OnException(aclrtExceptionInfo* info) {
  seen.device = aclrtGetDeviceIdFromExceptionInfo(info);
  seen.stream = aclrtGetStreamIdFromExceptionInfo(info);
  seen.thread = aclrtGetThreadIdFromExceptionInfo(info);
  seen.code = aclrtGetErrorCodeFromExceptionInfo(info);
  void* args = nullptr;
  CHECK_ACL(aclrtGetArgsFromExceptionInfo(info, &args, &seen.args_bytes));
  CHECK(args != nullptr);
  aclrtFuncHandle function = nullptr;
  CHECK_ACL(aclrtGetFuncHandleFromExceptionInfo(info, &function));
  CHECK_ACL(aclrtGetFunctionName(function, sizeof seen.function, seen.function));
  ++seen.calls;
}

}  // namespace

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtExceptionInfoCallbackRegister(OnException));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  int32_t stream_id = -1;
  CHECK_ACL(aclrtStreamGetId(stream, &stream_id));

  void* blocks[3];
  aclTensor* tensors[3];
  for (int i = 0; i < 3; ++i) {
    blocks[i] = MallocDevice(kBytes);
    tensors[i] = MakeVector(kCount, blocks[i]);
  }
  auto* host = static_cast<float*>(MallocPinned(kBytes));
  for (int64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 4);
  aclScalar* three = MakeScalar(3);
  CHECK_ACL(aclrtMemcpyAsync(blocks[0], kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  RUN_OP(stream, aclnnMuls, tensors[0], three, tensors[1]);
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK(seen.calls == 0);

  RUN_OP(stream, aclnnMuls, tensors[1], three, tensors[2]);
  const int code = aclrtSynchronizeStream(stream);
  printf("synchronise: %d\n", code);
  CHECK(seen.calls == 1);
  CHECK(seen.stream == static_cast<uint32_t>(stream_id));
  CHECK(seen.thread == static_cast<uint32_t>(syscall(SYS_gettid)));
  printf("callback: device %u, code %u, function %s, %u bytes of arguments\n", seen.device,
         seen.code, seen.function, seen.args_bytes);

  // The stream goes on.
  RUN_OP(stream, aclnnMuls, tensors[1], three, tensors[2]);
  CHECK_ACL(aclrtMemcpyAsync(host, kBytes, blocks[2], kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  double sum = 0;
  for (int64_t i = 0; i < kCount; ++i) sum += host[i];
  printf("sum: %.0f\n", sum);
  CHECK(seen.calls == 1);

  CHECK_ACL(aclrtExceptionInfoCallbackUnregister(OnException));
  for (int i = 0; i < 3; ++i) {
    CHECK_ACL(aclDestroyTensor(tensors[i]));
    CHECK_ACL(aclrtFree(blocks[i]));
  }
  FreeWorkspaces();
  CHECK_ACL(aclDestroyScalar(three));
  CHECK_ACL(aclrtFreeHost(host));
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("exception_info: passed\n");
  return 0;
}
