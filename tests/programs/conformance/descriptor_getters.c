/* Descriptions of tensors for operators by name, and what they tell. */
#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  const int64_t sizes[3] = {2, 3, 4};
  aclTensorDesc* description = aclCreateTensorDesc(ACL_FLOAT16, 3, sizes, ACL_FORMAT_ND);
  CHECK(description != NULL);
  CHECK(aclGetTensorDescType(description) == ACL_FLOAT16);
  CHECK(aclGetTensorDescFormat(description) == ACL_FORMAT_ND);
  CHECK(aclGetTensorDescNumDims(description) == 3);
  CHECK(aclGetTensorDescElementCount(description) == 24);
  CHECK(aclGetTensorDescSize(description) == 48);
  int64_t size = 0;
  CHECK_ACL(aclGetTensorDescDimV2(description, 2, &size));
  CHECK(size == 4);
  aclSetTensorDescName(description, "x");
  CHECK(strcmp(aclGetTensorDescName(description), "x") == 0);
  CHECK_ACL(aclSetTensorFormat(description, ACL_FORMAT_NHWC));
  CHECK_ACL(aclSetTensorShape(description, 2, sizes));
  CHECK_ACL(aclSetTensorOriginFormat(description, ACL_FORMAT_NCHW));
  CHECK_ACL(aclSetTensorOriginShape(description, 2, sizes));
  CHECK_ACL(aclSetTensorPlaceMent(description, ACL_MEMTYPE_HOST));
  aclDestroyTensorDesc(description);
  void* block = MallocDevice(48);
  CHECK_ACL(aclrtMemsetAsync(block, 48, 0, 48, stream));
  CheckFilled(block, 48, 0, stream);
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
