/* Time limits of kernels, and the number of the last task of the thread. */
#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  CHECK_ACL(aclrtSetOpExecuteTimeOut(600));
  CHECK_ACL(aclrtSetOpExecuteTimeOutWithMs(500000));
  uint32_t milliseconds = 0;
  CHECK_ACL(aclrtGetOpExecuteTimeout(&milliseconds));
  CHECK(milliseconds > 0);
  const float numbers[4] = {1, 2, 3, 4};
  void* x = UploadFloats(numbers, 4);
  aclTensor* tensor = MakeVector(4, x);
  aclScalar* one = MakeScalar(1);
  RUN_OP(stream, aclnnInplaceAdd, tensor, tensor, one);
  uint32_t task = 0;
  CHECK_ACL(aclrtGetThreadLastTaskId(&task));
  float back[4];
  DownloadFloats(back, x, 4, stream);
  for (int i = 0; i < 4; ++i) CHECK(back[i] == 2 * numbers[i]);
  CHECK_ACL(aclDestroyTensor(tensor));
  CHECK_ACL(aclDestroyScalar(one));
  CHECK_ACL(aclrtFree(x));
  return EndSession(stream);
}
