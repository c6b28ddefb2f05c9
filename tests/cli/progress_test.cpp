#include "cli/terminal/progress.h"

#include <gtest/gtest.h>

namespace acltape::cli {
namespace {

TEST(Progress, TellsRateAndTimeLeft) {
  EXPECT_EQ(ProgressText("replay", 1200, 2400, 400),
            "replay [###############               ] 1200/2400, 400/s, 3 s left");
  EXPECT_EQ(ProgressText("x", 0, 3, 0), "x [                              ] 0/3");
  EXPECT_EQ(ProgressText("x", 3, 3, 1.5), "x [##############################] 3/3, 1.5/s");
  EXPECT_EQ(ProgressText("x", 0, 3600, 2).substr(35), "0/3600, 2.0/s, 30 min left");
  EXPECT_EQ(ProgressText("x", 0, 36000, 1).substr(35), "0/36000, 1.0/s, 10.0 h left");
}

}  // namespace
}  // namespace acltape::cli
