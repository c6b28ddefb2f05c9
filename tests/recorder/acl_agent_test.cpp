// The parts of the ACL agent that hold without a program: the map of addresses, the table of memory
// blocks, and how a tensor's elements are packed. Meant to run under ThreadSanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "recorder/acl/memory.h"
#include "recorder/acl/tensor_bytes.h"
#include "recorder/agent/pointer_map.h"
#include "recorder/wire/records.h"

namespace acltape::acl_agent {
namespace {

const void* Pointer(uint64_t key) { return reinterpret_cast<const void*>(key); }

TEST(PointerMap, DoesWhatAStandardMapDoes) {
  constexpr uint64_t kSeed = 11;
  std::mt19937_64 random(kSeed);
  static agent::PointerMap<uint64_t> map;  // as the agent's maps it is never destroyed
  std::unordered_map<uint64_t, uint64_t> expected;
  for (int step = 0; step < 200000; ++step) {
    const uint64_t key = (1 + random() % 700) * 16;
    const uint64_t value = random();
    uint64_t found = 0;
    switch (random() % 3) {
      case 0:
        ASSERT_EQ(map.Put(Pointer(key), value) == agent::PutResult::kAdded,
                  expected.count(key) == 0)
            << "step " << step;
        expected[key] = value;
        break;
      case 1:
        ASSERT_EQ(map.Take(Pointer(key), &found), expected.count(key) == 1) << "step " << step;
        if (expected.count(key) == 1) {
          ASSERT_EQ(found, expected[key]) << "step " << step << " of seed " << kSeed;
          expected.erase(key);
        }
        break;
      default:
        ASSERT_EQ(map.Get(Pointer(key), &found), expected.count(key) == 1) << "step " << step;
        if (expected.count(key) == 1) {
          ASSERT_EQ(found, expected[key]);
        }
    }
  }
}

TEST(PointerMap, EightThreadsKeepTheirOwnEntries) {
  static agent::PointerMap<uint64_t> map;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 300; ++round) {
        for (uint64_t i = 1; i <= 40; ++i) map.Put(Pointer((i * 8 + thread) * 16), i + thread);
        for (uint64_t i = 1; i <= 40; ++i) {
          uint64_t value = 0;
          const bool there = map.Take(Pointer((i * 8 + thread) * 16), &value);
          if (!there || value != i + thread) wrong++;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Blocks, AnAddressBelongsToTheBlockAroundIt) {
  PutBlock({0x10000, 0x100, 1, 1});
  PutBlock({0x10100, 0x80, 2, 1});  // right after
  PutBlock({0x20000, 0x10, 3, 0});
  Block block;
  EXPECT_FALSE(FindBlock(0, &block));
  EXPECT_FALSE(FindBlock(0xffff, &block));
  ASSERT_TRUE(FindBlock(0x10000, &block));
  EXPECT_EQ(block.buffer_id, 1u);
  ASSERT_TRUE(FindBlock(0x100ff, &block));
  EXPECT_EQ(block.buffer_id, 1u);
  ASSERT_TRUE(FindBlock(0x10100, &block));
  EXPECT_EQ(block.buffer_id, 2u);
  EXPECT_FALSE(FindBlock(0x10180, &block));
  ASSERT_TRUE(TakeBlock(0x10100, &block));
  EXPECT_FALSE(FindBlock(0x10110, &block));
  EXPECT_FALSE(TakeBlock(0x10001, &block)) << "only the first address of a block names it";
  // A block whose end was not seen makes room for what is found at its addresses.
  PutBlock({0x10080, 0x100, 4, 1});
  EXPECT_FALSE(FindBlock(0x10000, &block));
  ASSERT_TRUE(FindBlock(0x10080, &block));
  EXPECT_EQ(block.buffer_id, 4u);
  for (const uint64_t begin : {0x10080, 0x20000}) EXPECT_TRUE(TakeBlock(begin, &block));
}

TEST(Blocks, ThreadsAddFindAndTakeAtTheSameTime) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 1; thread <= 8; ++thread) {
    threads.emplace_back([&, thread] {
      const uint64_t base = thread << 32;
      for (uint64_t round = 0; round < 2000; ++round) {
        const uint64_t begin = base + (round % 16) * 0x1000;
        PutBlock({begin, 0x1000, thread * 10000 + round, 1});
        Block block;
        if (!FindBlock(begin + 0x800, &block) || block.buffer_id != thread * 10000 + round) wrong++;
        if (!TakeBlock(begin, &block) || FindBlock(begin, &block)) wrong++;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(KnownRanges, AgreeWithAMapOfBytes) {
  constexpr uint64_t kSeed = 5;
  std::mt19937_64 random(kSeed);
  for (uint64_t buffer = 1; buffer <= 40; ++buffer) {
    std::vector<bool> known(256);
    for (int step = 0; step < 60; ++step) {
      const uint64_t begin = random() % 256;
      const uint64_t end = begin + random() % (257 - begin);
      if (random() % 2 == 0) {
        MarkKnown(buffer, begin, end);
        for (uint64_t i = begin; i < end; ++i) known[i] = true;
      }
      bool expected = true;
      for (uint64_t i = begin; i < end; ++i) expected = expected && known[i];
      ASSERT_EQ(IsKnown(buffer, begin, end), expected)
          << "buffer " << buffer << " step " << step << " [" << begin << ", " << end << ") seed "
          << kSeed;
    }
  }
}

TEST(KnownRanges, AreNumberedAnewWhenLessMayBeKnown) {
  constexpr uint64_t kBuffer = 1001;
  uint64_t before = MemoryGeneration();
  const auto expect_another = [&](const char* cause) {
    EXPECT_NE(MemoryGeneration(), before) << cause;
    before = MemoryGeneration();
  };
  PutBlock({0x30000, 0x100, kBuffer, 1});
  expect_another("a block came");
  MarkKnown(kBuffer, 0, 0x100);
  EXPECT_TRUE(IsKnown(kBuffer, 0, 0x100));
  EXPECT_EQ(MemoryGeneration(), before) << "more is known, not less";
  ForgetContents(7);
  expect_another("a window opened");
  EXPECT_FALSE(IsKnown(kBuffer, 0, 0x100));
  ForgetContents(7);
  EXPECT_EQ(MemoryGeneration(), before) << "another thread came to the same window";
  MarkShared(0x30000);
  expect_another("others write to the block");
  Block block;
  EXPECT_TRUE(TakeBlock(0x30000, &block));
  expect_another("a block went");
}

// A float32 tensor with these sizes and strides.
Content TensorOf(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  Content content{};
  content.encoding[1] = static_cast<std::byte>(wire::DType::kFloat32);
  content.encoding[2] = static_cast<std::byte>(sizes.size());
  std::memcpy(content.encoding + 14, sizes.data(), 8 * sizes.size());
  std::memcpy(content.encoding + 14 + 8 * sizes.size(), strides.data(), 8 * strides.size());
  return content;
}

TEST(TensorBytes, DenseTensorsOfAnyOrderCoverTheirRange) {
  uint64_t packed = 0;
  EXPECT_TRUE(CoversItsRange(TensorOf({}, {}), &packed));
  EXPECT_EQ(packed, 4u);
  EXPECT_TRUE(CoversItsRange(TensorOf({2, 3}, {3, 1}), &packed));
  EXPECT_EQ(packed, 24u);
  EXPECT_TRUE(CoversItsRange(TensorOf({3, 2}, {1, 3}), &packed));         // transposed
  EXPECT_TRUE(CoversItsRange(TensorOf({1, 4, 1}, {77, 1, 5}), &packed));  // sizes of one
  EXPECT_FALSE(CoversItsRange(TensorOf({2, 3}, {4, 1}), &packed));        // a gap
  EXPECT_FALSE(CoversItsRange(TensorOf({2, 3}, {0, 1}), &packed));        // expanded
  EXPECT_FALSE(CoversItsRange(TensorOf({3}, {2}), &packed));
}

TEST(TensorBytes, StridedElementsArePackedRowByRow) {
  float memory[40];
  for (int i = 0; i < 40; ++i) memory[i] = static_cast<float>(i);
  // Sizes 2, 3, 2 over strides 20, 5, 2.
  const Content content = TensorOf({2, 3, 2}, {20, 5, 2});
  float packed[12] = {};
  PackRows(content, reinterpret_cast<const std::byte*>(memory),
           reinterpret_cast<std::byte*>(packed));
  const std::vector<float> expected = {0, 2, 5, 7, 10, 12, 20, 22, 25, 27, 30, 32};
  EXPECT_EQ(std::vector<float>(packed, packed + 12), expected);
}

}  // namespace
}  // namespace acltape::acl_agent
