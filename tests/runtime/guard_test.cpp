// With poison a kernel that writes past its block is named, with the call that allocated the
// block, and the program goes on (MEM-13).
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "acl/acl_rt_memory_soma.h"
#include "runtime/kernel_launch.h"
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

const bool kEnvironmentIsSet = setenv("ACLTAPE_SOFT_POISON", "1", 1) == 0;

// AddressSanitizer finds these writes itself and ends the program.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

struct Write {
  char* first;
  size_t bytes;
};

class Guard : public SoftDevice {
 protected:
  void SetUp() override {
    if (kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer finds the write before the guard";
    SoftDevice::SetUp();
  }
  void TearDown() override {
    if (!kAddressSanitizer) SoftDevice::TearDown();
  }
  char* Device(size_t bytes) {
    void* memory = nullptr;
    EXPECT_OK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return static_cast<char*>(memory);
  }
  // A kernel of the program's own that writes `bytes` bytes at `first`.
  void LaunchWrite(char* first, size_t bytes) {
    ASSERT_OK(SoftLaunchKernel(
        stream_, "overrun",
        [](void* bound) -> aclError {
          const auto* write = static_cast<Write*>(bound);
          std::memset(write->first, 7, write->bytes);
          return ACL_SUCCESS;
        },
        [](void* bound) { delete static_cast<Write*>(bound); }, new Write{first, bytes}));
  }
  static std::string Message() {
    const char* message = aclGetRecentErrMsg();
    return message != nullptr ? message : "";
  }
};

TEST_F(Guard, MEM_13_AKernelThatWritesPastItsBlockIsNamedWithTheAllocation) {
  for (const size_t bytes : {size_t{1}, size_t{128}, size_t{511}, size_t{4096}, size_t{70} << 20}) {
    SCOPED_TRACE(bytes);
    char* block = Device(bytes);
    char* neighbour = Device(64);
    std::memset(neighbour, 5, 64);
    LaunchWrite(block, bytes + 32);
    EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
    const std::string message = Message();
    EXPECT_NE(message.find("overrun wrote past the end of the block of " + std::to_string(bytes) +
                           " bytes"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("by aclrtMalloc)"), std::string::npos) << message;
    for (int i = 0; i < 64; ++i) EXPECT_EQ(neighbour[i], 5) << "nobody else's bytes changed";
    // Each overrun is reported once, and the program goes on.
    LaunchWrite(block, bytes);
    EXPECT_OK(aclrtSynchronizeStream(stream_));
    EXPECT_OK(aclrtFree(neighbour));
    EXPECT_OK(aclrtFree(block));
  }
}

TEST_F(Guard, MEM_13_AReplayThatWritesPastABlockFailsAtThatKernel) {
  char* block = Device(256);
  Log log;
  Begin(stream_);
  Launch(stream_, log, "a");
  LaunchWrite(block, 257);
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    EXPECT_CODE(507011, aclrtSynchronizeStream(stream_));
    const std::string message = Message();
    EXPECT_NE(message.find("overrun wrote past the end of the block of 256 bytes"),
              std::string::npos)
        << message;
  }
  ASSERT_OK(aclmdlRIDestroy(model));
  ASSERT_OK(aclrtFree(block));
}

TEST_F(Guard, POOL_12_AWritePastMemoryOfAPoolIsNamedAndWhatEndedReadsAsPoison) {
  aclrtMemPoolProps properties{};
  properties.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  properties.maxSize = size_t{8} << 20;
  aclrtMemPool pool = nullptr;
  ASSERT_OK(aclrtMemPoolCreate(&pool, &properties));
  for (const size_t bytes : {size_t{100}, size_t{2} << 20}) {
    SCOPED_TRACE(bytes);
    void* memory = nullptr;
    ASSERT_OK(aclrtMemPoolMallocAsync(&memory, bytes, pool, stream_));
    auto* block = static_cast<unsigned char*>(memory);
    unsigned char first = 0;
    ASSERT_OK(aclrtSynchronizeStream(stream_));
    ASSERT_OK(aclrtMemcpy(&first, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT_EQ(first, 0xFF) << "new memory reads as NaN";
    LaunchWrite(static_cast<char*>(memory), bytes + 1);
    EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
    const std::string message = Message();
    EXPECT_NE(message.find("overrun wrote past the end of the block of " + std::to_string(bytes) +
                           " bytes"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("by aclrtMemPoolMallocAsync)"), std::string::npos) << message;
    LaunchWrite(static_cast<char*>(memory), bytes);
    ASSERT_OK(aclrtMemPoolFreeAsync(memory, stream_));
    // The next allocation has the same memory, in the order of the stream.
    void* next = nullptr;
    ASSERT_OK(aclrtMemPoolMallocAsync(&next, bytes, pool, stream_));
    EXPECT_EQ(next, memory);
    ASSERT_OK(aclrtSynchronizeStream(stream_));
    EXPECT_EQ(block[0], 0xFF) << "not what the former block held";
    ASSERT_OK(aclrtMemPoolFreeAsync(next, stream_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
  }
  ASSERT_OK(aclrtMemPoolDestroy(pool));
}

TEST_F(Guard, MEM_13_WritesInsideOfBlocksAreNoOverrun) {
  char* block = Device(1000);
  for (const size_t bytes : {1u, 999u, 1000u}) {
    LaunchWrite(block, bytes);
    EXPECT_OK(aclrtSynchronizeStream(stream_));
  }
  EXPECT_OK(aclrtFree(block));
}

}  // namespace
}  // namespace acltape::device
