/* A graph with a branch: a number in device memory says at each launch whether it is taken. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession(), branch = NULL;
  CHECK_ACL(aclrtCreateStream(&branch));
  void* block = MallocDevice(32);
  aclmdlRI model = NULL, taken = NULL;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_ACL(aclmdlRICaptureGetInfo(stream, NULL, &model));
  aclmdlRICondHandle handle = NULL;
  uint64_t* cell = NULL;
  CHECK_ACL(aclmdlRICondHandleCreate(model, 0, (aclmdlRICondHandleFlag)0, &handle));
  CHECK_ACL(aclmdlRICondHandleGetCondPtr(handle, &cell));
  CHECK_ACL(aclrtMemsetAsync(block, 32, 1, 32, stream));
  aclmdlRICondTaskParams task = {handle, ACL_MODEL_RI_COND_TYPE_IF, 1, &taken};
  CHECK_ACL(aclmdlRIAddCondTask(task, stream, 0));
  CHECK_ACL(aclmdlRICaptureToModelRIBegin(branch, taken, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_ACL(aclrtMemsetAsync(block, 16, 2, 16, branch));
  CHECK_ACL(aclmdlRICaptureEnd(branch, NULL));
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  for (uint64_t value = 0; value < 2; ++value) {
    CHECK_ACL(aclrtMemcpy(cell, 8, &value, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
    unsigned char back[32];
    Download(back, block, 32, stream);
    for (int i = 0; i < 32; ++i) CHECK(back[i] == (value == 1 && i < 16 ? 2 : 1));
  }
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtDestroyStream(branch));
  return EndSession(stream);
}
