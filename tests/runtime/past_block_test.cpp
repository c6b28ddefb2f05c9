// The bytes past a block of device memory are as on the product: MEM-02, MEM-13 and FND-04.
// Settings are read once, so each test runs a child of its own.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "runtime/kernel_memory.h"
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr size_t kPage = size_t{2} << 20;

char* Device(size_t bytes) {
  void* memory = nullptr;
  aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  return static_cast<char*>(memory);
}

aclError Fill(char* memory, size_t bytes) { return aclrtMemset(memory, bytes, 0, bytes); }

// Copies bytes of the device to the host.
aclError Read(const char* from, size_t bytes) {
  std::string host(bytes, 0);
  return aclrtMemcpy(host.data(), bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
}

// Ends the child with 1, and says which line, when the code is another one.
void Expect(aclError expected, aclError code, int line) {
  if (code == expected) return;
  std::fprintf(stderr, "line %d: %d, not %d\n", line, code, expected);
  _exit(1);
}
#define EXPECT_IN_CHILD(expected, code) Expect(expected, code, __LINE__)

class PastBlock : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "AddressSanitizer lets nobody read past a block";
#endif
  }
  // A child with these settings ends well, and says something that matches at its end.
  static void RunChild(const char* setting, void (*run)(), const std::string& says) {
    EXPECT_EXIT(
        {
          const std::string text = setting;
          const size_t equals = text.find('=');
          setenv(text.substr(0, equals).c_str(), text.substr(equals + 1).c_str(), 1);
          aclInit(nullptr);
          aclrtSetDevice(0);
          run();
          std::exit(0);
        },
        testing::ExitedWithCode(0), says);
  }
};

TEST_F(PastBlock, MEM_13_ABlockHasItsSizeRoundedUpAnd32BytesMore) {
  RunChild(
      "ACLTAPE_SOFT_BLOCKS=product",
      [] {
        for (const auto& [bytes, own] : {std::pair<size_t, size_t>{1, 64}, {32, 64}, {100, 160}}) {
          char* block = Device(bytes);
          EXPECT_IN_CHILD(0, Fill(block, own));
          EXPECT_IN_CHILD(0, Read(block, own));
          EXPECT_IN_CHILD(0, Read(block + own - 8, 8));
          EXPECT_IN_CHILD(107000, Fill(block, own + 1));
        }
      },
      "^$");
}

TEST_F(PastBlock, MEM_13_AReadGoesOnToTheEndOfThePageAndIsSaidAtTheEnd) {
  RunChild(
      "ACLTAPE_SOFT_BLOCKS=product",
      [] {
        const size_t bytes = (size_t{65} << 20) + 100;
        char* block = Device(bytes);  // large: pages of its own
        const size_t page_end = size_t{66} << 20;
        EXPECT_IN_CHILD(0, Read(block + bytes, page_end - bytes));
        EXPECT_IN_CHILD(0, Read(block + bytes, 200));
        EXPECT_IN_CHILD(107000, Read(block + bytes, page_end - bytes + 1));
        EXPECT_IN_CHILD(107000, Fill(block + bytes, 200));
        const SoftMemoryUse read = {block, bytes + 200, "self", 1};
        const SoftMemoryUse written = {block, bytes + 200, "out", 0};
        for (int i = 0; i < 3; ++i) EXPECT_IN_CHILD(0, SoftCheckMemory("aclnnNeg", &read, 1));
        EXPECT_IN_CHILD(507015, SoftCheckMemory("aclnnNeg", &written, 1));
      },
      "a copy: it read 1048416 bytes past the end of the block of 68157540 bytes at .* "
      "\\(allocation 1 of the process, by aclrtMalloc\\); seen 2 times\n"
      ".*aclnnNeg: it read 140 bytes past the end of .*; seen 3 times\n"
      ".*ACLTAPE_SOFT_BLOCKS=exact");
}

