#include "base/joined_sets.h"

#include <gtest/gtest.h>

namespace acltape::base {
namespace {

TEST(JoinedSets, AreAloneUntilTheyAreJoined) {
  JoinedSets sets(4);
  for (size_t member = 0; member < 4; ++member) EXPECT_EQ(sets.Find(member), member);
}

TEST(JoinedSets, MembersOfJoinedSetsAreInOneAndTheSecondStandsForIt) {
  JoinedSets sets(5);
  sets.Join(0, 1);
  sets.Join(2, 3);
  sets.Join(0, 2);
  for (size_t member = 0; member < 4; ++member) EXPECT_EQ(sets.Find(member), 3u);
  EXPECT_EQ(sets.Find(4), 4u);
}

}  // namespace
}  // namespace acltape::base
