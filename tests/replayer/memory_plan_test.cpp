#include "replayer/device/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace acltape::replayer {
namespace {

Life Use(int64_t bytes, int64_t first, int64_t last) {
  Life life;
  life.bytes = bytes;
  life.first = first;
  life.last = last;
  return life;
}

TEST(MemoryPlan, BuffersThatDoNotOverlapInTimeShareMemory) {
  std::vector<Life> lives = {Use(640, 0, 1), Use(640, 2, 3), Use(640, 4, 4)};
  EXPECT_EQ(PlanMemory(lives), 640);
}

TEST(MemoryPlan, BuffersThatMeetInOneMomentDoNot) {
  std::vector<Life> lives = {Use(64, 0, 2), Use(64, 2, 3)};
  EXPECT_EQ(PlanMemory(lives), 128);
  EXPECT_NE(lives[0].offset, lives[1].offset);
}

TEST(MemoryPlan, SeededRandomLivesNeverOverlapAndStayNearThePeak) {
  std::mt19937 random(11);
  std::vector<Life> lives;
  for (int i = 0; i < 400; ++i) {
    const auto first = static_cast<int64_t>(random() % 500);
    lives.push_back(Use(static_cast<int64_t>(random() % 5000), first,
                        first + static_cast<int64_t>(random() % 40)));
  }
  const int64_t arena = PlanMemory(lives);
  int64_t peak = 0;
  for (int64_t moment = 0; moment < 540; ++moment) {
    int64_t live = 0;
    for (const Life& life : lives) {
      if (life.first <= moment && moment <= life.last) {
        live += AlignUp(std::max<int64_t>(life.bytes, 1));
      }
    }
    peak = std::max(peak, live);
  }
  EXPECT_GE(arena, peak);
  EXPECT_LE(arena, peak * 3 / 2);
  for (size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ(lives[i].offset % kDeviceAlignment, 0);
    EXPECT_LE(lives[i].offset + lives[i].bytes, arena);
    for (size_t j = 0; j < i; ++j) {
      if (lives[i].last < lives[j].first || lives[j].last < lives[i].first) continue;
      const bool apart = lives[i].offset + lives[i].bytes <= lives[j].offset ||
                         lives[j].offset + lives[j].bytes <= lives[i].offset;
      EXPECT_TRUE(apart) << i << " and " << j;
    }
  }
}

}  // namespace
}  // namespace acltape::replayer
