// Everything that a program of the ACL interface can hold in one step: an eager part on two
// streams, a captured graph on two streams, an update of a task of the graph, copies and fills.
//
//   mixed_work             six steps
//   mixed_work --eager     the same sums without a graph
//
// A step computes, for its input x:
//   eager    left = 2 x, and beside it right = x * x; both = left + right
//   graph    scaled = both * factor (updated before each step), and beside it shifted = both + 1;
//            out = scaled + shifted
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 1024;
constexpr size_t kBytes = kCount * sizeof(float);

enum Block { kInput, kLeft, kRight, kBoth, kScaled, kShifted, kOut, kKept, kBlocks };

class Program {
 public:
  Program() {
    CHECK_ACL(aclrtCreateStream(&main_));
    CHECK_ACL(aclrtCreateStream(&side_));
    CHECK_ACL(aclrtCreateStream(&update_));
    for (aclrtEvent* event : {&forked_, &joined_}) {
      CHECK_ACL(aclrtCreateEventExWithFlag(event, ACL_EVENT_SYNC));
    }
    for (int i = 0; i < kBlocks; ++i) {
      blocks_[i] = MallocDevice(kBytes);
      tensors_[i] = MakeVector(kCount, blocks_[i]);
    }
    host_ = static_cast<float*>(MallocPinned(kBytes));
    one_ = MakeScalar(1);
    two_ = MakeScalar(2);
  }

  ~Program() {
    if (model_ != nullptr) CHECK_ACL(aclmdlRIDestroy(model_));
    for (int i = 0; i < kBlocks; ++i) {
      CHECK_ACL(aclDestroyTensor(tensors_[i]));
      CHECK_ACL(aclrtFree(blocks_[i]));
    }
    CHECK_ACL(aclDestroyScalar(one_));
    CHECK_ACL(aclDestroyScalar(two_));
    CHECK_ACL(aclrtFreeHost(host_));
    for (aclrtEvent event : {forked_, joined_}) CHECK_ACL(aclrtDestroyEvent(event));
    for (aclrtStream stream : {main_, side_, update_}) CHECK_ACL(aclrtDestroyStream(stream));
  }

  void Capture() {
    CHECK_ACL(aclmdlRICaptureBegin(main_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    Work(1, &group_);
    CHECK_ACL(aclmdlRICaptureEnd(main_, &model_));
  }

  // The sum of the results.
  double Step(int step) {
    for (int64_t i = 0; i < kCount; ++i) host_[i] = static_cast<float>(step + i % 8);
    const float factor = static_cast<float>(step + 2);
    CHECK_ACL(
        aclrtMemcpyAsync(blocks_[kInput], kBytes, host_, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, main_));
    CHECK_ACL(aclrtMemsetAsync(blocks_[kBoth], kBytes, 0, kBytes, main_));
    Fork();
    RUN_OP(main_, aclnnMuls, tensors_[kInput], two_, tensors_[kLeft]);
    RUN_OP(side_, aclnnMul, tensors_[kInput], tensors_[kInput], tensors_[kRight]);
    Join();
    RUN_OP(main_, aclnnAdd, tensors_[kLeft], tensors_[kRight], one_, tensors_[kBoth]);
    if (model_ == nullptr) {
      Work(factor, nullptr);
    } else {
      CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(update_, group_));
      Scale(update_, factor);
      CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(update_));
      CHECK_ACL(aclrtSynchronizeStream(update_));
      CHECK_ACL(aclmdlRIExecuteAsync(model_, main_));
    }
    CHECK_ACL(aclrtMemcpyAsync(blocks_[kKept], kBytes, blocks_[kOut], kBytes,
                               ACL_MEMCPY_DEVICE_TO_DEVICE, main_));
    CHECK_ACL(
        aclrtMemcpyAsync(host_, kBytes, blocks_[kKept], kBytes, ACL_MEMCPY_DEVICE_TO_HOST, main_));
    CHECK_ACL(aclrtSynchronizeStream(main_));
    double sum = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      const float x = static_cast<float>(step + i % 8);
      const float both = 2 * x + x * x;
      CHECK(host_[i] == both * factor + both + 1);
      sum += host_[i];
    }
    return sum;
  }

 private:
  void Fork() {
    CHECK_ACL(aclrtRecordEvent(forked_, main_));
    CHECK_ACL(aclrtStreamWaitEvent(side_, forked_));
  }
  void Join() {
    CHECK_ACL(aclrtRecordEvent(joined_, side_));
    CHECK_ACL(aclrtStreamWaitEvent(main_, joined_));
  }
  void Scale(aclrtStream stream, float factor) {
    aclScalar* scalar = MakeScalar(factor);
    RUN_OP(stream, aclnnMuls, tensors_[kBoth], scalar, tensors_[kScaled]);
    CHECK_ACL(aclDestroyScalar(scalar));
  }
  // Issues the work of the graph. `group` may be null: the work runs eagerly.
  void Work(float factor, aclrtTaskGrp* group) {
    Fork();
    if (group != nullptr) CHECK_ACL(aclmdlRICaptureTaskGrpBegin(main_));
    Scale(main_, factor);
    if (group != nullptr) CHECK_ACL(aclmdlRICaptureTaskGrpEnd(main_, group));
    RUN_OP(side_, aclnnAdds, tensors_[kBoth], one_, one_, tensors_[kShifted]);
    Join();
    RUN_OP(main_, aclnnAdd, tensors_[kScaled], tensors_[kShifted], one_, tensors_[kOut]);
  }

  aclrtStream main_ = nullptr, side_ = nullptr, update_ = nullptr;
  aclrtEvent forked_ = nullptr, joined_ = nullptr;
  void* blocks_[kBlocks] = {};
  aclTensor* tensors_[kBlocks] = {};
  float* host_ = nullptr;
  aclScalar *one_ = nullptr, *two_ = nullptr;
  aclmdlRI model_ = nullptr;
  aclrtTaskGrp group_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const bool eager = argc == 2 && strcmp(argv[1], "--eager") == 0;
  CHECK(argc == 1 || eager);
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  {
    Program program;
    if (!eager) program.Capture();
    for (int step = 0; step < 6; ++step) printf("step %d: %.0f\n", step, program.Step(step));
  }
  FreeWorkspaces();
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("mixed_work: passed\n");
  return 0;
}
