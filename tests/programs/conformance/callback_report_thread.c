/* Callbacks that a thread of the program processes: subscribe, launch, process, unsubscribe. */
#include "acl/acl.h"
#include "session.h"

static volatile int stop = 0;
static int called = 0;

static void* Process(void* unused) {
  (void)unused;
  while (!stop) aclrtProcessReport(100);
  return NULL;
}

static void Count(void* counter) { ++*(int*)counter; }

int main(void) {
  aclrtStream stream = StartSession();
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, Process, NULL) == 0);
  CHECK(aclrtLaunchCallback(Count, &called, ACL_CALLBACK_BLOCK, stream) != 0);
  CHECK_ACL(aclrtSubscribeReport((uint64_t)thread, stream));
  void* block = MallocDevice(64);
  for (int i = 0; i < 4; ++i) {
    CHECK_ACL(aclrtMemsetAsync(block, 64, i, 64, stream));
    CHECK_ACL(aclrtLaunchCallback(Count, &called, ACL_CALLBACK_BLOCK, stream));
  }
  unsigned char back[64];
  Download(back, block, 64, stream);
  CHECK(called == 4 && back[0] == 3);
  CHECK_ACL(aclrtUnSubscribeReport((uint64_t)thread, stream));
  stop = 1;
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
