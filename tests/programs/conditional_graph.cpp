// A captured graph in which the device chooses what runs: an IF with two branches, a WHILE loop and
// a SWITCH, whose conditions the program writes between the executions, and a branch inside of a
// branch.
#include <initializer_list>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

namespace {

constexpr int64_t kCount = 128;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr auto kKeep = static_cast<aclmdlRICondHandleFlag>(0);

struct Condition {
  aclmdlRICondHandle handle = nullptr;
  uint64_t* cell = nullptr;
};

Condition MakeCondition(aclrtStream captured, uint32_t value, aclmdlRICondHandleFlag flag) {
  aclmdlRICaptureStatus status;
  aclmdlRI graph = nullptr;
  CHECK_ACL(aclmdlRICaptureGetInfo(captured, &status, &graph));
  Condition condition;
  CHECK_ACL(aclmdlRICondHandleCreate(graph, value, flag, &condition.handle));
  CHECK_ACL(aclmdlRICondHandleGetCondPtr(condition.handle, &condition.cell));
  return condition;
}

void AddTask(aclrtStream captured, const Condition& condition, aclmdlRICondTaskType type,
             uint32_t size, aclmdlRI* branches) {
  aclmdlRICondTaskParams task = {};
  task.handle = condition.handle;
  task.type = type;
  task.size = size;
  task.modelRIArray = branches;
  CHECK_ACL(aclmdlRIAddCondTask(task, captured, 0));
}

void Write(const Condition& condition, uint64_t value) {
  CHECK_ACL(aclrtMemcpy(condition.cell, 8, &value, 8, ACL_MEMCPY_HOST_TO_DEVICE));
}

}  // namespace

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream stream = nullptr, branch = nullptr, inner = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  CHECK_ACL(aclrtCreateStream(&branch));
  CHECK_ACL(aclrtCreateStream(&inner));
  float host[kCount];
  void* blocks[3];
  aclTensor* tensors[3];
  for (int i = 0; i < 3; ++i) {
    blocks[i] = MallocDevice(kBytes);
    tensors[i] = MakeVector(kCount, blocks[i]);
    for (int64_t j = 0; j < kCount; ++j) host[j] = static_cast<float>(j % 4 + i);
    CHECK_ACL(aclrtMemcpy(blocks[i], kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  // A loop counts down here, and copies the number into its condition.
  void* round = MallocDevice(32);
  void* step = MallocDevice(32);
  const int64_t minus_one[4] = {-1, 0, 0, 0};
  CHECK_ACL(aclrtMemcpy(step, 32, minus_one, 32, ACL_MEMCPY_HOST_TO_DEVICE));
  int64_t one_number = 1;
  aclTensor* round_tensor = MakeTensor(ACL_INT64, 1, &one_number, round);
  aclTensor* step_tensor = MakeTensor(ACL_INT64, 1, &one_number, step);
  aclScalar* two = MakeScalar(2);
  aclScalar* one = MakeScalar(1);
  aclScalar* once = aclCreateScalar(&one_number, ACL_INT64);
  CHECK(once != nullptr);

  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  RUN_OP(stream, aclnnInplaceAdds, tensors[0], one, one);
  const Condition chosen = MakeCondition(stream, 0, kKeep);
  const Condition loop = MakeCondition(stream, 0, kKeep);
  const Condition index = MakeCondition(stream, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT);
  aclmdlRI either[2], body[1], cases[3];
  AddTask(stream, chosen, ACL_MODEL_RI_COND_TYPE_IF, 2, either);
  AddTask(stream, loop, ACL_MODEL_RI_COND_TYPE_WHILE, 1, body);
  AddTask(stream, index, ACL_MODEL_RI_COND_TYPE_SWITCH, 3, cases);

  CHECK_ACL(aclmdlRICaptureToModelRIBegin(branch, either[0], ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  RUN_OP(branch, aclnnMuls, tensors[0], two, tensors[1]);
  {
    const Condition nested = MakeCondition(branch, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT);
    aclmdlRI within[1];
    AddTask(branch, nested, ACL_MODEL_RI_COND_TYPE_IF, 1, within);
    CHECK_ACL(aclmdlRICaptureToModelRIBegin(inner, within[0], ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    RUN_OP(inner, aclnnInplaceAdds, tensors[1], one, one);
    CHECK_ACL(aclmdlRICaptureEnd(inner, nullptr));
  }
  CHECK_ACL(aclmdlRICaptureEnd(branch, nullptr));
  CHECK_ACL(aclmdlRICaptureToModelRIBegin(branch, either[1], ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  RUN_OP(branch, aclnnAdds, tensors[0], two, one, tensors[1]);
  CHECK_ACL(aclmdlRICaptureEnd(branch, nullptr));

  CHECK_ACL(aclmdlRICaptureToModelRIBegin(branch, body[0], ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  RUN_OP(branch, aclnnInplaceMuls, tensors[2], two);
  RUN_OP(branch, aclnnInplaceAdd, round_tensor, step_tensor, once);
  CHECK_ACL(aclrtMemcpyAsync(loop.cell, 8, round, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, branch));
  CHECK_ACL(aclmdlRICaptureEnd(branch, &body[0]));

  for (int i = 0; i < 3; ++i) {
    CHECK_ACL(aclmdlRICaptureToModelRIBegin(branch, cases[i], ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    for (int j = 0; j <= i; ++j) RUN_OP(branch, aclnnInplaceAdds, tensors[2], one, one);
    CHECK_ACL(aclmdlRICaptureEnd(branch, nullptr));
  }
  aclmdlRI graph = nullptr;
  CHECK_ACL(aclmdlRICaptureEnd(stream, &graph));

  for (int run = 0; run < 4; ++run) {
    const int64_t rounds = run;
    CHECK_ACL(aclrtMemcpy(round, 8, &rounds, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    Write(chosen, static_cast<uint64_t>(run % 2));
    Write(loop, static_cast<uint64_t>(rounds));
    CHECK_ACL(aclmdlRIExecuteAsync(graph, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
    double sums[3] = {0, 0, 0};
    for (int i = 0; i < 3; ++i) {
      CHECK_ACL(aclrtMemcpy(host, kBytes, blocks[i], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
      for (int64_t j = 0; j < kCount; ++j) sums[i] += host[j];
    }
    printf("run %d: %.0f %.0f %.0f\n", run, sums[0], sums[1], sums[2]);
  }
  CHECK_ACL(aclmdlRIDestroy(graph));
  for (aclTensor* tensor : {tensors[0], tensors[1], tensors[2], round_tensor, step_tensor}) {
    CHECK_ACL(aclDestroyTensor(tensor));
  }
  for (aclScalar* scalar : {two, one, once}) CHECK_ACL(aclDestroyScalar(scalar));
  for (void* block : {blocks[0], blocks[1], blocks[2], round, step}) CHECK_ACL(aclrtFree(block));
  FreeWorkspaces();
  for (aclrtStream each : {stream, branch, inner}) CHECK_ACL(aclrtDestroyStream(each));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("conditional_graph: passed\n");
  return 0;
}
