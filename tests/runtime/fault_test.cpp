// Faults on purpose: each kind, its occurrences, and what is said about text that is not
// understood.
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

// Read at the first call into the library. Every test has targets of its own, as occurrences count
// for the whole process. The children of death tests bring their own text.
const bool kEnvironmentIsSet = [] {
  if (std::getenv("FAULT_TEST_CHILD") != nullptr) return false;
  std::string path = testing::TempDir() + "faults" + std::to_string(getpid());
  std::ofstream(path) << "# one fault per line, or several\n"
                         "aclrtMallocCached #3 return=207001\n"
                         "aclrtMemFlush every=4 return=507000; aclrtMemInvali* p=0.5 seed=11 "
                         "return=507000\n"
                         "\n"
                         "aclrtCreateContext return=207008\n"
                         "kernel_third #3 fail=507015\n"
                         "kernel_tenth every=10 fail=507034\n"
                         "kernel_some p=0.25 seed=5 fail=507035\n"
                         "MEMSET_D32_ASYNC #2 fail=507018\n"
                         "kernel_late delay=30ms\n"
                         "kernel_jitter jitter=10ms seed=2\n"
                         "stream=9 delay=5ms\n"
                         "stream=10 jitter=10ms seed=3\n"
                         "flip_first #2 flip=9\n"
                         "flip_second flip=64 output=1\n";
  setenv("ACLTAPE_SOFT_FAULTS", ("@" + path).c_str(), 1);
  return true;
}();

class Faults : public SoftDevice {
 protected:
  void SetUp() override {
    SoftDevice::SetUp();  // reads the file
    std::remove(std::getenv("ACLTAPE_SOFT_FAULTS") + 1);
  }

  // The codes of `count` runs of a kernel.
  std::vector<aclError> Runs(const std::string& entry, int count) {
    Log log;
    std::vector<aclError> codes;
    for (int i = 0; i < count; ++i) {
      Launch(stream_, log, entry);
      codes.push_back(aclrtSynchronizeStream(stream_));
    }
    return codes;
  }

  // Creates streams until one has the number.
  aclrtStream StreamNumber(int32_t wanted) {
    while (true) {
      aclrtStream stream = nullptr;
      int32_t id = -1;
      EXPECT_OK(aclrtCreateStream(&stream));
      EXPECT_OK(aclrtStreamGetId(stream, &id));
      if (id >= wanted) {
        EXPECT_EQ(id, wanted);
        return stream;
      }
    }
  }

  template <typename Body>
  static std::chrono::milliseconds Time(Body body) {
    auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begin);
  }
};

using std::chrono::milliseconds;

TEST_F(Faults, TheNthCallFailsWithTheCodeAndSaysWhy) {
  for (int i = 1; i <= 5; ++i) {
    void* memory = &memory;
    aclError code = aclrtMallocCached(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST);
    EXPECT_EQ(code, i == 3 ? 207001 : 0) << i;
    if (code == 0) {
      EXPECT_OK(aclrtFree(memory));
      continue;
    }
    EXPECT_EQ(memory, nullptr);  // MEM-01
    EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 207001);
    std::string message = aclGetRecentErrMsg();
    EXPECT_NE(message.find("aclrtMallocCached #3 return=207001"), std::string::npos) << message;
  }
}

TEST_F(Faults, EveryNthCallFails) {
  int value = 0;
  for (int i = 1; i <= 12; ++i) {
    EXPECT_EQ(aclrtMemFlush(&value, 4), i % 4 == 0 ? 507000 : 0) << i;
  }
}

TEST_F(Faults, ACallFailsWithASeededProbability) {
  int value = 0;
  std::string first;
  for (int i = 0; i < 400; ++i) first += aclrtMemInvalidate(&value, 4) == 0 ? '.' : 'x';
  long failures = std::count(first.begin(), first.end(), 'x');
  EXPECT_GT(failures, 150);
  EXPECT_LT(failures, 250);
  EXPECT_EQ(first.substr(0, 16), "xxxxxx.xx.xxx...");  // seed 11 gives this on every machine
}

TEST_F(Faults, ACallWithoutOccurrenceAlwaysFails) {
  aclrtContext context = nullptr;
  for (int i = 0; i < 3; ++i) EXPECT_CODE(207008, aclrtCreateContext(&context, 0));
}

TEST_F(Faults, TheNthRunOfAKernelFails) {
  EXPECT_EQ(Runs("third", 5), (std::vector<aclError>{0, 0, 507015, 0, 0}));
}

TEST_F(Faults, RunsInReplaysCount) {
  Log log;
  Begin(stream_);
  for (int i = 0; i < 4; ++i) Launch(stream_, log, "tenth");
  aclmdlRI model = End(stream_);
  std::vector<aclError> codes;
  for (int i = 0; i < 5; ++i) {  // runs 10 and 20 are in replays 3 and 5
    ASSERT_OK(aclmdlRIExecuteAsync(model, other_));
    codes.push_back(aclrtSynchronizeStream(other_));
    if (i != 2) continue;
    std::string message = aclGetRecentErrMsg();
    EXPECT_NE(message.find("kernel_tenth"), std::string::npos) << message;
    EXPECT_NE(message.find("injected fault: kernel_tenth every=10"), std::string::npos) << message;
  }
  EXPECT_EQ(codes, (std::vector<aclError>{0, 0, 507034, 0, 507034}));
  EXPECT_EQ(log.entries().size(), 18u);  // the failing runs did nothing
  EXPECT_OK(aclmdlRIDestroy(model));     // and frees the tasks
}

