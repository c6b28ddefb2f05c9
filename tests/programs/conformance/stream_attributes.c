/* Attributes of a stream: what it does after a failure, its tag, its overflow check. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  aclrtStreamAttrValue value;
  memset(&value, 0, sizeof(value));
  CHECK_ACL(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value));
  CHECK(value.failureMode == ACL_CONTINUE_ON_FAILURE);
  CHECK_ACL(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
  CHECK_ACL(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value));
  CHECK(value.failureMode == ACL_STOP_ON_FAILURE);
  value.userCustomTag = 77;
  CHECK_ACL(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
  memset(&value, 0, sizeof(value));
  CHECK_ACL(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
  CHECK(value.userCustomTag == 77);
  void* block = MallocDevice(64);
  CHECK_ACL(aclrtMemsetAsync(block, 64, 6, 64, stream));
  CheckFilled(block, 64, 6, stream);
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
