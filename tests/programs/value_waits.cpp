// Waits for values in device memory that the program never initialised. The first holds at once,
// whatever new memory holds that is not negative; the second is released by a write of another
// stream.
#include <initializer_list>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "sample.h"

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream worker = nullptr, writer = nullptr;
  CHECK_ACL(aclrtCreateStream(&worker));
  CHECK_ACL(aclrtCreateStream(&writer));
  constexpr int64_t kCount = 256;
  constexpr size_t kBytes = kCount * sizeof(float);
  float host[kCount];
  for (int64_t i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 4);
  void* x_memory = MallocDevice(kBytes);
  void* y_memory = MallocDevice(kBytes);
  void* ready = MallocDevice(32);
  void* released = MallocDevice(32);
  CHECK_ACL(aclrtMemcpy(x_memory, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  aclTensor* x = MakeVector(kCount, x_memory);
  aclTensor* y = MakeVector(kCount, y_memory);
  aclScalar* two = MakeScalar(2);
  aclScalar* one = MakeScalar(1);

  CHECK_ACL(aclrtValueWait(ready, 0, ACL_STREAM_WAIT_VALUE_GEQ, worker));
  RUN_OP(worker, aclnnMuls, x, two, y);
  CHECK_ACL(aclrtValueWait(released, 7, ACL_STREAM_WAIT_VALUE_EQ, worker));
  RUN_OP(worker, aclnnAdds, y, one, one, x);
  CHECK_ACL(aclrtValueWrite(released, 7, 0, writer));
  CHECK_ACL(aclrtSynchronizeStream(worker));

  CHECK_ACL(aclrtMemcpy(host, kBytes, x_memory, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  double sum = 0;
  for (int64_t i = 0; i < kCount; ++i) sum += host[i];
  printf("sum: %.0f\n", sum);
  for (aclTensor* tensor : {x, y}) CHECK_ACL(aclDestroyTensor(tensor));
  for (aclScalar* scalar : {two, one}) CHECK_ACL(aclDestroyScalar(scalar));
  for (void* block : {x_memory, y_memory, ready, released}) CHECK_ACL(aclrtFree(block));
  FreeWorkspaces();
  CHECK_ACL(aclrtDestroyStream(worker));
  CHECK_ACL(aclrtDestroyStream(writer));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("value_waits: passed\n");
  return 0;
}
