// Mixing of bits: the published values where there are some, and that near numbers part.
#include "base/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string_view>

namespace acltape::base {
namespace {

uint64_t Fnv1aOf(std::string_view text) {
  Fnv1a hash;
  for (const char c : text) hash.Add(static_cast<unsigned char>(c));
  return hash.hash();
}

TEST(Hash, Fnv1aHasThePublishedValues) {
  EXPECT_EQ(Fnv1aOf(""), 0xCBF29CE484222325u);
  EXPECT_EQ(Fnv1aOf("a"), 0xAF63DC4C8601EC8Cu);
  EXPECT_EQ(Fnv1aOf("foobar"), 0x85944171F73967E8u);
}

TEST(Hash, MixBitsIsTheFirstDrawOfSplitMix64) {
  EXPECT_EQ(MixBits(0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(Avalanche(0), 0u);
}

TEST(Hash, ABitOfTheArgumentChangesAboutHalfOfTheResult) {
  int changed = 0;
  for (int bit = 0; bit < 64; ++bit) {
    changed += std::popcount(MixBits(12345) ^ MixBits(12345 ^ (uint64_t{1} << bit)));
  }
  EXPECT_NEAR(changed / 64.0, 32, 2);
}

TEST(Hash, TheOrderOfValuesMatters) {
  EXPECT_NE(HashWith(HashWith(0, 1), 2), HashWith(HashWith(0, 2), 1));
  EXPECT_NE(SpreadPair(1, 2), SpreadPair(2, 1));
}

TEST(Hash, AddressesThatLieInARowPartInTheUpperBits) {
  std::set<uint64_t> places;
  for (uint64_t i = 0; i < 64; ++i) places.insert(SpreadBits((0x7F0000000000 + i * 64) >> 4) >> 54);
  EXPECT_GT(places.size(), 60u);
}

}  // namespace
}  // namespace acltape::base
