/* Options of the process and of a context, such as deterministic kernels. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  int64_t value = 9;
  CHECK_ACL(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  CHECK_ACL(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  CHECK(value == 1);
  CHECK_ACL(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0));
  CHECK_ACL(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  CHECK(value == 0);
  CHECK(aclrtCtxGetSysParamOpt((aclSysParamOpt)99, &value) == ACL_ERROR_INVALID_PARAM);
  void* block = MallocDevice(16);
  CHECK_ACL(aclrtMemsetAsync(block, 16, 5, 16, stream));
  CheckFilled(block, 16, 5, stream);
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
