/* A built model whose way is chosen by a number in device memory: labels. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession(), head = NULL;
  aclmdlRI model = NULL;
  CHECK_ACL(aclmdlRIBuildBegin(&model, 0));
  CHECK_ACL(aclrtCreateStreamWithConfig(&head, 0, ACL_STREAM_PERSISTENT));
  CHECK_ACL(aclmdlRIBindStream(model, head, ACL_MODEL_STREAM_FLAG_HEAD));
  int32_t* choice = (int32_t*)MallocDevice(4);
  void* block = MallocDevice(32);
  aclrtLabel labels[3]; /* two ways, and the end */
  aclrtLabelList ways = NULL, end = NULL;
  for (int i = 0; i < 3; ++i) CHECK_ACL(aclrtCreateLabel(&labels[i]));
  CHECK_ACL(aclrtCreateLabelList(labels, 2, &ways));
  CHECK_ACL(aclrtCreateLabelList(&labels[2], 1, &end));
  int32_t* zero = (int32_t*)MallocDevice(4);
  CHECK_ACL(aclrtMemset(zero, 4, 0, 4));
  CHECK_ACL(aclrtMemset(block, 32, 9, 32));

  CHECK_ACL(aclrtSwitchLabelByIndex(choice, 2, ways, head));
  CHECK_ACL(aclrtSetLabel(labels[0], head));
  CHECK_ACL(aclrtMemsetAsync(block, 32, 10, 32, head));
  CHECK_ACL(aclrtSwitchLabelByIndex(zero, 1, end, head));
  CHECK_ACL(aclrtSetLabel(labels[1], head));
  CHECK_ACL(aclrtMemsetAsync(block, 32, 11, 32, head));
  CHECK_ACL(aclrtSetLabel(labels[2], head));
  CHECK_ACL(aclmdlRIEndTask(model, head));
  CHECK_ACL(aclmdlRIBuildEnd(model, NULL));

  for (int32_t way = 0; way < 2; ++way) {
    CHECK_ACL(aclrtMemcpy(choice, 4, &way, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
    unsigned char back[32];
    Download(back, block, 32, stream);
    for (int i = 0; i < 32; ++i) CHECK(back[i] == 10 + way);
  }
  CHECK_ACL(aclmdlRIUnbindStream(model, head));
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtDestroyLabelList(ways));
  CHECK_ACL(aclrtDestroyLabelList(end));
  for (int i = 0; i < 3; ++i) CHECK_ACL(aclrtDestroyLabel(labels[i]));
  CHECK_ACL(aclrtDestroyStream(head));
  CHECK_ACL(aclrtFree(choice));
  CHECK_ACL(aclrtFree(zero));
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
