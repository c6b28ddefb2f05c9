// Calls that fail, and a program that goes on: wrong arguments, nothing left of a resource, a call
// that a capture refuses, a broken capture.
//
//   error_handling
//
// It takes every stream and every byte the device has, so it is quick on a device with few.
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 256;
constexpr size_t kBytes = kCount * sizeof(float);

// The call fails with this code and leaves a message.
void Expect(aclError expected, aclError code, const char* what) {
  const char* message = aclGetRecentErrMsg();
  printf("%s: %d\n", what, static_cast<int>(code));
  if (code != expected || message == nullptr || *message == '\0') {
    fprintf(stderr, "%s returned %d instead of %d: %s\n", what, static_cast<int>(code),
            static_cast<int>(expected), message != nullptr ? message : "no message");
    exit(1);
  }
}

void BeforeAnyDevice() {
  aclrtStream stream = nullptr;
  Expect(ACL_ERROR_RT_CONTEXT_NULL, aclrtCreateStream(&stream), "stream without a context");
  Expect(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(1000), "device 1000");
  Expect(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr), "second aclInit");
}

void WrongArguments(aclrtStream stream) {
  void* block = nullptr;
  aclrtEvent event = nullptr;
  Expect(ACL_ERROR_INVALID_PARAM, aclrtMalloc(nullptr, 64, ACL_MEM_MALLOC_HUGE_FIRST),
         "malloc to NULL");
  Expect(ACL_ERROR_INVALID_PARAM, aclrtMalloc(&block, 0, ACL_MEM_MALLOC_HUGE_FIRST),
         "malloc of nothing");
  Expect(ACL_ERROR_INVALID_PARAM, aclrtFree(nullptr), "free of NULL");
  Expect(ACL_ERROR_RT_PARAM_INVALID, aclrtCreateEventExWithFlag(&event, 0x10), "event flag");
  Expect(ACL_ERROR_INVALID_PARAM, aclrtRecordEvent(nullptr, stream), "record of NULL");
  Expect(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeStreamWithTimeout(stream, 0), "time-out 0");

  block = MallocDevice(64);
  float host[32] = {};
  Expect(ACL_ERROR_RT_PARAM_INVALID,
         aclrtMemcpy(block, 64, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE), "copy too long");
  CHECK_ACL(aclrtMemcpy(block, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_ACL(aclrtFree(block));

  // The last code stays until it is asked for.
  CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == ACL_SUCCESS);
}

void WrongOperands(aclrtStream stream) {
  void* blocks[3];
  aclTensor* tensors[3];
  for (int i = 0; i < 3; ++i) {
    blocks[i] = MallocDevice(kBytes);
    CHECK_ACL(aclrtMemset(blocks[i], kBytes, 0, kBytes));
    tensors[i] = MakeVector(i == 1 ? kCount / 2 : kCount, blocks[i]);
  }
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  Expect(ACLNN_ERR_PARAM_NULLPTR,
         aclnnMulGetWorkspaceSize(tensors[0], nullptr, tensors[2], &bytes, &executor),
         "operator without an operand");
  Expect(ACLNN_ERR_PARAM_INVALID,
         aclnnMulGetWorkspaceSize(tensors[0], tensors[1], tensors[2], &bytes, &executor),
         "operands that do not fit");
  RUN_OP(stream, aclnnMul, tensors[0], tensors[2], tensors[2]);
  CHECK_ACL(aclrtSynchronizeStream(stream));
  for (int i = 0; i < 3; ++i) {
    CHECK_ACL(aclDestroyTensor(tensors[i]));
    CHECK_ACL(aclrtFree(blocks[i]));
  }
}

void NoStreamLeft() {
  std::vector<aclrtStream> streams;
  aclrtStream stream = nullptr;
  aclError code = ACL_SUCCESS;
  while (streams.size() < 100000 && (code = aclrtCreateStream(&stream)) == ACL_SUCCESS) {
    streams.push_back(stream);
  }
  Expect(ACL_ERROR_RT_NO_STREAM_RESOURCE, code, "no stream left");
  // One back, and it works again.
  CHECK(!streams.empty());
  CHECK_ACL(aclrtDestroyStream(streams.back()));
  CHECK_ACL(aclrtCreateStream(&streams.back()));
  CHECK_ACL(aclrtSynchronizeStream(streams.back()));
  for (aclrtStream each : streams) CHECK_ACL(aclrtDestroyStream(each));
}

void NoMemoryLeft() {
  size_t available = 0;
  size_t total = 0;
  CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &available, &total));
  void* block = nullptr;
  Expect(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMalloc(&block, total + 1, ACL_MEM_MALLOC_HUGE_FIRST),
         "more memory than there is");
  CHECK(block == nullptr);

  std::vector<void*> blocks;
  aclError code = ACL_SUCCESS;
  while (blocks.size() < 100 &&
         (code = aclrtMalloc(&block, available / 8, ACL_MEM_MALLOC_HUGE_FIRST)) == ACL_SUCCESS) {
    blocks.push_back(block);
  }
  Expect(ACL_ERROR_RT_MEMORY_ALLOCATION, code, "no memory left");
  CHECK(blocks.size() == 7 || blocks.size() == 8);
  CHECK_ACL(aclrtFree(blocks.back()));
  blocks.back() = MallocDevice(available / 8);
  for (void* each : blocks) CHECK_ACL(aclrtFree(each));
}

