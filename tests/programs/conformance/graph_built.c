/* A model that is built task by task without a capture, with a stream that another one starts. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession(), head = NULL, tail = NULL;
  aclmdlRI model = NULL;
  CHECK_ACL(aclmdlRIBuildBegin(&model, 0));
  CHECK_ACL(aclrtCreateStreamWithConfig(&head, 0, ACL_STREAM_PERSISTENT));
  CHECK_ACL(aclrtCreateStreamWithConfig(&tail, 0, ACL_STREAM_PERSISTENT));
  CHECK_ACL(aclmdlRIBindStream(model, head, ACL_MODEL_STREAM_FLAG_HEAD));
  CHECK_ACL(aclmdlRIBindStream(model, tail, ACL_MODEL_STREAM_FLAG_DEFAULT));
  int32_t* numbers = (int32_t*)MallocDevice(8);
  void* block = MallocDevice(32);
  CHECK_ACL(aclrtMemset(block, 32, 0, 32));
  CHECK_ACL(aclrtMemsetAsync(block, 32, 1, 32, head));
  /* tail runs only where the first number is greater than the second. */
  CHECK_ACL(aclrtSwitchStream(numbers, ACL_RT_GREATER, numbers + 1, ACL_RT_SWITCH_INT32, tail, NULL,
                              head));
  CHECK_ACL(aclrtMemsetAsync(block, 16, 2, 16, tail));
  CHECK_ACL(aclmdlRIEndTask(model, head));
  CHECK_ACL(aclmdlRIEndTask(model, tail));
  CHECK_ACL(aclmdlRIBuildEnd(model, NULL));
  for (int32_t first = 4; first <= 6; ++first) {
    const int32_t pair[2] = {first, 5};
    CHECK_ACL(aclrtMemcpy(numbers, 8, pair, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_ACL(aclmdlRIExecute(model, 10000));
    unsigned char back[32];
    CHECK_ACL(aclrtMemcpy(back, 32, block, 32, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(back[31] == 1 && back[0] == (first > 5 ? 2 : 1));
  }
  CHECK_ACL(aclmdlRIUnbindStream(model, head));
  CHECK_ACL(aclmdlRIUnbindStream(model, tail));
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtDestroyStream(head));
  CHECK_ACL(aclrtDestroyStream(tail));
  CHECK_ACL(aclrtFree(numbers));
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
