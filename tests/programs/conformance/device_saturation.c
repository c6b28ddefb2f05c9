/* Saturation: on streams that are created after the device's mode, results that no number can hold
 * become the greatest one, and the status tells it, in a graph too. */
#include <float.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_mul.h"
#include "session.h"

static uint32_t Status(void* status, aclrtStream stream) {
  uint32_t flag[16];
  CHECK_ACL(aclrtGetOverflowStatus(status, 64, stream));
  Download(flag, status, 64, stream);
  return flag[0];
}

int main(void) {
  CHECK_ACL(aclInit(NULL));
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  CHECK_ACL(aclrtGetDeviceSatMode(&mode));
  CHECK(mode == ACL_RT_OVERFLOW_MODE_SATURATION);
  aclrtStream stream = NULL;
  CHECK_ACL(aclrtCreateStream(&stream));
  CHECK_ACL(aclrtSetStreamOverflowSwitch(stream, 1));

  const float large[2] = {3e38f, 2};
  const float factors[2] = {-3e38f, 4};
  void* x = UploadFloats(large, 2);
  void* w = UploadFloats(factors, 2);
  void* y = MallocDevice(8);
  void* status = MallocDevice(64);
  aclTensor* left = MakeVector(2, x);
  aclTensor* right = MakeVector(2, w);
  aclTensor* result = MakeVector(2, y);
  CHECK(Status(status, stream) == 0);
  RUN_OP(stream, aclnnMul, left, right, result);
  CHECK(Status(status, stream) == 1);
  float back[2];
  DownloadFloats(back, y, 2, stream);
  CHECK(back[0] == -FLT_MAX && back[1] == 8);
  CHECK_ACL(aclrtResetOverflowStatus(stream));
  CHECK(Status(status, stream) == 0);

  aclmdlRI model = NULL;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  RUN_OP(stream, aclnnMul, left, left, result);
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  CHECK(Status(status, stream) == 0);
  CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
  CHECK(Status(status, stream) == 1);
  DownloadFloats(back, y, 2, stream);
  CHECK(back[0] == FLT_MAX && back[1] == 4);
  CHECK_ACL(aclmdlRIDestroy(model));

  CHECK_ACL(aclDestroyTensor(left));
  CHECK_ACL(aclDestroyTensor(right));
  CHECK_ACL(aclDestroyTensor(result));
  CHECK_ACL(aclrtFree(x));
  CHECK_ACL(aclrtFree(w));
  CHECK_ACL(aclrtFree(y));
  CHECK_ACL(aclrtFree(status));
  return EndSession(stream);
}
