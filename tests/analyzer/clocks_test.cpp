// How far two clocks are apart, by what ranks have met.
#include "analyzer/ranks/clocks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace acltape::analyzer::ranks {
namespace {

TEST(DistanceOf, LiesBetweenTheBoundsOfAllMeetings) {
  // b's clock is 1000 ahead. In the first meeting a came at 100 and knew at 150 that it had ended.
  const Distance one = DistanceOf({{100, 150}}, {{1090, 1140}}, 0);
  // Not less than 100 - 1140, not more than 150 - 1090.
  EXPECT_EQ(one.shift_ns, -990);
  EXPECT_EQ(one.error_ns, 50);
  const Distance two = DistanceOf({{100, 150}, {200, 230}}, {{1090, 1140}, {1225, 1231}}, 0);
  EXPECT_EQ(two.shift_ns, -1013);  // between -1031 and -995
  EXPECT_EQ(two.error_ns, 18);
  EXPECT_TRUE(two.consistent);
}

TEST(DistanceOf, AddsTheErrorOfTheOtherClock) {
  EXPECT_EQ(DistanceOf({{100, 150}}, {{1090, 1140}}, 7).error_ns, 57);
}

TEST(DistanceOf, SaysWhenNoShiftSuitsAllMeetings) {
  // Between the two meetings b's clock lost 500.
  const Distance drift =
      DistanceOf({{100, 110}, {10100, 10110}}, {{1100, 1110}, {10600, 10610}}, 0);
  EXPECT_FALSE(drift.consistent);
  EXPECT_EQ(drift.shift_ns, -750);
  EXPECT_EQ(drift.error_ns, 240);  // -990 must not be exceeded, and -510 not be missed
}

TEST(DistanceOf, HoldsTheTrueDistanceInEachOfAThousandRecordings) {
  std::mt19937_64 random(20261129);
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(random() % most); };
  for (int trial = 0; trial < 1000; ++trial) {
    const int64_t distance = up_to(2'000'000) - 1'000'000;
    std::vector<Moment> a;
    std::vector<Moment> b;
    for (int64_t meeting = 0; meeting < 1 + up_to(20); ++meeting) {
      const int64_t came_a = meeting * 10'000 + up_to(3000);
      const int64_t came_b = meeting * 10'000 + up_to(3000);
      const int64_t met = std::max(came_a, came_b);
      a.push_back({came_a, met + up_to(500)});
      b.push_back({came_b - distance, met + up_to(500) - distance});
    }
    const Distance found = DistanceOf(a, b, 0);
    EXPECT_TRUE(found.consistent) << "trial " << trial;
    EXPECT_LE(std::abs(found.shift_ns - distance), found.error_ns + 1) << "trial " << trial;
  }
}

}  // namespace
}  // namespace acltape::analyzer::ranks
