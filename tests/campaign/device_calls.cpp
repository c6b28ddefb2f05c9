// A program over the ACL interface that meets what the recorder's agent keeps memory for: two
// threads with streams, events and blocks of their own, operators with every kind of argument, a
// repeatable executor whose tensor is moved, a captured graph with a branch, a built model, pinned
// memory, copies of planes, marks, memory that is freed as soon as it was read, a child by fork.
//
//   device_calls CODE    says what it computed and ends with CODE
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_prof.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_permute.h"
#include "tests/programs/sample.h"

namespace {

constexpr int64_t kCount = 256;
constexpr size_t kBytes = kCount * sizeof(float);

// Doubles a tensor in a graph, in the branch of a condition that holds.
void Branch(aclrtStream stream, aclTensor* tensor, aclScalar* two) {
  aclrtStream branch = nullptr;
  CHECK_ACL(aclrtCreateStream(&branch));
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  aclmdlRICaptureStatus status;
  aclmdlRI graph = nullptr, taken = nullptr;
  CHECK_ACL(aclmdlRICaptureGetInfo(stream, &status, &graph));
  aclmdlRICondTaskParams task = {};
  CHECK_ACL(
      aclmdlRICondHandleCreate(graph, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &task.handle));
  task.type = ACL_MODEL_RI_COND_TYPE_IF;
  task.size = 1;
  task.modelRIArray = &taken;
  CHECK_ACL(aclmdlRIAddCondTask(task, stream, 0));
  CHECK_ACL(aclmdlRICaptureToModelRIBegin(branch, taken, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  RUN_OP(branch, aclnnInplaceMuls, tensor, two);
  CHECK_ACL(aclmdlRICaptureEnd(branch, nullptr));
  CHECK_ACL(aclmdlRICaptureEnd(stream, &graph));
  CHECK_ACL(aclmdlRIExecuteAsync(graph, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK_ACL(aclmdlRIDestroy(graph));
  CHECK_ACL(aclrtDestroyStream(branch));
}

// Doubles a tensor in a model that is built without a capture.
void BuiltModel(aclTensor* tensor, aclScalar* two) {
  aclmdlRI model = nullptr;
  aclrtStream bound = nullptr;
  CHECK_ACL(aclmdlRIBuildBegin(&model, 0));
  CHECK_ACL(aclrtCreateStreamWithConfig(&bound, 0, ACL_STREAM_PERSISTENT));
  CHECK_ACL(aclmdlRIBindStream(model, bound, ACL_MODEL_STREAM_FLAG_HEAD));
  RUN_OP(bound, aclnnInplaceMuls, tensor, two);
  CHECK_ACL(aclmdlRIEndTask(model, bound));
  CHECK_ACL(aclmdlRIBuildEnd(model, nullptr));
  CHECK_ACL(aclmdlRIExecute(model, -1));
  CHECK_ACL(aclmdlRIUnbindStream(model, bound));
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtDestroyStream(bound));
}

// The sum of what a stream computed.
double Work(int number) {
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  aclrtEvent done = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  CHECK_ACL(aclrtCreateEventWithFlag(&done, ACL_EVENT_SYNC));
  auto* host = static_cast<float*>(MallocPinned(2 * kBytes));
  void* blocks[5];
  for (void*& block : blocks) block = MallocDevice(2 * kBytes);
  for (int64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 8 + number);
  CHECK_ACL(aclrtMemcpyAsync(blocks[0], kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  float plane[4][16] = {};
  for (int i = 0; i < 64; ++i) plane[i / 16][i % 16] = static_cast<float>(i);
  CHECK_ACL(aclrtMemcpy2d(blocks[1], 32, plane, 64, 32, 4, ACL_MEMCPY_HOST_TO_DEVICE));

  void* stamp = aclprofCreateStamp();
  CHECK_ACL(aclprofSetStampTraceMessage(stamp, "work", 4));
  CHECK_ACL(aclprofPush(stamp));
  aclTensor* tensors[5];
  for (int i = 0; i < 5; ++i) tensors[i] = MakeVector(kCount, blocks[i]);
  aclScalar* two = MakeScalar(2);
  for (int round = 0; round < 3; ++round) {
    RUN_OP(stream, aclnnMuls, tensors[0], two, tensors[2]);
    RUN_OP(stream, aclnnAdd, tensors[0], tensors[2], two, tensors[3]);
  }
  const aclTensor* parts[] = {MakeVector(kCount, blocks[0]), MakeVector(kCount, blocks[3])};
  aclTensorList* list = aclCreateTensorList(parts, 2);
  CHECK(list != nullptr);
  aclTensor* both = MakeVector(2 * kCount, blocks[4]);
  RUN_OP(stream, aclnnCat, list, 0, both);
  const int64_t sizes[] = {16, 16}, order[] = {1, 0};
  aclTensor* square = MakeTensor(ACL_FLOAT, 2, sizes, blocks[0]);
  aclTensor* turned = MakeTensor(ACL_FLOAT, 2, sizes, blocks[2]);
  aclIntArray* dims = aclCreateIntArray(order, 2);
  RUN_OP(stream, aclnnPermute, square, dims, turned);
  CHECK_ACL(aclprofPop());
  aclprofDestroyStamp(stamp);

  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_ACL(aclnnAddGetWorkspaceSize(tensors[0], tensors[2], two, tensors[3], &workspace_bytes,
                                     &executor));
  CHECK_ACL(aclSetAclOpExecutorRepeatable(executor));
  void* workspace = NewWorkspace(workspace_bytes);
  CHECK_ACL(aclnnAdd(workspace, workspace_bytes, executor, stream));
  CHECK_ACL(aclSetInputTensorAddr(executor, 0, tensors[0], blocks[3]));
  CHECK_ACL(aclnnAdd(workspace, workspace_bytes, executor, stream));
  CHECK_ACL(aclDestroyAclOpExecutor(executor));

  aclmdlRI model = nullptr;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  RUN_OP(stream, aclnnMuls, tensors[3], two, tensors[2]);
  RUN_OP(stream, aclnnAdd, tensors[2], tensors[0], two, tensors[3]);
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  for (int i = 0; i < 2; ++i) CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
  CHECK_ACL(aclrtRecordEvent(done, stream));
  CHECK_ACL(aclrtSynchronizeEvent(done));
  CHECK_ACL(aclmdlRIDestroy(model));
  Branch(stream, tensors[3], two);
  BuiltModel(tensors[3], two);

  CHECK_ACL(aclrtMemcpy(host, kBytes, blocks[3], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_ACL(aclrtMemcpy(host + kCount, kBytes, blocks[4], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  double sum = 0;
  for (int64_t i = 0; i < 2 * kCount; ++i) sum += host[i];
  CHECK_ACL(aclDestroyTensorList(list));  // with its tensors
  for (const aclTensor* tensor : {both, square, turned}) CHECK_ACL(aclDestroyTensor(tensor));
  for (const aclTensor* tensor : tensors) CHECK_ACL(aclDestroyTensor(tensor));
  CHECK_ACL(aclDestroyScalar(two));
  CHECK_ACL(aclDestroyIntArray(dims));
  for (void* block : blocks) CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtFreeHost(host));
  CHECK_ACL(aclrtDestroyEvent(done));
  CHECK_ACL(aclrtDestroyStream(stream));
  return sum;
}

// The child uses the device on its own; the parent has not begun to.
void ForkedWork() {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    CHECK_ACL(aclInit(nullptr));
    CHECK_ACL(aclrtSetDevice(0));
    CHECK_ACL(aclrtFree(MallocDevice(64)));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    exit(0);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

// Memory that no call wrote is read while the default stream has work, and freed at once.
void ReadAndFree() {
  CHECK_ACL(aclrtLaunchHostFunc(
      nullptr, [](void*) { usleep(100000); }, nullptr));
  void* fresh = MallocDevice(64);
  char host[64];
  CHECK_ACL(aclrtMemcpy(host, 64, fresh, 64, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_ACL(aclrtFree(fresh));
  CHECK_ACL(aclrtSynchronizeStream(nullptr));
}

// Calls that succeed leave errno as it was.
void KeepsErrno() {
  for (int i = 0; i < 64; ++i) {
    errno = 12345;
    const int64_t sizes[] = {4};
    aclTensor* tensor = MakeTensor(ACL_FLOAT, 1, sizes, nullptr);
    CHECK(errno == 12345);
    CHECK_ACL(aclDestroyTensor(tensor));
    CHECK(errno == 12345);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  ForkedWork();
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  double sums[2] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([i, &sums] { sums[i] = Work(i); });
  for (std::thread& thread : threads) thread.join();
  ReadAndFree();
  KeepsErrno();
  FreeWorkspaces();
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  std::printf("%.1f and %.1f\n", sums[0], sums[1]);
  return atoi(argv[1]);
}
