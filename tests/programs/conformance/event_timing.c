/* How long work took, by events around it. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  aclrtEvent begin = NULL, end = NULL;
  CHECK_ACL(aclrtCreateEventWithFlag(&begin, ACL_EVENT_TIME_LINE));
  CHECK_ACL(aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE));
  const size_t bytes = 1 << 20;
  void* block = MallocDevice(bytes);
  CHECK_ACL(aclrtRecordEvent(begin, stream));
  for (int i = 0; i < 8; ++i) CHECK_ACL(aclrtMemsetAsync(block, bytes, i, bytes, stream));
  CHECK_ACL(aclrtRecordEvent(end, stream));
  CHECK_ACL(aclrtSynchronizeEvent(end));
  CheckFilled(block, 1024, 7, stream);
  float milliseconds = -1;
  CHECK_ACL(aclrtEventElapsedTime(&milliseconds, begin, end));
  CHECK(milliseconds >= 0 && milliseconds < 60000);
  uint64_t first = 0, last = 0;
  CHECK_ACL(aclrtEventGetTimestamp(begin, &first));
  CHECK_ACL(aclrtEventGetTimestamp(end, &last));
  CHECK(first > 0 && last >= first);
  CHECK_ACL(aclrtDestroyEvent(begin));
  CHECK_ACL(aclrtDestroyEvent(end));
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
