// One event for every hand-over between two streams: a wait binds to the newest record, and an
// event of the old kind is reset after each wait.
#include <vector>

#include "acl/acl.h"
#include "session.h"

namespace {

constexpr int kRounds = 5;
constexpr size_t kBytes = 128;

void HandOver(aclrtStream from, aclrtStream to, aclrtEvent event, bool reset) {
  CHECK_ACL(aclrtRecordEvent(event, from));
  CHECK_ACL(aclrtStreamWaitEvent(to, event));
  if (reset) CHECK_ACL(aclrtResetEvent(event, to));
}

void Rounds(aclrtStream first, aclrtStream second, aclrtEvent there, aclrtEvent back, bool reset) {
  void* block = MallocDevice(kBytes);
  auto* all = static_cast<char*>(MallocDevice(kRounds * kBytes));
  for (int round = 0; round < kRounds; ++round) {
    CHECK_ACL(aclrtMemsetAsync(block, kBytes, round + 1, kBytes, first));
    HandOver(first, second, there, reset);
    CHECK_ACL(aclrtMemcpyAsync(all + round * kBytes, kBytes, block, kBytes,
                               ACL_MEMCPY_DEVICE_TO_DEVICE, second));
    HandOver(second, first, back, reset);
  }
  std::vector<unsigned char> result(kRounds * kBytes);
  Download(result.data(), all, result.size(), first);
  for (size_t i = 0; i < result.size(); ++i) CHECK(result[i] == i / kBytes + 1);
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtFree(all));
}

}  // namespace

int main() {
  aclrtStream first = StartSession(), second = nullptr;
  CHECK_ACL(aclrtCreateStream(&second));
  aclrtEvent old_events[2], ex_events[2];
  uint32_t id = 0, left = 0;
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclrtCreateEventWithFlag(&old_events[i], ACL_EVENT_SYNC));
    CHECK_ACL(aclrtCreateEventExWithFlag(&ex_events[i],
                                         ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS));
  }
  CHECK_ACL(aclrtGetEventAvailNum(&left));
  CHECK(left > 0);
  Rounds(first, second, old_events[0], old_events[1], true);
  Rounds(first, second, ex_events[0], ex_events[1], false);
  CHECK_ACL(aclrtGetEventId(old_events[0], &id));
  CHECK(aclrtResetEvent(ex_events[0], first) != 0);
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclrtDestroyEvent(old_events[i]));
    CHECK_ACL(aclrtDestroyEvent(ex_events[i]));
  }
  CHECK_ACL(aclrtDestroyStream(second));
  return EndSession(first);
}
