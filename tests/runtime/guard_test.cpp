// With poison a kernel that writes behind its block is named, with the call that allocated the
// block, and the program goes on (MEM-13).
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

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

TEST_F(Guard, MEM_13_AKernelThatWritesBehindItsBlockIsNamedWithTheAllocation) {
  for (const size_t bytes : {size_t{1}, size_t{128}, size_t{511}, size_t{4096}, size_t{70} << 20}) {
    SCOPED_TRACE(bytes);
    char* block = Device(bytes);
    char* neighbour = Device(64);
    std::memset(neighbour, 5, 64);
    LaunchWrite(block, bytes + 32);
    EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
    const std::string message = Message();
    EXPECT_NE(message.find("overrun wrote behind the end of the block of " + std::to_string(bytes) +
                           " bytes"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("by aclrtMalloc)"), std::string::npos) << message;
    for (int i = 0; i < 64; ++i) EXPECT_EQ(neighbour[i], 5) << "nobody else's bytes changed";
    // Each overrun is told once, and the program goes on.
    LaunchWrite(block, bytes);
    EXPECT_OK(aclrtSynchronizeStream(stream_));
    EXPECT_OK(aclrtFree(neighbour));
    EXPECT_OK(aclrtFree(block));
  }
}

TEST_F(Guard, MEM_13_AReplayThatWritesBehindABlockFailsAtThatKernel) {
  char* block = Device(256);
  Log log;
  Begin(stream_);
  Launch(stream_, log, "a");
  LaunchWrite(block, 257);
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
    const std::string message = Message();
    EXPECT_NE(message.find("overrun wrote behind the end of the block of 256 bytes"),
              std::string::npos)
        << message;
  }
  ASSERT_OK(aclmdlRIDestroy(model));
  ASSERT_OK(aclrtFree(block));
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
