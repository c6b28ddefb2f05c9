#include "analyzer/calls/byte_set.h"

#include <gtest/gtest.h>

#include <random>

namespace acltape::analyzer {
namespace {

std::string Text(const std::vector<ByteRange>& ranges) {
  std::string text;
  for (const ByteRange& range : ranges) {
    text += "[" + std::to_string(range.first) + "," + std::to_string(range.end) + ")";
  }
  return text;
}

TEST(ByteSet, RangesThatTouchOrOverlapBecomeOne) {
  ByteSet set;
  set.Add(10, 20);
  set.Add(30, 40);
  set.Add(20, 25);
  set.Add(50, 50);  // empty
  EXPECT_EQ(Text(set.Within(0, 100)), "[10,25)[30,40)");
  EXPECT_EQ(Text(set.Within(12, 31)), "[12,25)[30,31)");
  set.Add(0, 35);
  EXPECT_EQ(Text(set.Within(0, 100)), "[0,40)");
  EXPECT_TRUE(set.Covers(5, 40));
  EXPECT_FALSE(set.Covers(5, 41));
  EXPECT_TRUE(set.Covers(90, 90));
}

TEST(ByteSet, WhatIsRemovedIsCutOut) {
  ByteSet set;
  set.Add(0, 10);
  set.Add(20, 30);
  set.Remove(5, 22);
  EXPECT_EQ(Text(set.Within(0, 100)), "[0,5)[22,30)");
  set.Remove(24, 26);
  EXPECT_EQ(Text(set.Within(0, 100)), "[0,5)[22,24)[26,30)");
  set.Remove(40, 50);
  set.Remove(7, 7);
  ByteSet other;
  other.Add(1, 2);
  other.Add(22, 24);
  set.Remove(other);
  EXPECT_EQ(Text(set.Within(0, 100)), "[0,1)[2,5)[26,30)");
  set.Remove(0, 100);
  EXPECT_TRUE(set.empty());
}

TEST(ByteSet, HoldsWhatAFlagPerByteHolds) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    ByteSet set;
    std::vector<bool> flags(64, false);
    for (int i = 0; i < 8; ++i) {
      const auto first = static_cast<int64_t>(random() % 64);
      const int64_t end = std::min<int64_t>(64, first + static_cast<int64_t>(random() % 12));
      set.Add(first, end);
      for (int64_t byte = first; byte < end; ++byte) flags[byte] = true;
    }
    std::vector<bool> found(64, false);
    for (const ByteRange& part : set.Within(0, 64)) {
      for (int64_t byte = part.first; byte < part.end; ++byte) found[byte] = true;
    }
    ASSERT_EQ(found, flags);
  }
}

TEST(ByteSet, GapsBetweenTheElementsOfAViewStayOut) {
  storage::Layout layout;
  layout.dtype = storage::DType::kFloat32;
  layout.byte_offset = 4;
  layout.shape = {2, 2};
  layout.strides = {8, 2};
  ByteSet set;
  AddElements(layout, set);
  EXPECT_EQ(Text(set.Within(0, 100)), "[4,8)[12,16)[36,40)[44,48)");
  layout.strides = {4, 1};
  ByteSet rows;
  AddElements(layout, rows);
  EXPECT_EQ(Text(rows.Within(0, 100)), "[4,12)[20,28)");
}

}  // namespace
}  // namespace acltape::analyzer