aclmdlRICaptureStatus Status(aclrtStream stream) {
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  CHECK_ACL(aclmdlRICaptureGetInfo(stream, &status, nullptr));
  return status;
}

// Calls that a capture refuses leave it alone: its graph works.
void RefusedInACapture(aclrtStream stream) {
  void* device = MallocDevice(kBytes);
  aclTensor* tensor = MakeVector(kCount, device);
  aclScalar* one = MakeScalar(1);
  float host[kCount] = {};
  aclmdlRI model = nullptr;
  CHECK_ACL(aclrtMemset(device, kBytes, 0, kBytes));

  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  RUN_OP(stream, aclnnInplaceAdds, tensor, one, one);
  Expect(ACL_ERROR_RT_STREAM_CAPTURED, aclrtSynchronizeStream(stream), "synchronise in a capture");
  Expect(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
         aclrtMemcpy(host, kBytes, device, kBytes, ACL_MEMCPY_DEVICE_TO_HOST), "copy in a capture");
  Expect(ACL_ERROR_RT_PARAM_INVALID,
         aclrtMemcpyAsync(host, kBytes, device, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream),
         "pageable copy in a capture");
  Expect(ACL_ERROR_RT_STREAM_CAPTURED, aclrtDestroyStream(stream), "destroy in a capture");
  CHECK(Status(stream) == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  RUN_OP(stream, aclnnInplaceAdds, tensor, one, one);
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));

  CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK_ACL(aclrtMemcpy(host, kBytes, device, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(host[0] == 2 && host[kCount - 1] == 2);
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclDestroyTensor(tensor));
  CHECK_ACL(aclDestroyScalar(one));
  CHECK_ACL(aclrtFree(device));
}

// A capture without its join, and two captures that exchange an event, are lost; the streams are
// not.
void BrokenCaptures(aclrtStream stream) {
  aclrtStream other = nullptr;
  aclrtEvent event = nullptr;
  aclmdlRI model = nullptr;
  CHECK_ACL(aclrtCreateStream(&other));
  CHECK_ACL(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));

  Expect(ACL_ERROR_RT_STREAM_NOT_CAPTURED, aclmdlRICaptureEnd(stream, &model), "end without begin");

  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  CHECK_ACL(aclrtRecordEvent(event, stream));
  CHECK_ACL(aclrtStreamWaitEvent(other, event));
  Expect(ACL_ERROR_RT_STREAM_UNJOINED, aclmdlRICaptureEnd(stream, &model), "end without the join");
  CHECK(model == nullptr);

  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  CHECK_ACL(aclmdlRICaptureBegin(other, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  CHECK_ACL(aclrtRecordEvent(event, stream));
  Expect(ACL_ERROR_STREAM_CAPTURE_CONFLICT, aclrtStreamWaitEvent(other, event),
         "event of another capture");
  Expect(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, aclmdlRICaptureEnd(stream, &model),
         "end of a broken capture");
  Expect(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, aclmdlRICaptureEnd(other, &model),
         "end of the other one");

  CHECK(Status(stream) == ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  CHECK_ACL(aclrtRecordEvent(event, stream));
  CHECK_ACL(aclrtStreamWaitEvent(other, event));
  CHECK_ACL(aclrtSynchronizeStream(other));
  CHECK_ACL(aclrtDestroyEvent(event));
  CHECK_ACL(aclrtDestroyStream(other));
}

}  // namespace

int main() {
  aclrtStream stream = nullptr;
  CHECK_ACL(aclInit(nullptr));
  BeforeAnyDevice();
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  WrongArguments(stream);
  WrongOperands(stream);
  NoStreamLeft();
  NoMemoryLeft();
  RefusedInACapture(stream);
  BrokenCaptures(stream);
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("error_handling: passed\n");
  return 0;
}
