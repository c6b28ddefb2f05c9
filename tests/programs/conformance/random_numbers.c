/* Random numbers of the device: equal seeds and counters give equal numbers. */
#include "acl/acl.h"
#include "session.h"

enum { kCount = 1000 };

static aclrtRandomParaInfo Value(const void* from, uint8_t bytes) {
  aclrtRandomParaInfo made;
  memset(&made, 0, sizeof(made));
  made.size = bytes;
  memcpy(made.valueOrAddr, from, bytes);
  return made;
}

static void Draw(void* counter, float* to, aclrtStream stream) {
  const float low = -1, high = 3;
  const uint64_t seed = 42, count = kCount;
  void* result = MallocDevice(kCount * 4);
  aclrtRandomNumTaskInfo task;
  memset(&task, 0, sizeof(task));
  task.dataType = ACL_FLOAT;
  task.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
  task.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = Value(&low, 4);
  task.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = Value(&high, 4);
  task.randomResultAddr = result;
  task.randomCounterAddr = counter;
  task.randomSeed = Value(&seed, 8);
  task.randomNum = Value(&count, 8);
  CHECK_ACL(aclrtRandomNumAsync(&task, stream, NULL));
  DownloadFloats(to, result, kCount, stream);
  CHECK_ACL(aclrtFree(result));
}

int main(void) {
  aclrtStream stream = StartSession();
  float first[kCount], second[kCount], again[kCount];
  void* counter = MallocDevice(16);
  CHECK_ACL(aclrtMemset(counter, 16, 0, 16));
  Draw(counter, first, stream);
  Draw(counter, second, stream); /* goes on where the first ended */
  CHECK_ACL(aclrtMemset(counter, 16, 0, 16));
  Draw(counter, again, stream);
  CHECK(memcmp(first, again, sizeof(first)) == 0);
  CHECK(memcmp(first, second, sizeof(first)) != 0);
  double sum = 0;
  for (int i = 0; i < kCount; ++i) {
    CHECK(first[i] >= -1 && first[i] < 3);
    sum += first[i];
  }
  CHECK(Near(sum / kCount, 1, 0.2));
  CHECK_ACL(aclrtFree(counter));
  return EndSession(stream);
}
