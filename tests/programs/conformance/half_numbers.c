/* Half precision on the host and on the device. */
#include "acl/acl.h"
#include "aclnnop/aclnn_cast.h"
#include "session.h"

enum { kCount = 8 };

int main(void) {
  aclrtStream stream = StartSession();
  const float numbers[kCount] = {
      0, 1, -2, 0.5f, 65504, 6.1035156e-5f, 1.0009766f, -0.333251953125f};
  aclFloat16 halves[kCount], device_halves[kCount];
  for (int i = 0; i < kCount; ++i) {
    halves[i] = aclFloatToFloat16(numbers[i]);
    CHECK(aclFloat16ToFloat(halves[i]) == numbers[i]);
  }
  CHECK(aclDataTypeSize(ACL_FLOAT16) == 2 && aclDataTypeSize(ACL_INT64) == 8);
  void* x = UploadFloats(numbers, kCount);
  void* y = MallocDevice(kCount * 2);
  const int64_t sizes[1] = {kCount};
  aclTensor* from = MakeTensor(ACL_FLOAT, 1, sizes, x);
  aclTensor* to = MakeTensor(ACL_FLOAT16, 1, sizes, y);
  RUN_OP(stream, aclnnCast, from, ACL_FLOAT16, to);
  Download(device_halves, y, sizeof(device_halves), stream);
  CHECK(memcmp(halves, device_halves, sizeof(halves)) == 0);
  aclDataBuffer* buffer = aclCreateDataBuffer(y, kCount * 2);
  CHECK(aclGetDataBufferAddr(buffer) == y && aclGetDataBufferSizeV2(buffer) == kCount * 2);
  CHECK_ACL(aclUpdateDataBuffer(buffer, x, kCount * 4));
  CHECK(aclGetDataBufferAddr(buffer) == x && aclGetDataBufferSize(buffer) == kCount * 4);
  CHECK_ACL(aclDestroyDataBuffer(buffer));
  CHECK_ACL(aclDestroyTensor(from));
  CHECK_ACL(aclDestroyTensor(to));
  CHECK_ACL(aclrtFree(x));
  CHECK_ACL(aclrtFree(y));
  return EndSession(stream);
}
