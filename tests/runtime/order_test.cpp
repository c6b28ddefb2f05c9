// An order of the streams of a graph shows a missing wait for certain, in the same launches each
// time, and leaves programs without races alone.
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

const bool kEnvironmentIsSet = setenv("ACLTAPE_SOFT_ORDER", "2", 1) == 0;

class Order : public SoftDevice {
 protected:
  // Appends its letter for each task.
  std::vector<std::string> Launches(aclmdlRI model, Log& log, int count) {
    std::vector<std::string> texts;
    size_t seen = 0;
    for (int i = 0; i < count; ++i) {
      EXPECT_OK(aclmdlRIExecuteAsync(model, stream_));
      EXPECT_OK(aclrtSynchronizeStream(stream_));
      texts.push_back(log.text().substr(seen));
      seen = log.text().size();
    }
    return texts;
  }

  // b on the other stream follows a only where a wait says so.
  aclmdlRI CaptureTwoBranches(Log& log, bool ordered) {
    aclrtEvent fork = CreateEx();
    aclrtEvent between = CreateEx();
    aclrtEvent join = CreateEx();
    Begin(stream_);
    EXPECT_OK(aclrtRecordEvent(fork, stream_));
    EXPECT_OK(aclrtStreamWaitEvent(other_, fork));
    Launch(stream_, log, "a");
    EXPECT_OK(aclrtRecordEvent(between, stream_));
    if (ordered) {
      EXPECT_OK(aclrtStreamWaitEvent(other_, between));
    }
    Launch(other_, log, "b");
    Launch(stream_, log, "c");
    EXPECT_OK(aclrtRecordEvent(join, other_));
    EXPECT_OK(aclrtStreamWaitEvent(stream_, join));
    Launch(stream_, log, "d");
    return End(stream_);
  }
};

TEST_F(Order, AMissingEventShowsInEverySecondLaunch) {
  Log log;
  aclmdlRI model = CaptureTwoBranches(log, false);
  EXPECT_EQ(Launches(model, log, 6),
            (std::vector<std::string>{"acbd", "bacd", "acbd", "bacd", "acbd", "bacd"}));
}

TEST_F(Order, OnlyWhatItWaitsForRunsBeforeTheStreamThatIsAhead) {
  Log log;
  aclmdlRI model = CaptureTwoBranches(log, true);
  EXPECT_EQ(Launches(model, log, 4), (std::vector<std::string>{"acbd", "abcd", "acbd", "abcd"}));
}

TEST_F(Order, LaunchesThatOverlapTakeTheirTurnsInTheOrderOfLaunch) {
  Log log;
  aclmdlRI model = CaptureTwoBranches(log, false);
  for (int i = 0; i < 4; ++i) EXPECT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "acbdbacdacbdbacd");
}

TEST_F(Order, AGraphThatIsCapturedAgainGoesOnWhereTheFormerOneStopped) {
  std::vector<std::string> texts;
  for (int i = 0; i < 4; ++i) {
    Log log;
    aclmdlRI model = CaptureTwoBranches(log, false);
    texts.push_back(Launches(model, log, 1)[0]);
    EXPECT_OK(aclmdlRIDestroy(model));
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"acbd", "bacd", "acbd", "bacd"}));
}

TEST_F(Order, WaitsThatGoBackAndForthAreKept) {
  Log log;
  std::string expected;
  Begin(stream_);
  for (int i = 0; i < 20; ++i) {
    aclrtEvent there = CreateEx();
    aclrtEvent back = CreateEx();
    Launch(stream_, log, "a");
    EXPECT_OK(aclrtRecordEvent(there, stream_));
    EXPECT_OK(aclrtStreamWaitEvent(other_, there));
    Launch(other_, log, "b");
    EXPECT_OK(aclrtRecordEvent(back, other_));
    EXPECT_OK(aclrtStreamWaitEvent(stream_, back));
    expected += "ab";
  }
  aclmdlRI model = End(stream_);
  EXPECT_EQ(Launches(model, log, 2), (std::vector<std::string>{expected, expected}));
}

TEST_F(Order, AGraphOfOneStreamRunsAsCaptured) {
  Log log;
  Begin(stream_);
  for (const char* letter : {"x", "y", "z"}) Launch(stream_, log, letter);
  aclmdlRI model = End(stream_);
  EXPECT_EQ(Launches(model, log, 3), (std::vector<std::string>{"xyz", "xyz", "xyz"}));
}

}  // namespace
}  // namespace acltape::device
