// Streams that work side by side and wait for each other by events.
//
//   multi_stream             one host thread, three streams, fork and join
//   multi_stream --threads   four host threads, each with streams of its own
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 4096;
constexpr size_t kBytes = kCount * sizeof(float);

// doubled = 2 x on the main stream; then, side by side, raised = doubled + 1 and
// squared = doubled * doubled; then out = raised + squared on the main stream again.
class ForkJoin {
 public:
  ForkJoin() {
    for (aclrtStream* stream : {&main_, &left_, &right_}) CHECK_ACL(aclrtCreateStream(stream));
    const uint32_t flags = ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE;
    for (aclrtEvent* event : {&begin_, &forked_, &left_done_, &right_done_, &end_}) {
      CHECK_ACL(aclrtCreateEventExWithFlag(event, flags));
    }
    for (void*& block : device_) block = MallocDevice(kBytes);
    host_ = static_cast<float*>(MallocPinned(kBytes));
    for (int i = 0; i < 5; ++i) tensors_[i] = MakeVector(kCount, device_[i]);
    one_ = MakeScalar(1);
    two_ = MakeScalar(2);
  }

  ~ForkJoin() {
    for (aclTensor* tensor : tensors_) CHECK_ACL(aclDestroyTensor(tensor));
    CHECK_ACL(aclDestroyScalar(one_));
    CHECK_ACL(aclDestroyScalar(two_));
    for (void* block : device_) CHECK_ACL(aclrtFree(block));
    CHECK_ACL(aclrtFreeHost(host_));
    for (aclrtEvent event : {begin_, forked_, left_done_, right_done_, end_}) {
      CHECK_ACL(aclrtDestroyEvent(event));
    }
    for (aclrtStream stream : {main_, left_, right_}) CHECK_ACL(aclrtDestroyStream(stream));
  }

  // The sum of the results for x[i] = start + i % 16.
  double Round(int start) {
    for (int64_t i = 0; i < kCount; ++i) host_[i] = static_cast<float>(start + i % 16);
    CHECK_ACL(aclrtRecordEvent(begin_, main_));
    CHECK_ACL(
        aclrtMemcpyAsync(device_[0], kBytes, host_, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, main_));
    RUN_OP(main_, aclnnMuls, tensors_[0], two_, tensors_[1]);
    CHECK_ACL(aclrtRecordEvent(forked_, main_));
    CHECK_ACL(aclrtStreamWaitEvent(left_, forked_));
    CHECK_ACL(aclrtStreamWaitEvent(right_, forked_));
    RUN_OP(left_, aclnnAdds, tensors_[1], one_, one_, tensors_[2]);
    RUN_OP(right_, aclnnMul, tensors_[1], tensors_[1], tensors_[3]);
    CHECK_ACL(aclrtRecordEvent(left_done_, left_));
    CHECK_ACL(aclrtRecordEvent(right_done_, right_));
    CHECK_ACL(aclrtStreamWaitEvent(main_, left_done_));
    CHECK_ACL(aclrtStreamWaitEvent(main_, right_done_));
    RUN_OP(main_, aclnnAdd, tensors_[2], tensors_[3], one_, tensors_[4]);
    CHECK_ACL(
        aclrtMemcpyAsync(host_, kBytes, device_[4], kBytes, ACL_MEMCPY_DEVICE_TO_HOST, main_));
    CHECK_ACL(aclrtRecordEvent(end_, main_));
    CHECK_ACL(aclrtSynchronizeEvent(end_));

    float milliseconds = -1;
    CHECK_ACL(aclrtEventElapsedTime(&milliseconds, begin_, end_));
    CHECK(milliseconds >= 0);
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    CHECK_ACL(aclrtQueryEventStatus(end_, &status));
    CHECK(status == ACL_EVENT_RECORDED_STATUS_COMPLETE);

    double sum = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      float doubled = 2 * static_cast<float>(start + i % 16);
      CHECK(host_[i] == doubled + 1 + doubled * doubled);
      sum += host_[i];
    }
    return sum;
  }

 private:
  aclrtStream main_ = nullptr, left_ = nullptr, right_ = nullptr;
  aclrtEvent begin_ = nullptr, forked_ = nullptr, left_done_ = nullptr, right_done_ = nullptr,
             end_ = nullptr;
  void* device_[5] = {};
  float* host_ = nullptr;
  aclTensor* tensors_[5] = {};
  aclScalar *one_ = nullptr, *two_ = nullptr;
};

void OneThread() {
  ForkJoin program;
  for (int round = 0; round < 6; ++round) {
    printf("round %d: %.0f\n", round, program.Round(round));
  }
}

void FourThreads() {
  constexpr int kThreads = 4;
  double sums[kThreads] = {};
  std::vector<std::thread> threads;
  for (int index = 0; index < kThreads; ++index) {
    threads.emplace_back([index, &sums] {
      CHECK_ACL(aclrtSetDevice(0));
      {
        ForkJoin program;
        for (int round = 0; round < 8; ++round) sums[index] += program.Round(10 * index + round);
      }
      CHECK_ACL(aclrtResetDevice(0));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int index = 0; index < kThreads; ++index) printf("thread %d: %.0f\n", index, sums[index]);
}

}  // namespace

int main(int argc, char** argv) {
  bool threads = argc == 2 && strcmp(argv[1], "--threads") == 0;
  CHECK(argc == 1 || threads);
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  if (threads) {
    FourThreads();
  } else {
    OneThread();
  }
  FreeWorkspaces();
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("multi_stream: passed\n");
  return 0;
}