TEST_F(Faults, AKernelFailsWithASeededProbability) {
  std::vector<aclError> codes = Runs("some", 400);
  long failures = std::count(codes.begin(), codes.end(), 507035);
  EXPECT_EQ(failures + std::count(codes.begin(), codes.end(), 0), 400);
  EXPECT_GT(failures, 60);
  EXPECT_LT(failures, 140);
}

TEST_F(Faults, OtherTasksFailByTheirNames) {
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  std::vector<aclError> codes;
  for (uint32_t i = 1; i <= 3; ++i) {
    ASSERT_OK(aclrtMemsetD32Async(memory, 64, i, 16, stream_));
    codes.push_back(aclrtSynchronizeStream(stream_));
    uint32_t word = 0;
    ASSERT_OK(aclrtMemcpy(&word, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT_EQ(word, i == 2 ? 1 : i);  // the second fill left the first one's words
  }
  EXPECT_EQ(codes, (std::vector<aclError>{0, 507018, 0}));
  ASSERT_OK(aclrtFree(memory));
}

TEST_F(Faults, AKernelIsDelayed) {
  EXPECT_GE(Time([&] { Runs("late", 3); }), milliseconds(90));
  milliseconds jittered = Time([&] { Runs("jitter", 20); });  // 0 to 10 ms each
  EXPECT_GE(jittered, milliseconds(40));
}

TEST_F(Faults, AStreamIsDelayedAndTheOthersAreNot) {
  aclrtStream fast = StreamNumber(8);
  aclrtStream slow = StreamNumber(9);
  aclrtStream uneven = StreamNumber(10);
  Log log;
  auto twenty = [&](aclrtStream stream) {
    return Time([&] {
      for (int i = 0; i < 20; ++i) Launch(stream, log, "x");
      ASSERT_OK(aclrtSynchronizeStream(stream));
    });
  };
  EXPECT_GE(twenty(slow), milliseconds(100));
  EXPECT_GE(twenty(uneven), milliseconds(40));
  EXPECT_LT(std::min({twenty(fast), twenty(fast), twenty(fast)}), milliseconds(40));
}

TEST_F(Faults, BitsOfOneOutputAreFlipped) {
  uint8_t first[4] = {};
  uint8_t second[16] = {};
  SoftOutput outputs[] = {{first, sizeof(first)}, {second, sizeof(second)}};
  EXPECT_FALSE(SoftFlipsBits("flip"));
  EXPECT_FALSE(SoftFlipsBits("kernel_late"));
  ASSERT_TRUE(SoftFlipsBits("flip_first"));
  SoftFlipBits("flip_first", outputs, 2);
  EXPECT_EQ(first[1], 0);  // the first occurrence is spared
  SoftFlipBits("flip_first", outputs, 2);
  EXPECT_EQ(first[1], 2);  // bit 9
  SoftFlipBits("flip_second", outputs, 2);
  EXPECT_EQ(second[8], 1);                  // bit 64
  SoftFlipBits("flip_second", outputs, 1);  // has no second output: nothing happens
  EXPECT_EQ(second[8], 1);
}

// A text of a fault that is wrong, and the sentence about it on stderr. The child exits with 0 when
// calls go on to work.
class FaultText : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(FaultText, IsReportedInOneSentenceAndIgnored) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("FAULT_TEST_CHILD", "1", 1);
  setenv("ACLTAPE_SOFT_FAULTS", GetParam().first, 1);
  EXPECT_EXIT(
      {
        void* memory = nullptr;
        bool works =
            aclrtSetDevice(0) == 0 && aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST) == 0;
        std::_Exit(works ? 0 : 1);
      },
      testing::ExitedWithCode(0), GetParam().second);
  unsetenv("FAULT_TEST_CHILD");
}

INSTANTIATE_TEST_SUITE_P(
    All, FaultText,
    testing::Values(std::pair("aclrtMalloc #1 retrun=207001",
                              "\"retrun=207001\" is not understood"),
                    std::pair("aclrtMalloc #1", "it has no effect.*accepted is TARGET"),
                    std::pair("aclrtMalloc #0 return=207001", "\"#0\" is not understood"),
                    std::pair("aclrtMalloc return=no", "\"return=no\" is not understood"),
                    std::pair("aclrtMaloc return=207001", "there is no function aclrtMaloc"),
                    std::pair("aclrtMalloc #1 every=2 return=207001", "exclude each other"),
                    std::pair("aclnnAdd p=1.5 fail=507015", "\"p=1.5\" is not understood"),
                    std::pair("aclnnAdd fail=507015 flip=1", "\"flip=1\" is not understood"),
                    std::pair("stream=x delay=1ms", "\"stream=x\" is not a target"),
                    std::pair("stream=1 fail=507015", "a stream can only have delay or jitter"),
                    std::pair("aclnnAdd delay=5", "\"delay=5\" is not understood"),
                    std::pair("@/nonexistent/faults", "the file cannot be read")));

}  // namespace
}  // namespace acltape::device
