// An inference engine: weights are loaded once, a step has eager layers on two streams and a graph
// whose task group is updated at each token, and each stream has a workspace that grows.
//
//   engine             eight tokens
//   engine --window    the same; a recording that begins closed is opened for tokens 3 to 6
//
// A token computes, for its input x in the row of the token:
//   eager    left = x * weight, beside it right = x + bias; both = left + right
//   graph    scaled = both * factor; out = scaled + bias. It waits for an external event, which the
//            second stream records when it has updated the factor
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "acltape.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 256;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr int kTokens = 8;

// Memory of one stream that an operator may use while it runs. It grows with its greatest user.
class Workspace {
 public:
  ~Workspace() {
    if (address_ != nullptr) CHECK_ACL(aclrtFree(address_));
  }
  void* OfSize(uint64_t bytes, aclrtStream stream) {
    if (bytes <= bytes_) return address_;
    CHECK_ACL(aclrtSynchronizeStream(stream));
    if (address_ != nullptr) CHECK_ACL(aclrtFree(address_));
    address_ = MallocDevice(bytes);
    bytes_ = bytes;
    return address_;
  }

 private:
  void* address_ = nullptr;
  uint64_t bytes_ = 0;
};

class Engine {
 public:
  Engine() {
    CHECK_ACL(aclrtCreateStream(&main_));
    CHECK_ACL(aclrtCreateStream(&side_));
    for (aclrtEvent* event : {&forked_, &joined_}) {
      CHECK_ACL(aclrtCreateEventExWithFlag(event, ACL_EVENT_SYNC));
    }
    CHECK_ACL(aclrtCreateEventWithFlag(&updated_, ACL_EVENT_EXTERNAL));
    host_ = static_cast<float*>(MallocPinned(kTokens * kBytes));
    weights_ = MallocDevice(2 * kBytes);
    std::vector<float> weights(2 * kCount);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 5);
    CHECK_ACL(
        aclrtMemcpy(weights_, 2 * kBytes, weights.data(), 2 * kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
    weight_ = MakeVector(kCount, weights_);
    bias_ = MakeVector(kCount, static_cast<char*>(weights_) + kBytes);
    inputs_ = MallocDevice(kTokens * kBytes);
    results_ = MallocDevice(kResults * kBytes);
    for (int i = 0; i < kResults; ++i) {
      tensors_[i] = MakeVector(kCount, static_cast<char*>(results_) + i * kBytes);
    }
    one_ = MakeScalar(1);
  }

  ~Engine() {
    CHECK_ACL(aclmdlRIDestroy(model_));
    for (aclTensor* tensor : tensors_) CHECK_ACL(aclDestroyTensor(tensor));
    for (aclTensor* tensor : {weight_, bias_}) CHECK_ACL(aclDestroyTensor(tensor));
    for (void* block : {weights_, inputs_, results_}) CHECK_ACL(aclrtFree(block));
    CHECK_ACL(aclDestroyScalar(one_));
    CHECK_ACL(aclrtFreeHost(host_));
    for (aclrtEvent event : {forked_, joined_, updated_}) CHECK_ACL(aclrtDestroyEvent(event));
    for (aclrtStream stream : {main_, side_}) CHECK_ACL(aclrtDestroyStream(stream));
  }

  void Capture() {
    CHECK_ACL(aclmdlRICaptureBegin(main_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    CHECK_ACL(aclrtStreamWaitEvent(main_, updated_));
    CHECK_ACL(aclrtResetEvent(updated_, main_));
    CHECK_ACL(aclmdlRICaptureTaskGrpBegin(main_));
    Scale(main_, 1);
    CHECK_ACL(aclmdlRICaptureTaskGrpEnd(main_, &group_));
    RUN_OP(main_, aclnnAdd, tensors_[kScaled], bias_, one_, tensors_[kOut]);
    CHECK_ACL(aclmdlRICaptureEnd(main_, &model_));
  }

  double Token(int token) {
    float* host = host_ + token * kCount;
    void* input = static_cast<char*>(inputs_) + token * kBytes;
    const float factor = static_cast<float>(token + 2);
    for (int64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(token + i % 7);
    CHECK_ACL(aclrtMemcpyAsync(input, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, main_));
    aclTensor* x = MakeVector(kCount, input);
    CHECK_ACL(aclrtRecordEvent(forked_, main_));
    CHECK_ACL(aclrtStreamWaitEvent(side_, forked_));
    RUN_OP(main_, aclnnMul, x, weight_, tensors_[kLeft]);
    RUN_OP(side_, aclnnAdd, x, bias_, one_, tensors_[kRight]);
    Sum(x, token);
    CHECK_ACL(aclrtRecordEvent(joined_, side_));
    CHECK_ACL(aclrtStreamWaitEvent(main_, joined_));
    RUN_OP(main_, aclnnAdd, tensors_[kLeft], tensors_[kRight], one_, tensors_[kBoth]);
    CHECK_ACL(aclmdlRIExecuteAsync(model_, main_));
    CHECK_ACL(aclmdlRICaptureTaskUpdateBegin(side_, group_));
    Scale(side_, factor);
    CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(side_));
    CHECK_ACL(aclrtRecordEvent(updated_, side_));
    CHECK_ACL(
        aclrtMemcpyAsync(host, kBytes, Block(kOut), kBytes, ACL_MEMCPY_DEVICE_TO_HOST, main_));
    CHECK_ACL(aclrtSynchronizeStream(main_));
    CHECK_ACL(aclrtSynchronizeStream(side_));
    CHECK_ACL(aclDestroyTensor(x));
    double sum = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      const float value = static_cast<float>(token + i % 7);
      const float bias = static_cast<float>((i + kCount) % 5);
      const float both = value * static_cast<float>(i % 5) + value + bias;
      CHECK(host[i] == both * factor + bias);
      sum += host[i];
    }
    return sum;
  }

 private:
  enum { kLeft, kRight, kBoth, kScaled, kOut, kTotal, kResults };

  void* Block(int result) { return static_cast<char*>(results_) + result * kBytes; }

  void Scale(aclrtStream stream, float factor) {
    aclScalar* scalar = MakeScalar(factor);
    RUN_OP(stream, aclnnMuls, tensors_[kBoth], scalar, tensors_[kScaled]);
    CHECK_ACL(aclDestroyScalar(scalar));
  }

  // The sum of the token's input, on the second stream. Its workspace grows at some tokens.
  void Sum(aclTensor* x, int token) {
    const int64_t dimension = 0;
    const int64_t size = 1;
    aclIntArray* dimensions = aclCreateIntArray(&dimension, 1);
    aclTensor* total = MakeVector(size, Block(kTotal));
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    CHECK_ACL(
        aclnnReduceSumGetWorkspaceSize(x, dimensions, true, ACL_FLOAT, total, &bytes, &executor));
    bytes += static_cast<uint64_t>(token / 3 + 1) * 4096;
    CHECK_ACL(aclnnReduceSum(workspace_.OfSize(bytes, side_), bytes, executor, side_));
    CHECK_ACL(aclDestroyTensor(total));
    CHECK_ACL(aclDestroyIntArray(dimensions));
  }

  aclrtStream main_ = nullptr, side_ = nullptr;
  aclrtEvent forked_ = nullptr, joined_ = nullptr, updated_ = nullptr;
  float* host_ = nullptr;
  void *weights_ = nullptr, *inputs_ = nullptr, *results_ = nullptr;
  aclTensor *weight_ = nullptr, *bias_ = nullptr;
  aclTensor* tensors_[kResults] = {};
  aclScalar* one_ = nullptr;
  aclmdlRI model_ = nullptr;
  aclrtTaskGrp group_ = nullptr;
  Workspace workspace_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool window = argc == 2 && strcmp(argv[1], "--window") == 0;
  CHECK(argc == 1 || window);
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  {
    Engine engine;
    engine.Capture();
    for (int token = 0; token < kTokens; ++token) {
      if (window && token == 3) acltape_window_open();
      acltape_range_begin(ACLTAPE_STEP);
      printf("token %d: %.0f\n", token, engine.Token(token));
      acltape_range_end();
      if (window && token == 6) acltape_window_close();
    }
  }
  FreeWorkspaces();
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("engine: passed\n");
  return 0;
}
