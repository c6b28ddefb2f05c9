// Calls that fail, and a program that goes on: wrong arguments, nothing left of a resource, a call
// that a capture refuses, a broken capture, a kernel that fails eagerly, in a replay, in another
// thread's stream and on a stream that stops at the first failure.
//
//   error_handling
//
// It takes every stream and every byte the device has, so it is quick on a device with few.
#include <initializer_list>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_index_select.h"
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

// out = rows[index]: a kernel that fails when the index in device memory is none of a row.
class Selection {
 public:
  static constexpr int64_t kRows = 4;

  Selection() {
    const int64_t sizes[] = {kRows, 2};
    const int64_t one_row[] = {1, 2};
    const int64_t one[] = {1};
    rows_ = MakeTensor(ACL_FLOAT, 2, sizes, blocks_[0]);
    index_ = MakeTensor(ACL_INT64, 1, one, blocks_[1]);
    out_ = MakeTensor(ACL_FLOAT, 2, one_row, blocks_[2]);
    const float host[kRows * 2] = {0, 1, 10, 11, 20, 21, 30, 31};
    CHECK_ACL(aclrtMemcpy(blocks_[0], sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  ~Selection() {
    for (aclTensor* tensor : {rows_, index_, out_}) CHECK_ACL(aclDestroyTensor(tensor));
    for (void* block : blocks_) CHECK_ACL(aclrtFree(block));
  }

  void Submit(aclrtStream stream) { RUN_OP(stream, aclnnIndexSelect, rows_, 0, index_, out_); }

  void SetIndex(int64_t index) {
    CHECK_ACL(
        aclrtMemcpy(blocks_[1], sizeof index, &index, sizeof index, ACL_MEMCPY_HOST_TO_DEVICE));
  }

  float Result() {
    float host[2] = {};
    CHECK_ACL(aclrtMemcpy(host, sizeof host, blocks_[2], sizeof host, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(host[1] == host[0] + 1);
    return host[0];
  }

  // The kernel works with this row.
  void ExpectRow(aclrtStream stream, int64_t row) {
    SetIndex(row);
    Submit(stream);
    CHECK_ACL(aclrtSynchronizeStream(stream));
    CHECK(Result() == 10 * static_cast<float>(row));
  }

 private:
  void* blocks_[3] = {MallocDevice(kRows * 2 * sizeof(float)), MallocDevice(sizeof(int64_t)),
                      MallocDevice(2 * sizeof(float))};
  aclTensor* rows_;
  aclTensor* index_;
  aclTensor* out_;
};

// A kernel that fails is reported by the next synchronisation, once; the stream works on.
void FailingKernel(aclrtStream stream) {
  Selection selection;
  selection.ExpectRow(stream, 1);
  selection.SetIndex(1000);
  selection.Submit(stream);
  Expect(ACL_ERROR_RT_AICORE_EXCEPTION, aclrtSynchronizeStream(stream), "failing kernel");
  CHECK_ACL(aclrtSynchronizeStream(stream));
  selection.ExpectRow(stream, 2);

  aclmdlRI model = nullptr;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  selection.Submit(stream);
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  for (int64_t index : {3, 1000, 0}) {
    selection.SetIndex(index);
    CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
    if (index == 1000) {
      Expect(ACL_ERROR_RT_MODEL_EXECUTE, aclrtSynchronizeStream(stream),
             "failing kernel in a replay");
    } else {
      CHECK_ACL(aclrtSynchronizeStream(stream));
      CHECK(selection.Result() == 10 * static_cast<float>(index));
    }
  }
  CHECK_ACL(aclmdlRIDestroy(model));
}

// Codes and messages belong to the thread that made the call.
void FailuresInAnotherThread(aclrtStream stream) {
  CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) != ACL_SUCCESS);
  std::thread([] {
    void* block = nullptr;
    Expect(ACL_ERROR_RT_CONTEXT_NULL, aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST),
           "thread without a device");
    CHECK_ACL(aclrtSetDevice(0));
    aclrtStream own = nullptr;
    CHECK_ACL(aclrtCreateStream(&own));
    {
      Selection selection;
      selection.SetIndex(-1000);
      selection.Submit(own);
      Expect(ACL_ERROR_RT_AICORE_EXCEPTION, aclrtSynchronizeStream(own),
             "failing kernel of another thread");
      selection.ExpectRow(own, 3);
    }
    CHECK_ACL(aclrtDestroyStream(own));
    CHECK_ACL(aclrtResetDevice(0));
  }).join();
  CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == ACL_SUCCESS);
  CHECK_ACL(aclrtSynchronizeStream(stream));
}

// After a failure on a stream in stop mode the whole context refuses work until the device is
// reset.
void StopAtFailure() {
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  CHECK_ACL(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
  Selection selection;
  selection.SetIndex(1000);
  selection.Submit(stream);
  Expect(ACL_ERROR_RT_AICORE_EXCEPTION, aclrtSynchronizeStream(stream), "failure in stop mode");
  aclrtEvent event = nullptr;
  CHECK_ACL(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  Expect(ACL_ERROR_RT_AICORE_EXCEPTION, aclrtRecordEvent(event, stream), "task after it");
  CHECK_ACL(aclrtDestroyEvent(event));
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
  FailingKernel(stream);
  FailuresInAnotherThread(stream);
  StopAtFailure();
  FreeWorkspaces();

  CHECK_ACL(aclrtResetDeviceForce(0));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  {
    Selection selection;
    selection.ExpectRow(stream, 1);
  }
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("error_handling: passed\n");
  return 0;
}
