/* A built model that draws numbers, and new parameters for its task, which a stream brings. */
#include "acl/acl.h"
#include "random_task.h"
#include "session.h"

enum { kCount = 100, kBytes = kCount * 4 };

static void Execute(aclmdlRI model, void* counter, void* result, float* to, aclrtStream stream) {
  CHECK_ACL(aclrtMemsetAsync(counter, 16, 0, 16, stream));
  CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
  DownloadFloats(to, result, kCount, stream);
}

int main(void) {
  aclrtStream stream = StartSession(), bound = NULL;
  aclmdlRI model = NULL;
  void* counter = MallocDevice(16);
  void* result = MallocDevice(kBytes);
  void* elsewhere = MallocDevice(kBytes);
  CHECK_ACL(aclmdlRIBuildBegin(&model, 0));
  CHECK_ACL(aclrtCreateStreamWithConfig(&bound, 0, ACL_STREAM_PERSISTENT));
  CHECK_ACL(aclmdlRIBindStream(model, bound, ACL_MODEL_STREAM_FLAG_HEAD));
  const aclrtRandomNumTaskInfo first_task = Uniform(0, 1, 1, kCount, counter, result);
  uint32_t number = 0;
  CHECK_ACL(aclrtRandomNumAsync(&first_task, bound, NULL));
  CHECK_ACL(aclrtGetThreadLastTaskId(&number));
  CHECK_ACL(aclmdlRIEndTask(model, bound));
  CHECK_ACL(aclmdlRIBuildEnd(model, NULL));
  float first[kCount], again[kCount], updated[kCount];
  Execute(model, counter, result, first, stream);
  Execute(model, counter, result, again, stream);
  CHECK(memcmp(first, again, sizeof(first)) == 0);

  const aclrtRandomNumTaskInfo second_task = Uniform(0, 1, 2, kCount, counter, elsewhere);
  void* parameters = Upload(&second_task, sizeof(second_task));
  aclrtTaskUpdateInfo update;
  memset(&update, 0, sizeof(update));
  update.id = ACL_RT_UPDATE_RANDOM_TASK;
  update.val.randomTaskAttr.srcAddr = parameters;
  update.val.randomTaskAttr.size = sizeof(second_task);
  CHECK_ACL(aclrtTaskUpdateAsync(bound, number, &update, stream));
  Execute(model, counter, elsewhere, updated, stream);
  CHECK(memcmp(first, updated, sizeof(first)) != 0);
  for (int i = 0; i < kCount; ++i) CHECK(updated[i] >= 0 && updated[i] < 1);

  CHECK_ACL(aclmdlRIUnbindStream(model, bound));
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtDestroyStream(bound));
  CHECK_ACL(aclrtFree(parameters));
  CHECK_ACL(aclrtFree(counter));
  CHECK_ACL(aclrtFree(result));
  CHECK_ACL(aclrtFree(elsewhere));
  return EndSession(stream);
}
