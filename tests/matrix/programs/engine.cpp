// An inference engine: weights that are loaded once, two streams that wait for each other by
// events, a workspace that grows, tokens computed eagerly, then by a captured graph whose task
// group is updated at each token.
//
//   engine                the whole program may be recorded
//   engine --window       opens the recording for the last four tokens alone
#include <initializer_list>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_relu.h"
#include "acltape.h"
#include "sample.h"

namespace {

constexpr int64_t kWidth = 32;
constexpr size_t kBytes = kWidth * kWidth * sizeof(float);
constexpr int kEagerTokens = 4;
constexpr int kGraphTokens = 6;

enum Block { kWeight, kGate, kInput, kProduct, kGated, kScaled, kOut, kBlocks };

// A block of memory for the workspace of one stream, which grows with what operators ask for.
class Workspace {
 public:
  ~Workspace() {
    if (block_ != nullptr) CHECK_ACL(aclrtFree(block_));
  }

  void* Get(uint64_t bytes, aclrtStream stream) {
    if (bytes > bytes_) {
      CHECK_ACL(aclrtSynchronizeStream(stream));
      if (block_ != nullptr) CHECK_ACL(aclrtFree(block_));
      block_ = MallocDevice(bytes);
      bytes_ = bytes;
    }
    return bytes == 0 ? nullptr : block_;
  }

