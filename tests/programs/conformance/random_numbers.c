/* Random numbers of the device: equal seeds and counters give equal numbers. */
#include "acl/acl.h"
#include "random_task.h"
#include "session.h"

enum { kCount = 1000 };

static void Draw(void* counter, float* to, aclrtStream stream) {
  void* result = MallocDevice(kCount * 4);
  const aclrtRandomNumTaskInfo task = Uniform(-1, 3, 42, kCount, counter, result);
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
