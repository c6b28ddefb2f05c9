// One executor for many launches: made repeatable, its tensors moved to other memory between two
// launches, singly and inside a list. And a process that forks: the child uses the device on its
// own, before the parent has begun to.
//
//   repeated_executor
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cat.h"
#include "sample.h"

namespace {

constexpr int kCount = 4;
constexpr size_t kBytes = kCount * sizeof(float);

void* Upload(std::vector<float> values) {
  void* device = MallocDevice(values.size() * sizeof(float));
  CHECK_ACL(aclrtMemcpy(device, values.size() * sizeof(float), values.data(),
                        values.size() * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE));
  return device;
}

void Show(const char* name, void* device, int count) {
  std::vector<float> values(static_cast<size_t>(count));
  CHECK_ACL(aclrtMemcpy(values.data(), values.size() * sizeof(float), device,
                        values.size() * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST));
  std::printf("%s:", name);
  for (const float value : values) std::printf(" %g", value);
  std::printf("\n");
}

// Adds three times: as prepared, with the first input elsewhere, with the output elsewhere.
void MovedAdd(aclrtStream stream) {
  void* inputs[] = {Upload({1, 2, 3, 4}), Upload({10, 20, 30, 40}), Upload({5, 5, 5, 5})};
  void* outputs[] = {MallocDevice(kBytes), MallocDevice(kBytes)};
  aclTensor* self = MakeVector(kCount, inputs[0]);
  aclTensor* other = MakeVector(kCount, inputs[1]);
  aclTensor* out = MakeVector(kCount, outputs[0]);
  aclScalar* alpha = MakeScalar(2);
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_ACL(aclnnAddGetWorkspaceSize(self, other, alpha, out, &workspace_bytes, &executor));
  CHECK_ACL(aclSetAclOpExecutorRepeatable(executor));
  void* workspace = workspace_bytes == 0 ? nullptr : MallocDevice(workspace_bytes);
  const auto launch = [&](const char* name, void* result) {
    CHECK_ACL(aclnnAdd(workspace, workspace_bytes, executor, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
    Show(name, result, kCount);
  };
  launch("prepared", outputs[0]);
  CHECK_ACL(aclSetInputTensorAddr(executor, 0, self, inputs[2]));
  launch("input moved", outputs[0]);
  CHECK_ACL(aclSetOutputTensorAddr(executor, 0, out, outputs[1]));
  launch("output moved", outputs[1]);
  CHECK_ACL(aclDestroyAclOpExecutor(executor));
  for (const aclTensor* tensor : {self, other, out}) CHECK_ACL(aclDestroyTensor(tensor));
  CHECK_ACL(aclDestroyScalar(alpha));
  for (void* block : inputs) CHECK_ACL(aclrtFree(block));
  for (void* block : outputs) CHECK_ACL(aclrtFree(block));
  if (workspace != nullptr) CHECK_ACL(aclrtFree(workspace));
}

// A list whose second tensor is elsewhere in the second launch.
void MovedCat(aclrtStream stream) {
  void* inputs[] = {Upload({1, 2, 3, 4}), Upload({10, 20, 30, 40}), Upload({5, 6, 7, 8})};
  void* output = MallocDevice(2 * kBytes);
  const aclTensor* parts[] = {MakeVector(kCount, inputs[0]), MakeVector(kCount, inputs[1])};
  aclTensorList* list = aclCreateTensorList(parts, 2);
  CHECK(list != nullptr);
  aclTensor* out = MakeVector(2 * kCount, output);
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_ACL(aclnnCatGetWorkspaceSize(list, 0, out, &workspace_bytes, &executor));
  CHECK_ACL(aclSetAclOpExecutorRepeatable(executor));
  void* workspace = workspace_bytes == 0 ? nullptr : MallocDevice(workspace_bytes);
  for (const char* name : {"list", "list moved"}) {
    CHECK_ACL(aclnnCat(workspace, workspace_bytes, executor, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
    Show(name, output, 2 * kCount);
    CHECK_ACL(aclSetDynamicInputTensorAddr(executor, 0, 1, list, inputs[2]));
  }
  CHECK_ACL(aclDestroyAclOpExecutor(executor));
  CHECK_ACL(aclDestroyTensorList(list));
  CHECK_ACL(aclDestroyTensor(out));
  for (void* block : inputs) CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtFree(output));
  if (workspace != nullptr) CHECK_ACL(aclrtFree(workspace));
}

void Run() {
  aclrtStream stream = nullptr;
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtCreateStream(&stream));
  MovedAdd(stream);
  MovedCat(stream);
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    Run();
    return 0;
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  Run();
  std::printf("repeated_executor: passed\n");
  return 0;
}
