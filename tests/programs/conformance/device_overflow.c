/* Overflow: the mode of the device, the status that a task writes, and the switch of a stream. */
#include "acl/acl.h"
#include "aclnnop/aclnn_mul.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  CHECK_ACL(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
  CHECK_ACL(aclrtGetDeviceSatMode(&mode));
  CHECK(mode == ACL_RT_OVERFLOW_MODE_INFNAN);
  uint32_t on = 9;
  CHECK_ACL(aclrtSetStreamOverflowSwitch(stream, 1));
  CHECK_ACL(aclrtGetStreamOverflowSwitch(stream, &on));
  CHECK(on == 1);

  /* Two numbers whose product no float holds. */
  const float large[2] = {3e38f, -3e38f};
  void* x = UploadFloats(large, 2);
  void* y = MallocDevice(8);
  aclTensor* tensor = MakeVector(2, x);
  aclTensor* result = MakeVector(2, y);
  CHECK_ACL(aclrtResetOverflowStatus(stream));
  RUN_OP(stream, aclnnMul, tensor, tensor, result);
  void* status = MallocDevice(64);
  CHECK_ACL(aclrtGetOverflowStatus(status, 64, stream));
  float back[2];
  DownloadFloats(back, y, 2, stream);
  CHECK(back[0] > 3.4e38f && back[1] > 3.4e38f);
  CHECK_ACL(aclDestroyTensor(tensor));
  CHECK_ACL(aclDestroyTensor(result));
  CHECK_ACL(aclrtFree(x));
  CHECK_ACL(aclrtFree(y));
  CHECK_ACL(aclrtFree(status));
  return EndSession(stream);
}
