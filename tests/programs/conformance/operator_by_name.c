/* A matrix product by the name of the operator, with attributes, as programs before aclnn call it.
 */
#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
  const int64_t left[2] = {2, 3}, right[2] = {3, 2}, product[2] = {2, 2};
  void* blocks[3] = {UploadFloats(a, 6), UploadFloats(b, 6), MallocDevice(16)};
  aclTensorDesc* descriptions[3] = {aclCreateTensorDesc(ACL_FLOAT, 2, left, ACL_FORMAT_ND),
                                    aclCreateTensorDesc(ACL_FLOAT, 2, right, ACL_FORMAT_ND),
                                    aclCreateTensorDesc(ACL_FLOAT, 2, product, ACL_FORMAT_ND)};
  aclDataBuffer* buffers[3] = {aclCreateDataBuffer(blocks[0], 24),
                               aclCreateDataBuffer(blocks[1], 24),
                               aclCreateDataBuffer(blocks[2], 16)};
  aclopAttr* attributes = aclopCreateAttr();
  CHECK_ACL(aclopSetAttrBool(attributes, "transpose_x1", 0));
  CHECK_ACL(aclopSetAttrBool(attributes, "transpose_x2", 0));
  CHECK_ACL(aclopSetAttrInt(attributes, "offset_x", 0));
  CHECK_ACL(aclSetCompileopt(ACL_OP_JIT_COMPILE, "disable"));
  char value[32] = "";
  CHECK(aclGetCompileoptSize(ACL_OP_JIT_COMPILE) <= sizeof(value));
  CHECK_ACL(aclGetCompileopt(ACL_OP_JIT_COMPILE, value, sizeof(value)));
  CHECK(strcmp(value, "disable") == 0);
  CHECK_ACL(aclopCompileAndExecute("MatMul", 2, (const aclTensorDesc* const*)descriptions,
                                   (const aclDataBuffer* const*)buffers, 1,
                                   (const aclTensorDesc* const*)&descriptions[2], &buffers[2],
                                   attributes, ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL, stream));
  float back[4];
  DownloadFloats(back, blocks[2], 4, stream);
  CHECK(back[0] == 4 && back[1] == 5 && back[2] == 10 && back[3] == 11);
  aclopDestroyAttr(attributes);
  for (int i = 0; i < 3; ++i) {
    aclDestroyTensorDesc(descriptions[i]);
    CHECK_ACL(aclDestroyDataBuffer(buffers[i]));
    CHECK_ACL(aclrtFree(blocks[i]));
  }
  return EndSession(stream);
}