TEST_F(PastBlock, MEM_13_AReadThatReachesAnotherBlockFails) {
  RunChild(
      "ACLTAPE_SOFT_BLOCKS=product",
      [] {
        char* blocks[] = {Device(100), Device(100), Device(100)};
        std::sort(std::begin(blocks), std::end(blocks));
        for (int i = 0; i < 2; ++i) {
          const auto to_next = static_cast<size_t>(blocks[i + 1] - blocks[i]);
          if (to_next > kPage) continue;
          EXPECT_IN_CHILD(107000, Read(blocks[i], to_next + 1));
          const SoftMemoryUse read = {blocks[i], to_next + 1, "self", 1};
          EXPECT_IN_CHILD(507015, SoftCheckMemory("aclnnNeg", &read, 1));
        }
      },
      "^$");
}

TEST_F(PastBlock, MEM_13_ExactBlocksEndWithTheBytesThatWereAskedFor) {
  for (const char* setting : {"ACLTAPE_SOFT_BLOCKS=exact", "ACLTAPE_SOFT_POISON=1"}) {
    RunChild(
        setting,
        [] {
          char* block = Device(100);
          EXPECT_IN_CHILD(0, Read(block, 100));
          EXPECT_IN_CHILD(107000, Read(block, 101));
          EXPECT_IN_CHILD(107000, Fill(block, 101));
        },
        "^$");
  }
}

TEST_F(PastBlock, MEM_13_WhatBeginsPastABlockIsJudgedAsWhatReachesThere) {
  RunChild(
      "ACLTAPE_SOFT_BLOCKS=product",
      [] {
        const size_t bytes = (size_t{65} << 20) + 100;
        char* block = Device(bytes);  // large: pages of its own
        char* past = block + bytes + 1000;
        char* page_end = block + (size_t{66} << 20);
        EXPECT_IN_CHILD(0, Read(past, 200));
        EXPECT_IN_CHILD(107000, Fill(past, 200));
        EXPECT_IN_CHILD(107000, Read(past, static_cast<size_t>(page_end - past) + 1));
        const SoftMemoryUse read = {past, 200, "self", 1};
        const SoftMemoryUse written = {past, 200, "out", 0};
        EXPECT_IN_CHILD(0, SoftCheckMemory("aclnnNeg", &read, 1));
        EXPECT_IN_CHILD(507015, SoftCheckMemory("aclnnNeg", &written, 1));
        // The program's own memory is no device's.
        static char own[256];
        EXPECT_IN_CHILD(0, Read(own, 200));
      },
      "a copy: it read 200 bytes that begin 940 bytes past the end of the block of 68157540 bytes "
      "at .*; seen 1 times\n"
      ".*aclnnNeg: it read 200 bytes that begin 940 bytes past the end of .*; seen 1 times\n");
}

TEST_F(PastBlock, MEM_13_ExactBlocksRefuseWhatBeginsPastThem) {
  RunChild(
      "ACLTAPE_SOFT_BLOCKS=exact",
      [] {
        const size_t bytes = (size_t{65} << 20) + 100;
        char* block = Device(bytes);
        EXPECT_IN_CHILD(107000, Read(block + bytes + 8, 8));
        EXPECT_IN_CHILD(107000, Fill(block + bytes, 8));
      },
      "^$");
}

TEST_F(PastBlock, FND_04_ReadsPastABlockGoToTheFileOfFindings) {
  const std::string file = testing::TempDir() + "past_" + std::to_string(getpid());
  RunChild(("ACLTAPE_SOFT_FINDINGS=" + file).c_str(),
           [] {
             char* block = Device(100);
             for (int i = 0; i < 2; ++i) EXPECT_IN_CHILD(0, Read(block, 200));
           },
           "^$");
  std::ifstream lines(file);
  const std::string text(std::istreambuf_iterator<char>(lines), {});
  EXPECT_NE(
      text.find("\tread_past_block\ta copy\t1\tit read 40 bytes past the end of the block of 100"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\tread_past_block\ta copy\t2\t"), std::string::npos) << text;
  unlink(file.c_str());
}

}  // namespace
}  // namespace acltape::device
