/* Host functions between tasks of a stream: each sees what the tasks before it did. */
#include "acl/acl.h"
#include "session.h"

static int order[3];
static int calls = 0;

static void Note(void* number) { order[calls++] = *(int*)number; }

int main(void) {
  aclrtStream stream = StartSession();
  int numbers[3] = {7, 8, 9};
  void* block = MallocDevice(64);
  for (int i = 0; i < 3; ++i) {
    CHECK_ACL(aclrtMemsetAsync(block, 64, numbers[i], 64, stream));
    CHECK_ACL(aclrtLaunchHostFunc(stream, Note, &numbers[i]));
  }
  unsigned char back[64];
  Download(back, block, 64, stream);
  CHECK(calls == 3);
  for (int i = 0; i < 3; ++i) CHECK(order[i] == numbers[i]);
  CHECK(back[0] == 9 && back[63] == 9);
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
