/* Attributes of every kind for an operator by name, and the casts of formats that it makes. */
#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  aclopAttr* attributes = aclopCreateAttr();
  const uint8_t flags[2] = {1, 0};
  const int64_t whole[2] = {3, 4};
  const int64_t* rows[1] = {whole};
  const int counts[1] = {2};
  const float reals[2] = {0.5f, 2};
  const char* words[2] = {"a", "b"};
  const aclDataType types[1] = {ACL_FLOAT};
  CHECK_ACL(aclopSetAttrFloat(attributes, "real", 0.5f));
  CHECK_ACL(aclopSetAttrString(attributes, "text", "ND"));
  CHECK_ACL(aclopSetAttrDataType(attributes, "type", ACL_FLOAT16));
  CHECK_ACL(aclopSetAttrListBool(attributes, "flags", 2, flags));
  CHECK_ACL(aclopSetAttrListInt(attributes, "whole", 2, whole));
  CHECK_ACL(aclopSetAttrListFloat(attributes, "reals", 2, reals));
  CHECK_ACL(aclopSetAttrListString(attributes, "words", 2, words));
  CHECK_ACL(aclopSetAttrListDataType(attributes, "types", 1, types));
  CHECK_ACL(aclopSetAttrListListInt(attributes, "rows", 1, counts, rows));
  aclopDestroyAttr(attributes);

  const float numbers[4] = {1, 2, 3, 4};
  const int64_t sizes[2] = {2, 2};
  void* x = UploadFloats(numbers, 4);
  void* y = MallocDevice(16);
  aclTensorDesc* from = aclCreateTensorDesc(ACL_FLOAT, 2, sizes, ACL_FORMAT_ND);
  aclTensorDesc* to = aclCreateTensorDesc(ACL_FLOAT, 2, sizes, ACL_FORMAT_ND);
  aclDataBuffer* input = aclCreateDataBuffer(x, 16);
  aclDataBuffer* output = aclCreateDataBuffer(y, 16);
  attributes = aclopCreateAttr();
  CHECK_ACL(aclopCompileAndExecuteV2("Identity", 1, &from, &input, 1, &to, &output, attributes,
                                     ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL, stream));
  float back[4];
  DownloadFloats(back, y, 4, stream);
  CHECK(memcmp(back, numbers, sizeof(back)) == 0);
  CHECK(aclopCompileAndExecuteV2("NoSuchOperator", 1, &from, &input, 1, &to, &output, attributes,
                                 ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL, stream) != 0);
  aclopDestroyAttr(attributes);
  aclDestroyTensorDesc(from);
  aclDestroyTensorDesc(to);
  CHECK_ACL(aclDestroyDataBuffer(input));
  CHECK_ACL(aclDestroyDataBuffer(output));
  CHECK_ACL(aclrtFree(x));
  CHECK_ACL(aclrtFree(y));
  return EndSession(stream);
}
