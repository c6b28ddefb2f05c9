// Queues with routes: each message of one queue goes to two others, whose threads compute with it
// on streams of their own and send what they got to a fourth queue.
//
//   queue_routes
#include <cstring>

#include "acl/acl.h"
#include "acl/acl_tdt_queue.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int kMessages = 4;
constexpr int kWorkers = 2;
constexpr int64_t kCount = 128;
constexpr size_t kBytes = kCount * sizeof(float);

uint32_t NewQueue(const char* name, uint32_t depth) {
  acltdtQueueAttr* attributes = acltdtCreateQueueAttr();
  CHECK(attributes != nullptr);
  CHECK_ACL(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, sizeof name, &name));
  CHECK_ACL(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, sizeof depth, &depth));
  uint32_t queue = 0;
  CHECK_ACL(acltdtCreateQueue(attributes, &queue));
  CHECK_ACL(acltdtDestroyQueueAttr(attributes));
  return queue;
}

// A message of a worker: the sum of one message that it got.
struct Answer {
  int worker;
  int message;
  double sum;
};

struct Worker {
  int number;
  uint32_t from;
  uint32_t to;
  aclrtContext context;
};

// Worker 0 adds one to each element. Worker 1 doubles them, and takes them from the queue into the
// memory of the device.
void* Work(void* argument) {
  const Worker* worker = (const Worker*)argument;
  CHECK_ACL(aclrtSetCurrentContext(worker->context));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  float* host = (float*)MallocPinned(kBytes);
  void* in = MallocDevice(kBytes);
  void* out = MallocDevice(kBytes);
  aclTensor* input = MakeVector(kCount, in);
  aclTensor* output = MakeVector(kCount, out);
  aclScalar* one = MakeScalar(1);
  aclScalar* two = MakeScalar(2);
  for (int i = 0; i < kMessages; ++i) {
    int message = 0;
    size_t bytes = 0;
    CHECK_ACL(acltdtDequeueData(worker->from, worker->number == 0 ? host : in, kBytes, &bytes,
                                &message, sizeof message, -1));
    CHECK(bytes == kBytes);
    if (worker->number == 0) {
      CHECK_ACL(aclrtMemcpyAsync(in, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
      RUN_OP(stream, aclnnAdds, input, one, one, output);
    } else {
      RUN_OP(stream, aclnnMuls, input, two, output);
    }
    CHECK_ACL(aclrtMemcpyAsync(host, kBytes, out, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
    Answer answer = {worker->number, message, 0};
    for (int64_t j = 0; j < kCount; ++j) answer.sum += host[j];
    CHECK_ACL(acltdtEnqueueData(worker->to, &answer, sizeof answer, nullptr, 0, -1, 0));
  }
  CHECK_ACL(aclDestroyScalar(one));
  CHECK_ACL(aclDestroyScalar(two));
  CHECK_ACL(aclDestroyTensor(input));
  CHECK_ACL(aclDestroyTensor(output));
  CHECK_ACL(aclrtFree(in));
  CHECK_ACL(aclrtFree(out));
  CHECK_ACL(aclrtFreeHost(host));
  CHECK_ACL(aclrtDestroyStream(stream));
  return nullptr;
}

acltdtQueueRouteList* Bind(uint32_t source, const uint32_t* destinations) {
  acltdtQueueRouteList* list = acltdtCreateQueueRouteList();
  for (int i = 0; i < kWorkers; ++i) {
    acltdtQueueRoute* route = acltdtCreateQueueRoute(source, destinations[i]);
    CHECK(list != nullptr && route != nullptr);
    CHECK_ACL(acltdtAddQueueRoute(list, route));
    CHECK_ACL(acltdtDestroyQueueRoute(route));
  }
  CHECK_ACL(acltdtBindQueueRoutes(list));
  return list;
}

void ShowRoutes(uint32_t source) {
  acltdtQueueRouteQueryInfo* info = acltdtCreateQueueRouteQueryInfo();
  const acltdtQueueRouteQueryMode mode = ACL_TDT_QUEUE_ROUTE_QUERY_SRC;
  CHECK_ACL(
      acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, sizeof mode, &mode));
  CHECK_ACL(acltdtSetQueueRouteQueryInfo(info, ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32,
                                         sizeof source, &source));
  acltdtQueueRouteList* found = acltdtCreateQueueRouteList();
  CHECK_ACL(acltdtQueryQueueRoutes(info, found));
  printf("routes: %zu\n", acltdtGetQueueRouteNum(found));
  CHECK_ACL(acltdtDestroyQueueRouteList(found));
  CHECK_ACL(acltdtDestroyQueueRouteQueryInfo(info));
}

}  // namespace

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  aclrtContext context = nullptr;
  CHECK_ACL(aclrtGetCurrentContext(&context));
  const uint32_t source = NewQueue("source", 2);
  const uint32_t work[kWorkers] = {NewQueue("add", 2), NewQueue("double", 2)};
  const uint32_t answers = NewQueue("answers", kMessages * kWorkers);
  acltdtQueueRouteList* routes = Bind(source, work);
  ShowRoutes(source);

  Worker workers[kWorkers];
  pthread_t threads[kWorkers];
  for (int i = 0; i < kWorkers; ++i) {
    workers[i] = {i, work[i], answers, context};
    CHECK(pthread_create(&threads[i], nullptr, Work, &workers[i]) == 0);
  }
  float values[kCount];
  for (int message = 0; message < kMessages; ++message) {
    for (int64_t i = 0; i < kCount; ++i) values[i] = (float)(message * 10 + i % 4);
    CHECK_ACL(acltdtEnqueueData(source, values, sizeof values, &message, sizeof message, -1, 0));
  }
  double sums[kWorkers][kMessages];
  for (int i = 0; i < kWorkers * kMessages; ++i) {
    Answer answer;
    size_t bytes = 0;
    CHECK_ACL(acltdtDequeueData(answers, &answer, sizeof answer, &bytes, nullptr, 0, -1));
    CHECK(bytes == sizeof answer);
    sums[answer.worker][answer.message] = answer.sum;
  }
  for (int i = 0; i < kWorkers; ++i) CHECK(pthread_join(threads[i], nullptr) == 0);
  for (int i = 0; i < kMessages; ++i) {
    printf("message %d: added %.0f, doubled %.0f\n", i, sums[0][i], sums[1][i]);
  }

  CHECK_ACL(acltdtUnbindQueueRoutes(routes));
  CHECK_ACL(acltdtDestroyQueueRouteList(routes));
  ShowRoutes(source);
  size_t bytes = 0;
  CHECK(acltdtDequeueData(source, values, sizeof values, &bytes, nullptr, 0, 0) ==
        ACL_ERROR_RT_QUEUE_EMPTY);
  CHECK_ACL(acltdtDestroyQueue(source));
  for (uint32_t queue : work) CHECK_ACL(acltdtDestroyQueue(queue));
  CHECK_ACL(acltdtDestroyQueue(answers));
  FreeWorkspaces();
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("queue_routes: passed\n");
  return 0;
}