 private:
  void* block_ = nullptr;
  uint64_t bytes_ = 0;
};

#define LAUNCH(workspace, stream, op, ...)                                         \
  do {                                                                             \
    uint64_t launch_bytes = 0;                                                     \
    aclOpExecutor* launch_executor = nullptr;                                      \
    CHECK_ACL(op##GetWorkspaceSize(__VA_ARGS__, &launch_bytes, &launch_executor)); \
    void* launch_block = (workspace).Get(launch_bytes, stream);                    \
    CHECK_ACL(op(launch_block, launch_bytes, launch_executor, stream));            \
  } while (0)

class Engine {
 public:
  Engine() {
    CHECK_ACL(aclrtCreateStream(&main_));
    CHECK_ACL(aclrtCreateStream(&side_));
    CHECK_ACL(aclrtCreateEventExWithFlag(&forked_, ACL_EVENT_SYNC));
    CHECK_ACL(aclrtCreateEventExWithFlag(&joined_, ACL_EVENT_SYNC));
    CHECK_ACL(aclrtCreateEventWithFlag(&updated_, ACL_EVENT_EXTERNAL));
    const int64_t sizes[] = {kWidth, kWidth};
    host_ = static_cast<float*>(MallocPinned(kBytes));
    for (int i = 0; i < kBlocks; ++i) {
      blocks_[i] = MallocDevice(kBytes);
      tensors_[i] = MakeTensor(ACL_FLOAT, 2, sizes, blocks_[i]);
    }
    for (int i : {kWeight, kGate}) {
      for (int64_t k = 0; k < kWidth * kWidth; ++k)
        host_[k] = static_cast<float>((k * (i + 3)) % 7 - 3) / 16;
      CHECK_ACL(aclrtMemcpy(blocks_[i], kBytes, host_, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
    }
  }

  ~Engine() {
    if (model_ != nullptr) CHECK_ACL(aclmdlRIDestroy(model_));
    for (int i = 0; i < kBlocks; ++i) {
      CHECK_ACL(aclDestroyTensor(tensors_[i]));
      CHECK_ACL(aclrtFree(blocks_[i]));
    }
    CHECK_ACL(aclrtFreeHost(host_));
    for (aclrtEvent event : {forked_, joined_, updated_}) CHECK_ACL(aclrtDestroyEvent(event));
    for (aclrtStream stream : {main_, side_}) CHECK_ACL(aclrtDestroyStream(stream));
  }

  void EagerToken(int token) {
    Load(token);
    Compute(static_cast<float>(token + 1), main_, main_space_);
    Finish(main_, main_space_);
    Say(token);
  }

  void Capture() {
    CHECK_ACL(aclrtSynchronizeStream(main_));
    CHECK_ACL(aclmdlRICaptureBegin(main_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    Products(main_, main_space_);
    CHECK_ACL(aclrtStreamWaitEvent(main_, updated_));
    CHECK_ACL(aclrtResetEvent(updated_, main_));
    CHECK_ACL(aclmdlRICaptureTaskGrpBegin(main_));
    Scale(1, main_, main_space_);
    CHECK_ACL(aclmdlRICaptureTaskGrpEnd(main_, &group_));
    Finish(main_, main_space_);
    CHECK_ACL(aclmdlRICaptureEnd(main_, &model_));
  }

  void GraphToken(int token) {
    Load(token);
    CHECK_ACL(aclmdlRIExecuteAsync(model_, main_));
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(side_, group_));
    Scale(static_cast<float>(token + 1), side_, side_space_);
    CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(side_));
    CHECK_ACL(aclrtRecordEvent(updated_, side_));
    Say(token);
  }

 private:
  void Load(int token) {
    for (int64_t k = 0; k < kWidth * kWidth; ++k) host_[k] = static_cast<float>((k + token) % 5);
    CHECK_ACL(
        aclrtMemcpyAsync(blocks_[kInput], kBytes, host_, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, main_));
  }

  // The two products lie on two streams.
  void Products(aclrtStream stream, Workspace& space) {
    CHECK_ACL(aclrtRecordEvent(forked_, stream));
    CHECK_ACL(aclrtStreamWaitEvent(side_, forked_));
    LAUNCH(side_space_, side_, aclnnMatmul, tensors_[kInput], tensors_[kGate], tensors_[kGated], 1);
    CHECK_ACL(aclrtRecordEvent(joined_, side_));
    LAUNCH(space, stream, aclnnMatmul, tensors_[kInput], tensors_[kWeight], tensors_[kProduct], 1);
    CHECK_ACL(aclrtStreamWaitEvent(stream, joined_));
  }

  void Scale(float factor, aclrtStream stream, Workspace& space) {
    aclScalar* scalar = MakeScalar(factor);
    LAUNCH(space, stream, aclnnMuls, tensors_[kProduct], scalar, tensors_[kScaled]);
    CHECK_ACL(aclDestroyScalar(scalar));
  }

  void Compute(float factor, aclrtStream stream, Workspace& space) {
    Products(stream, space);
    Scale(factor, stream, space);
  }

  void Finish(aclrtStream stream, Workspace& space) {
    aclScalar* one = MakeScalar(1);
    LAUNCH(space, stream, aclnnAdd, tensors_[kScaled], tensors_[kGated], one, tensors_[kOut]);
    CHECK_ACL(aclDestroyScalar(one));
  }

  void Say(int token) {
    CHECK_ACL(aclrtSynchronizeStream(main_));
    CHECK_ACL(aclrtMemcpy(host_, kBytes, blocks_[kOut], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
    double sum = 0;
    for (int64_t k = 0; k < kWidth * kWidth; ++k) sum += host_[k];
    printf("token %d: %.3f\n", token, sum);
  }

  aclrtStream main_ = nullptr;
  aclrtStream side_ = nullptr;
  aclrtEvent forked_ = nullptr;
  aclrtEvent joined_ = nullptr;
  aclrtEvent updated_ = nullptr;
  void* blocks_[kBlocks] = {};
  aclTensor* tensors_[kBlocks] = {};
  float* host_ = nullptr;
  Workspace main_space_;
  Workspace side_space_;
  aclmdlRI model_ = nullptr;
  aclrtTaskGrp group_ = nullptr;
};

}  // namespace

int main(int count, char** words) {
  const bool window = count > 1 && strcmp(words[1], "--window") == 0;
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  {
    Engine engine;
    for (int token = 0; token < kEagerTokens; ++token) engine.EagerToken(token);
    engine.Capture();
    for (int token = 0; token < kGraphTokens; ++token) {
      if (window && token == 2) acltape_window_open();
      engine.GraphToken(kEagerTokens + token);
    }
    if (window) acltape_window_close();
  }
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("engine: passed\n");
  return 0;
}
