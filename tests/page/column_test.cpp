// Columns of numbers survive the way onto the page: varints, zigzag, deflate and base64.
#include "page/column.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace acltape::page {
namespace {

std::string FromBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char digit : text) {
    if (digit == '=') break;
    group = group << 6 | static_cast<uint32_t>(kDigits.find(digit));
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<char>(group >> bits));
    }
  }
  return bytes;
}

std::string Inflate(const std::string& packed, size_t most) {
  std::string bytes(most, '\0');
  uLongf size = most;
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  bytes.resize(size);
  return bytes;
}

// As page/web/decode.js does it.
std::vector<int64_t> Decode(const std::string& text, size_t count, bool differences) {
  const std::string bytes = Inflate(FromBase64(text), count * 10 + 16);
  std::vector<int64_t> numbers;
  size_t index = 0;
  uint64_t last = 0;
  while (index < bytes.size()) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes.at(index++));
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) break;
    }
    if (differences) {
      last += (value >> 1) ^ (~(value & 1) + 1);
      value = last;
    }
    numbers.push_back(static_cast<int64_t>(value));
  }
  return numbers;
}

TEST(Base64, FollowsRfc4648) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64(std::string("\0\xff\x80", 3)), "AP+A");
}

TEST(Varint, TakesSevenBitsPerByte) {
  const auto of = [](uint64_t value) {
    std::string bytes;
    AppendVarint(bytes, value);
    return bytes;
  };
  EXPECT_EQ(of(0), std::string(1, '\0'));
  EXPECT_EQ(of(127), "\x7f");
  EXPECT_EQ(of(128), "\x80\x01");
  EXPECT_EQ(of(300), "\xac\x02");
  EXPECT_EQ(of(UINT64_MAX).size(), 10u);
}

TEST(ZigZag, KeepsSmallNumbersSmall) {
  EXPECT_EQ(ZigZag(0), 0u);
  EXPECT_EQ(ZigZag(-1), 1u);
  EXPECT_EQ(ZigZag(1), 2u);
  EXPECT_EQ(ZigZag(std::numeric_limits<int64_t>::min()), UINT64_MAX);
}

TEST(Column, GivesBackWhatWasAdded) {
  std::mt19937_64 random(1);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{200000}}) {
    std::vector<int64_t> numbers;
    Column differences(Column::Coding::kDifference), plain(Column::Coding::kPlain);
    for (size_t i = 0; i < count; ++i) {
      numbers.push_back(static_cast<int64_t>(random() >> (random() % 60 + 4)));
      differences.Add(numbers.back());
      plain.Add(numbers.back());
    }
    EXPECT_EQ(differences.count(), static_cast<int64_t>(count));
    EXPECT_EQ(Decode(differences.Finish(), count, true), numbers);
    EXPECT_EQ(Decode(plain.Finish(), count, false), numbers);
  }
}

TEST(Column, HoldsTheExtremesAsDifferences) {
  const std::vector<int64_t> numbers = {std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min(), 0, -1};
  Column column(Column::Coding::kDifference);
  for (const int64_t number : numbers) column.Add(number);
  EXPECT_EQ(Decode(column.Finish(), numbers.size(), true), numbers);
}

TEST(Column, TakesLittleRoomForCallsThatFollowEachOther) {
  Column column(Column::Coding::kDifference);
  for (int64_t i = 0; i < 1000000; ++i) column.Add(1000000000 + i);
  EXPECT_LT(column.Finish().size(), 10000u);
}

}  // namespace
}  // namespace acltape::page
