// An executor that is used again with other addresses, of tensors and of members of a list.
#include "acl/acl.h"
#include "aclnnop/aclnn_cat.h"
#include "session.h"

int main() {
  aclrtStream stream = StartSession();
  const float numbers[] = {1, 2, 3, 4};
  auto* x = static_cast<float*>(UploadFloats(numbers, 4));
  auto* y = static_cast<float*>(MallocDevice(8 * 4));
  const aclTensor* members[] = {MakeVector(2, x), MakeVector(2, x + 2)};
  aclTensorList* list = aclCreateTensorList(members, 2);
  aclTensor* result = MakeVector(4, y);
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_ACL(aclnnCatGetWorkspaceSize(list, 0, result, &bytes, &executor));
  CHECK_ACL(aclSetAclOpExecutorRepeatable(executor));
  void* workspace = NewWorkspace(bytes);
  CHECK_ACL(aclnnCat(workspace, bytes, executor, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK_ACL(aclSetDynamicInputTensorAddr(executor, 0, 0, list, x + 2));
  CHECK_ACL(aclSetDynamicInputTensorAddr(executor, 0, 1, list, x));
  CHECK_ACL(aclSetOutputTensorAddr(executor, 0, result, y + 4));
  CHECK_ACL(aclnnCat(workspace, bytes, executor, stream));
  float back[8];
  DownloadFloats(back, y, 8, stream);
  const float expected[] = {1, 2, 3, 4, 3, 4, 1, 2};
  for (int i = 0; i < 8; ++i) CHECK(back[i] == expected[i]);
  CHECK_ACL(aclDestroyAclOpExecutor(executor));
  CHECK_ACL(aclDestroyTensorList(list));
  CHECK_ACL(aclDestroyTensor(result));
  FreeWorkspaces();
  CHECK_ACL(aclrtFree(x));
  CHECK_ACL(aclrtFree(y));
  return EndSession(stream);
}
