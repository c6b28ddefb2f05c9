/* A task of a graph is switched off, and the graph updated. */
#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_mul.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  const float numbers[2] = {3, 5};
  void* x = UploadFloats(numbers, 2);
  void* y = MallocDevice(8);
  aclTensor* input = MakeVector(2, x);
  aclTensor* output = MakeVector(2, y);
  aclScalar* one = MakeScalar(1);
  aclmdlRI model = NULL;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  RUN_OP(stream, aclnnMul, input, input, output);
  RUN_OP(stream, aclnnInplaceAdd, output, input, one);
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  float back[2];
  CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
  DownloadFloats(back, y, 2, stream);
  CHECK(back[0] == 12 && back[1] == 30);

  aclrtStream streams[4];
  aclmdlRITask tasks[8], kernels[2];
  uint32_t count = 4, found = 0;
  CHECK_ACL(aclmdlRIGetStreams(model, streams, &count));
  count = 8;
  CHECK_ACL(aclmdlRIGetTasksByStream(streams[0], tasks, &count));
  for (uint32_t i = 0; i < count; ++i) {
    aclmdlRITaskType type = ACL_MODEL_RI_TASK_DEFAULT;
    CHECK_ACL(aclmdlRITaskGetType(tasks[i], &type));
    if (type == ACL_MODEL_RI_TASK_KERNEL && found < 2) kernels[found++] = tasks[i];
  }
  CHECK(found == 2);
  CHECK_ACL(aclmdlRITaskDisable(kernels[1]));
  CHECK_ACL(aclmdlRIUpdate(model));
  CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
  DownloadFloats(back, y, 2, stream);
  CHECK(back[0] == 9 && back[1] == 25);
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclDestroyTensor(input));
  CHECK_ACL(aclDestroyTensor(output));
  CHECK_ACL(aclDestroyScalar(one));
  FreeWorkspaces();
  CHECK_ACL(aclrtFree(x));
  CHECK_ACL(aclrtFree(y));
  return EndSession(stream);
}
