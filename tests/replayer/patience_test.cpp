// How long the host waits for work that may never end.
#include "replayer/device/patience.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace acltape::replayer {
namespace {

constexpr Patience kShort = {/*piece_ms=*/20, /*idle_pieces=*/3};
const acl::Api kApi = {};

CallResult TimedOut() { return {kApi, "wait", ACL_ERROR_RT_STREAM_SYNC_TIMEOUT}; }

TEST(Patience, WorkThatStandsStillIsGivenUp) {
  int pieces = 0;
  EXPECT_FALSE(WaitInPieces(kShort, [&](int limit_ms) {
    ++pieces;
    std::this_thread::sleep_for(std::chrono::milliseconds(limit_ms));
    return TimedOut();
  }));
  EXPECT_GE(pieces, 3);
}

TEST(Patience, WorkThatIsSlowIsWaitedFor) {
  int pieces = 0;
  const auto result = WaitInPieces(kShort, [&](int limit_ms) {
    const std::clock_t end = std::clock() + limit_ms * CLOCKS_PER_SEC / 1000;
    while (std::clock() < end) {
    }
    return ++pieces < 10 ? TimedOut() : CallResult(kApi, "wait", 0);
  });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->code(), 0);
  EXPECT_EQ(pieces, 10);
}

TEST(Patience, WorkThatFailedIsToldAtOnce) {
  const auto result =
      WaitInPieces(kShort, [](int /*limit_ms*/) { return CallResult(kApi, "wait", 507015); });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->code(), 507015);
}

}  // namespace
}  // namespace acltape::replayer
