// A product on one stream, an absolute value and a difference on another, and their sum after
// both:
//
//   side    product = a x b
//   main    total = (|a| - b) + product
//
//   seed_streams [--capture] [--missing-wait]
//
// --capture       captures a step as one graph and executes that
// --missing-wait  adds without waiting for the product, and waits after the sum instead; then the
//                 result depends on which stream is faster, and is not printed
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_abs.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_sub.h"
#include "sample.h"

namespace {

constexpr int64_t kSide = 128;
constexpr size_t kBytes = kSide * kSide * sizeof(float);

enum Block { kA, kB, kProduct, kSize, kDifference, kTotal, kBlocks };

class Program {
 public:
  explicit Program(bool missing_wait) : missing_wait_(missing_wait) {
    CHECK_ACL(aclrtCreateStream(&main_));
    CHECK_ACL(aclrtCreateStream(&side_));
    for (aclrtEvent* event : {&forked_, &done_}) {
      CHECK_ACL(aclrtCreateEventExWithFlag(event, ACL_EVENT_SYNC));
    }
    const int64_t sizes[2] = {kSide, kSide};
    for (int i = 0; i < kBlocks; ++i) {
      blocks_[i] = MallocDevice(kBytes);
      tensors_[i] = MakeTensor(ACL_FLOAT, 2, sizes, blocks_[i]);
    }
    host_ = static_cast<float*>(MallocPinned(kBytes));
    one_ = MakeScalar(1);
  }

  ~Program() {
    if (model_ != nullptr) CHECK_ACL(aclmdlRIDestroy(model_));
    for (int i = 0; i < kBlocks; ++i) {
      CHECK_ACL(aclDestroyTensor(tensors_[i]));
      CHECK_ACL(aclrtFree(blocks_[i]));
    }
    CHECK_ACL(aclDestroyScalar(one_));
    CHECK_ACL(aclrtFreeHost(host_));
    for (aclrtEvent event : {forked_, done_}) CHECK_ACL(aclrtDestroyEvent(event));
    for (aclrtStream stream : {main_, side_}) CHECK_ACL(aclrtDestroyStream(stream));
  }

  void Capture() {
    CHECK_ACL(aclmdlRICaptureBegin(main_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    Work();
    CHECK_ACL(aclmdlRICaptureEnd(main_, &model_));
  }

  // The sum of the results.
  double Step(int step) {
    for (const Block block : {kA, kB}) {
      for (int64_t i = 0; i < kSide * kSide; ++i) {
        host_[i] = static_cast<float>((i + step + block) % 5 - 2);
      }
      CHECK_ACL(aclrtMemcpyAsync(blocks_[block], kBytes, host_, kBytes, ACL_MEMCPY_HOST_TO_DEVICE,
                                 main_));
      CHECK_ACL(aclrtSynchronizeStream(main_));
    }
    if (model_ == nullptr) {
      Work();
    } else {
      CHECK_ACL(aclmdlRIExecuteAsync(model_, main_));
    }
    CHECK_ACL(
        aclrtMemcpyAsync(host_, kBytes, blocks_[kTotal], kBytes, ACL_MEMCPY_DEVICE_TO_HOST, main_));
    CHECK_ACL(aclrtSynchronizeStream(main_));
    double sum = 0;
    for (int64_t i = 0; i < kSide * kSide; ++i) sum += host_[i];
    return sum;
  }

 private:
  void Work() {
    constexpr int8_t kKeepPrecision = 0;
    CHECK_ACL(aclrtRecordEvent(forked_, main_));
    CHECK_ACL(aclrtStreamWaitEvent(side_, forked_));
    RUN_OP(side_, aclnnMatmul, tensors_[kA], tensors_[kB], tensors_[kProduct], kKeepPrecision);
    CHECK_ACL(aclrtRecordEvent(done_, side_));
    RUN_OP(main_, aclnnAbs, tensors_[kA], tensors_[kSize]);
    RUN_OP(main_, aclnnSub, tensors_[kSize], tensors_[kB], one_, tensors_[kDifference]);
    if (!missing_wait_) CHECK_ACL(aclrtStreamWaitEvent(main_, done_));
    RUN_OP(main_, aclnnAdd, tensors_[kDifference], tensors_[kProduct], one_, tensors_[kTotal]);
    if (missing_wait_) CHECK_ACL(aclrtStreamWaitEvent(main_, done_));
  }

  const bool missing_wait_;
  aclrtStream main_ = nullptr, side_ = nullptr;
  aclrtEvent forked_ = nullptr, done_ = nullptr;
  void* blocks_[kBlocks] = {};
  aclTensor* tensors_[kBlocks] = {};
  float* host_ = nullptr;
  aclScalar* one_ = nullptr;
  aclmdlRI model_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  bool capture = false;
  bool missing_wait = false;
  for (int i = 1; i < argc; ++i) {
    capture = capture || strcmp(argv[i], "--capture") == 0;
    missing_wait = missing_wait || strcmp(argv[i], "--missing-wait") == 0;
  }
  CHECK(argc == 1 + capture + missing_wait);
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  {
    Program program(missing_wait);
    if (capture) program.Capture();
    for (int step = 0; step < 5; ++step) {
      const double sum = program.Step(step);
      if (!missing_wait) printf("step %d: %.0f\n", step, sum);
    }
  }
  FreeWorkspaces();
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("seed_streams: passed\n");
  return 0;
}
