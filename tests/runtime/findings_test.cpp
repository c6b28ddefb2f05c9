// The device notices faults for a recorder: rules FND. Kernels that read memory that nothing wrote
// are in tests/opapi/unwritten_test.cpp.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

const std::string& FileName() {
  static const std::string name = "/tmp/acltape_findings_" + std::to_string(getpid());
  return name;
}

const bool set = [] {
  setenv("ACLTAPE_SOFT_POISON", "1", 1);
  setenv("ACLTAPE_SOFT_FINDINGS", FileName().c_str(), 1);
  return true;
}();

class Findings : public SoftDevice {
 protected:
  void TearDown() override {
    std::remove(FileName().c_str());
    SoftDevice::TearDown();
  }

  // The lines of the file without the process, with | in place of tabs.
  static std::vector<std::string> Lines() {
    std::ifstream file(FileName());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      EXPECT_EQ(line.substr(0, line.find('\t')), std::to_string(getpid()));
      line = line.substr(line.find('\t') + 1);
      std::replace(line.begin(), line.end(), '\t', '|');
      lines.push_back(line);
    }
    return lines;
  }
};

TEST_F(Findings, FND_02_WritesPastBlocksAndTasksOverFreedMemory) {
  if (kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer finds the write before the guard";
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 256, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(SoftLaunchKernel(
      stream_, "overrun",
      [](void* block) -> aclError {
        static_cast<char*>(block)[256] = 0;
        return 0;
      },
      nullptr, memory));
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507015);
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(aclrtMemsetAsync(memory, 256, 0, 256, stream_));
  ASSERT_OK(aclrtFree(memory));
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507013);
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].find("write_past_block|overrun|1|it wrote past the end of the block of 256"),
            0u)
      << lines[0];
  EXPECT_EQ(lines[1].find("freed_memory|"), 0u) << lines[1];
  EXPECT_NE(lines[1].find("was freed"), std::string::npos) << lines[1];
}

TEST_F(Findings, FND_03_ALineForEachPowerOfTwo) {
  for (int i = 0; i < 9; ++i)
    SoftReportUnwrittenRead("aclnnMul", ("number " + std::to_string(i)).c_str());
  SoftReportUnwrittenRead("aclnnAdd", "with a\ttab and\na line");
  const std::vector<std::string> expected = {
      "unwritten_read|aclnnMul|1|number 0", "unwritten_read|aclnnMul|2|number 0",
      "unwritten_read|aclnnMul|4|number 0", "unwritten_read|aclnnMul|8|number 0",
      "unwritten_read|aclnnAdd|1|with a tab and a line"};
  EXPECT_EQ(Lines(), expected);
}

}  // namespace
}  // namespace acltape::device
