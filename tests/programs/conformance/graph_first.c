/* The first graph of every course: capture, look at it, execute it often, with new inputs in place.
 */
#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "session.h"

enum { kCount = 16 };

int main(void) {
  aclrtStream stream = StartSession();
  float host[kCount];
  void* x = MallocDevice(sizeof(host));
  void* y = MallocDevice(sizeof(host));
  aclTensor* input = MakeVector(kCount, x);
  aclTensor* output = MakeVector(kCount, y);
  aclScalar* one = MakeScalar(1);
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED;
  aclmdlRI during = NULL, model = NULL;
  CHECK_ACL(aclmdlRICaptureGetInfo(stream, &status, &during));
  CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_NONE && during == NULL);
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  CHECK_ACL(aclmdlRICaptureGetInfo(stream, &status, &during));
  CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE && during != NULL);
  RUN_OP(stream, aclnnMul, input, input, output);
  RUN_OP(stream, aclnnInplaceAdd, output, input, one);
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  CHECK(model == during);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kCount; ++i) host[i] = (float)(i + round);
    CHECK_ACL(aclrtMemcpy(x, sizeof(host), host, sizeof(host), ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
    DownloadFloats(host, y, kCount, stream);
    for (int i = 0; i < kCount; ++i) CHECK(host[i] == (float)((i + round) * (i + round + 1)));
  }
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclDestroyTensor(input));
  CHECK_ACL(aclDestroyTensor(output));
  CHECK_ACL(aclDestroyScalar(one));
  FreeWorkspaces();
  CHECK_ACL(aclrtFree(x));
  CHECK_ACL(aclrtFree(y));
  return EndSession(stream);
}
