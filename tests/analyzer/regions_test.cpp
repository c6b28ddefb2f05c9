#include "analyzer/program/regions.h"

#include <gtest/gtest.h>

#include <string>

namespace acltape::analyzer {
namespace {

// 'k' kernels, '!' barriers, '|' a kernel that must start a region.
std::string Cut(const std::string& leaves) {
  std::string text;
  for (const Region& region : FindRegions(
           leaves.size(),
           [&](size_t i) { return leaves[i] == '!' ? std::string("host read") : std::string(); },
           [&](size_t i) { return leaves[i] == '|'; })) {
    text += region.captured ? "[" : "(";
    text += leaves.substr(region.first, region.end - region.first);
    text += region.captured ? "]" : ")";
    EXPECT_EQ(region.captured, region.reason.empty());
  }
  return text;
}

TEST(Regions, AreTheLongestRunsBetweenBarriers) {
  EXPECT_EQ(Cut("kkk!kk!"), "[kkk](!)[kk](!)");
  EXPECT_EQ(Cut("!!kk"), "(!)(!)[kk]");
  EXPECT_EQ(Cut("kkkk"), "[kkkk]");
  EXPECT_EQ(Cut(""), "");
}

TEST(Regions, StartWhereAnInputArrivesInTheMiddle) {
  EXPECT_EQ(Cut("kk|k"), "[kk][|k]");
  EXPECT_EQ(Cut("|kk!|k"), "[|kk](!)[|k]");
}

}  // namespace
}  // namespace acltape::analyzer
