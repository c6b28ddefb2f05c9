// A graph with three branches: captured once from three streams, executed for several inputs.
//
//   capture_fork_join
#include <initializer_list>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_relu.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr int kBlocks = 6;

aclmdlRICaptureStatus Status(aclrtStream stream, aclmdlRI* model) {
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED;
  CHECK_ACL(aclmdlRICaptureGetInfo(stream, &status, model));
  return status;
}

struct Graph {
  aclrtStream origin, positive, square;
  aclrtEvent fork, positive_done, square_done;
  void* device[kBlocks];
  aclTensor* tensors[kBlocks];  // x, relu(x), x * x, 3 * x, sum of two, out
  aclScalar *one, *three;
};

// out = relu(x) + x * x + 3 x
void SubmitWork(const Graph& graph) {
  aclTensor* const* t = graph.tensors;
  CHECK_ACL(aclrtRecordEvent(graph.fork, graph.origin));
  CHECK_ACL(aclrtStreamWaitEvent(graph.positive, graph.fork));
  CHECK_ACL(aclrtStreamWaitEvent(graph.square, graph.fork));
  RUN_OP(graph.positive, aclnnRelu, t[0], t[1]);
  RUN_OP(graph.square, aclnnMul, t[0], t[0], t[2]);
  RUN_OP(graph.origin, aclnnMuls, t[0], graph.three, t[3]);
  CHECK_ACL(aclrtRecordEvent(graph.square_done, graph.square));
  CHECK_ACL(aclrtStreamWaitEvent(graph.positive, graph.square_done));
  RUN_OP(graph.positive, aclnnAdd, t[1], t[2], graph.one, t[4]);
  CHECK_ACL(aclrtRecordEvent(graph.positive_done, graph.positive));
  CHECK_ACL(aclrtStreamWaitEvent(graph.origin, graph.positive_done));
  RUN_OP(graph.origin, aclnnAdd, t[4], t[3], graph.one, t[5]);
}

aclmdlRI Capture(const Graph& graph) {
  aclmdlRI during = nullptr;
  aclmdlRI model = nullptr;
  CHECK(Status(graph.origin, nullptr) == ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  CHECK_ACL(aclmdlRICaptureBegin(graph.origin, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK(Status(graph.origin, &during) == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  CHECK(Status(graph.square, nullptr) == ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  SubmitWork(graph);
  CHECK(Status(graph.square, nullptr) == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  CHECK_ACL(aclmdlRICaptureEnd(graph.origin, &model));
  CHECK(model != nullptr && model == during);
  CHECK(Status(graph.square, nullptr) == ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  return model;
}

// The sum of out, checked element by element.
double Download(const Graph& graph, const float* input, float* output) {
  CHECK_ACL(aclrtMemcpyAsync(output, kBytes, graph.device[5], kBytes, ACL_MEMCPY_DEVICE_TO_HOST,
                             graph.origin));
  CHECK_ACL(aclrtSynchronizeStream(graph.origin));
  double sum = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    float x = input[i];
    CHECK(output[i] == (x > 0 ? x : 0) + x * x + 3 * x);
    sum += output[i];
  }
  return sum;
}

}  // namespace

int main() {
  Graph graph;
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  for (aclrtStream* stream : {&graph.origin, &graph.positive, &graph.square}) {
    CHECK_ACL(
        aclrtCreateStreamWithConfig(stream, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  }
  for (aclrtEvent* event : {&graph.fork, &graph.positive_done, &graph.square_done}) {
    CHECK_ACL(aclrtCreateEventExWithFlag(event, ACL_EVENT_SYNC));
  }
  for (int i = 0; i < kBlocks; ++i) {
    graph.device[i] = MallocDevice(kBytes);
    graph.tensors[i] = MakeVector(kCount, graph.device[i]);
  }
  graph.one = MakeScalar(1);
  graph.three = MakeScalar(3);
  auto* input = static_cast<float*>(MallocPinned(kBytes));
  auto* output = static_cast<float*>(MallocPinned(kBytes));

  // Nothing runs while it is captured.
  CHECK_ACL(aclrtMemset(graph.device[5], kBytes, 0, kBytes));
  aclmdlRI model = Capture(graph);
  CHECK_ACL(aclrtMemcpy(output, kBytes, graph.device[5], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  for (int64_t i = 0; i < kCount; ++i) CHECK(output[i] == 0);

  for (int replay = 0; replay < 5; ++replay) {
    for (int64_t i = 0; i < kCount; ++i) input[i] = static_cast<float>((i + 7 * replay) % 11 - 5);
    CHECK_ACL(aclrtMemcpyAsync(graph.device[0], kBytes, input, kBytes, ACL_MEMCPY_HOST_TO_DEVICE,
                               graph.origin));
    CHECK_ACL(aclmdlRIExecuteAsync(model, graph.origin));
    printf("replay %d: %.0f\n", replay, Download(graph, input, output));
  }
  // Afterwards the streams work eagerly again, with the same results.
  SubmitWork(graph);
  printf("eager: %.0f\n", Download(graph, input, output));

  CHECK_ACL(aclmdlRIDestroy(model));
  for (aclTensor* tensor : graph.tensors) CHECK_ACL(aclDestroyTensor(tensor));
  CHECK_ACL(aclDestroyScalar(graph.one));
  CHECK_ACL(aclDestroyScalar(graph.three));
  for (void* block : graph.device) CHECK_ACL(aclrtFree(block));
  FreeWorkspaces();
  CHECK_ACL(aclrtFreeHost(input));
  CHECK_ACL(aclrtFreeHost(output));
  for (aclrtEvent event : {graph.fork, graph.positive_done, graph.square_done}) {
    CHECK_ACL(aclrtDestroyEvent(event));
  }
  for (aclrtStream stream : {graph.origin, graph.positive, graph.square}) {
    CHECK_ACL(aclrtDestroyStream(stream));
  }
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("capture_fork_join: passed\n");
  return 0;
}
