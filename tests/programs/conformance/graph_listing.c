/* The contents of a graph: its name, its streams, the tasks on each, and a drawing of it in a file. */
#include <unistd.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_mul.h"
#include "session.h"

enum { kMost = 16 };

static int destroyed = 0;
static void OnDestroy(void* counter) { ++*(int*)counter; }

int main(void) {
  aclrtStream stream = StartSession();
  const float numbers[4] = {1, 2, 3, 4};
  void* x = UploadFloats(numbers, 4);
  aclTensor* tensor = MakeVector(4, x);
  aclmdlRI model = NULL;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  RUN_OP(stream, aclnnInplaceMul, tensor, tensor);
  RUN_OP(stream, aclnnInplaceMul, tensor, tensor);
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  char name[32] = "";
  uint32_t id = 0;
  CHECK_ACL(aclmdlRISetName(model, "squares"));
  CHECK_ACL(aclmdlRIGetName(model, sizeof(name), name));
  CHECK(strcmp(name, "squares") == 0);
  CHECK_ACL(aclmdlRIGetId(model, &id));
  aclrtStream streams[kMost];
  uint32_t count = kMost, kernels = 0;
  CHECK_ACL(aclmdlRIGetStreams(model, streams, &count));
  CHECK(count == 1);
  aclmdlRITask tasks[kMost];
  count = kMost;
  CHECK_ACL(aclmdlRIGetTasksByStream(streams[0], tasks, &count));
  uint32_t last = 0;
  for (uint32_t i = 0; i < count; ++i) {
    aclmdlRITaskType type = ACL_MODEL_RI_TASK_DEFAULT;
    uint32_t number = 0;
    CHECK_ACL(aclmdlRITaskGetType(tasks[i], &type));
    CHECK_ACL(aclmdlRITaskGetSeqId(tasks[i], &number));
    CHECK(i == 0 || number > last);
    last = number;
    if (type != ACL_MODEL_RI_TASK_KERNEL) continue;
    ++kernels;
    aclmdlRITaskParams what;
    memset(&what, 0, sizeof(what));
    CHECK_ACL(aclmdlRITaskGetParams(tasks[i], &what));
    CHECK(what.type == ACL_MODEL_RI_TASK_KERNEL);
    char kernel[128] = "";
    CHECK_ACL(aclrtGetFunctionName(what.kernelTaskParams.funcHandle, sizeof(kernel), kernel));
    CHECK(strlen(kernel) > 0);
  }
  CHECK(kernels == 2);
  char path[] = "/tmp/acl_graph_XXXXXX";
  const int file = mkstemp(path);
  CHECK(file >= 0);
  close(file);
  CHECK_ACL(aclmdlRIDebugJsonPrint(model, path, ACL_MDLRI_DEBUG_JSON_PRINT_SUMMARY));
  CHECK_ACL(aclmdlRIDebugPrint(model));
  FILE* drawing = fopen(path, "r");
  CHECK(drawing != NULL && fgetc(drawing) != EOF);
  fclose(drawing);
  unlink(path);
  CHECK_ACL(aclmdlRIDestroyRegisterCallback(model, OnDestroy, &destroyed));
  CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
  float back[4];
  DownloadFloats(back, x, 4, stream);
  for (int i = 0; i < 4; ++i) CHECK(back[i] == numbers[i] * numbers[i] * numbers[i] * numbers[i]);
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK(destroyed == 1);
  CHECK_ACL(aclDestroyTensor(tensor));
  FreeWorkspaces();
  CHECK_ACL(aclrtFree(x));
  return EndSession(stream);
}
