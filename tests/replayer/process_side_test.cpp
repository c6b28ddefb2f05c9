// A side's process that is no side: each way to go wrong is one sentence, and none of them hangs.
#include "replayer/sides/process_side.h"

#include <gtest/gtest.h>

#include "replayer/device/device.h"
#include "replayer/sides/side_environment.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::replayer {
namespace {

// The message about a side whose process is not acltape but a program of /bin/sh. It has the socket
// as number 3.
std::string FailureOf(const std::string& program,
                      std::vector<std::string> environment = {"PATH=/usr/bin:/bin"}) {
  sides::ProcessSideOptions options;
  options.name = sides::kBadSide;
  options.executable = "/bin/sh";
  options.words = {"sh", "-c", program};
  options.environment = std::move(environment);
  options.time_limit = std::chrono::milliseconds(400);
  sides::ProcessSide side(options);
  try {
    side.Description();
  } catch (const sides::SideFailed& failure) {
    EXPECT_TRUE(failure.is_bad());
    return failure.what();
  }
  return "";
}

TEST(ProcessSide, ThatEndsIsNamedWithItsEnd) {
  EXPECT_EQ(FailureOf("exit 7"), "the bad side ended with exit code 7 while it opens its device");
  EXPECT_EQ(FailureOf("kill -ABRT $$")
                .find("the bad side died of signal 6 (Aborted) while it opens its device"),
            0u);
}

TEST(ProcessSide, ThatDoesNotAnswerIsEnded) {
  EXPECT_EQ(FailureOf("exec sleep 100"),
            "the bad side failed while it opens its device: the process of a side does not answer "
            "in time.");
}

TEST(ProcessSide, ThatSaysSomethingElseIsRefused) {
  EXPECT_NE(FailureOf("echo something that is no frame >&3; exec sleep 100").find("no message"),
            std::string::npos);
  // "done", to a question that asks for something else.
  EXPECT_NE(FailureOf("printf 'ACLS\\021\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' >&3; exec sleep 100")
                .find("another answer than was asked for"),
            std::string::npos);
  // "failed", with a text that is shorter than it says.
  EXPECT_NE(
      FailureOf("printf 'ACLS\\023\\0\\0\\0\\010\\0\\0\\0\\0\\0\\0\\0\\01\\0\\0\\0\\0\\0\\0\\0' "
                ">&3; exec sleep 100")
          .find("shorter than it says"),
      std::string::npos);
}

TEST(ProcessSide, ThatCannotBeStartedIsSaidSo) {
  sides::ProcessSideOptions options;
  options.name = sides::kGoodSide;
  options.executable = "/no/such/program";
  sides::ProcessSide side(options);
  for (int attempt = 1; attempt <= 2; ++attempt) {
    EXPECT_THROW(side.Prepare({64}), sides::SideFailed);
    EXPECT_EQ(side.starts(), attempt) << "it is started anew each time";
  }
  EXPECT_THROW(side.Perform({}), sides::SideFailed);
}

TEST(ProcessSide, HasTheEnvironmentThatItIsGivenAndNoMore) {
  setenv("ACLTAPE_TEST_OF_PARENT", "1", 1);
  EXPECT_EQ(FailureOf("test -z \"$ACLTAPE_TEST_OF_PARENT\" && exit 5", {"A=b"}),
            "the bad side ended with exit code 5 while it opens its device");
  EXPECT_EQ(FailureOf("test \"$A\" = 'b c' && exit 6", {"A=b c"}),
            "the bad side ended with exit code 6 while it opens its device");
}

TEST(SideEnvironment, SettingsReplaceAndThreadsAreThoseOfTheRecordingUnlessTheSideSaysOtherwise) {
  const test::TemporaryTrace file("side-environment");
  {
    test::TraceBuilder trace(file.path());
    trace.writer().SetMeta("torch_threads", "2");
    trace.Finish();
  }
  const storage::Reader reader(file.path(), storage::Reader::Mode::kReadOnly);
  using Environment = std::vector<std::string>;
  EXPECT_EQ(sides::EnvironmentOfSide({"A=1", "AB=2"}, {"A=3=4"}, reader),
            (Environment{"AB=2", "A=3=4", "ACLTAPE_SOFT_THREADS=2", "OMP_NUM_THREADS=2",
                         "ACLTAPE_SOFT_GENERATOR=1", "ACLTAPE_SOFT_BLOCKS=exact"}));
  EXPECT_EQ(
      sides::EnvironmentOfSide({}, {"OMP_NUM_THREADS=1"}, reader),
      (Environment{"OMP_NUM_THREADS=1", "ACLTAPE_SOFT_GENERATOR=1", "ACLTAPE_SOFT_BLOCKS=exact"}));
  EXPECT_EQ(sides::EnvironmentOfSide({"ACLTAPE_SOFT_THREADS=3"}, {"OMP_NUM_THREADS=1"}, reader),
            (Environment{"ACLTAPE_SOFT_THREADS=3", "OMP_NUM_THREADS=1", "ACLTAPE_SOFT_GENERATOR=1",
                         "ACLTAPE_SOFT_BLOCKS=exact"}));
  EXPECT_EQ(
      sides::EnvironmentOfSide({"OMP_NUM_THREADS=1"}, {"ACLTAPE_SOFT_BLOCKS=product"}, reader),
      (Environment{"OMP_NUM_THREADS=1", "ACLTAPE_SOFT_BLOCKS=product", "ACLTAPE_SOFT_THREADS=2",
                   "ACLTAPE_SOFT_GENERATOR=1"}));
}

// A trace that does not name a generator of random numbers is older than the second one.
TEST(SideEnvironment, TheGeneratorOfRandomNumbersIsThatOfTheRecording) {
  const auto generator_of = [](const char* soft_device) {
    const test::TemporaryTrace file("side-generator");
    {
      test::TraceBuilder trace(file.path());
      if (soft_device != nullptr) trace.writer().SetMeta("soft_device", soft_device);
      trace.Finish();
    }
    const storage::Reader reader(file.path(), storage::Reader::Mode::kReadOnly);
    return RecordedGenerator(reader);
  };
  EXPECT_EQ(generator_of(nullptr), "1");
  EXPECT_EQ(generator_of(R"({"generator":1,"poison":1})"), "1");
  EXPECT_EQ(generator_of(R"({"generator":2})"), "2");
  for (const char* unknown : {R"({"generator":3})", R"({"generator":0})", R"({"generator":"2"})",
                              R"({"poison":1})", "[2]", "evil"}) {
    EXPECT_THROW(generator_of(unknown), Error) << unknown;
  }
}

TEST(SideEnvironment, WhatIsNoSettingIsRefused) {
  for (const char* fine : {"A=", "A=b", "_a9=x=y", "ASCEND_X= "})
    sides::CheckSetting("--bad-env", fine);
  for (const char* wrong : {"", "A", "=b", "9A=b", "A B=c", "A-B=c"}) {
    EXPECT_THROW(sides::CheckSetting("--bad-env", wrong), Error) << wrong;
  }
}

}  // namespace
}  // namespace acltape::replayer
