// Experiments that a command makes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "replayer/bisect/element_text.h"
#include "replayer/bisect/process_experiment.h"
#include "storage/error.h"

namespace acltape::replayer {
namespace {

using Verdict = script::Outcome::Verdict;

std::unique_ptr<bisect::ProcessExperiment> Check(
    const std::string& command, std::optional<std::chrono::milliseconds> limit = std::nullopt) {
  bisect::ProcessExperimentOptions options;
  options.command = command;
  options.time_limit = limit;
  for (int64_t i = 0; i < 4; ++i) {
    options.calls.push_back({100 + i, 200 + i});
    options.descriptions.push_back("pair " + std::to_string(i));
  }
  return std::make_unique<bisect::ProcessExperiment>(std::move(options));
}

Verdict VerdictOf(const std::string& command, const script::ElementSet& altered = {}) {
  return Check(command)->Try(altered).verdict;
}

TEST(BisectProcess, ExitCodesAreVerdicts) {
  EXPECT_EQ(VerdictOf("exit 0"), Verdict::kGood);
  EXPECT_EQ(VerdictOf("exit 1"), Verdict::kBad);
  EXPECT_EQ(VerdictOf("exit 124"), Verdict::kBad);
  EXPECT_EQ(VerdictOf("exit 125"), Verdict::kCannotJudge);
}

TEST(BisectProcess, OtherExitCodesEndTheBisection) {
  for (const char* command : {"exit 126", "/no/such/program", "exit 200", "kill -9 $$"}) {
    try {
      VerdictOf(command);
      ADD_FAILURE() << command;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kDevice);
      EXPECT_NE(std::string(error.what()).find("is no verdict"), std::string::npos);
    }
  }
}

TEST(BisectProcess, TheCommandIsToldTheCalls) {
  EXPECT_EQ(VerdictOf("test \"$ACLTAPE_CALLS\" = 100,101,200,201", {0, 1}), Verdict::kGood);
  EXPECT_EQ(VerdictOf("test -z \"$ACLTAPE_CALLS\""), Verdict::kGood);
  EXPECT_EQ(VerdictOf("test \"$(cat {calls} | tr '\\n' ' ')\" = '103 203 '", {3}), Verdict::kGood);
  EXPECT_EQ(VerdictOf("! test -s {calls}"), Verdict::kGood);
}

TEST(BisectProcess, AListTooLongForTheEnvironmentIsInTheFile) {
  bisect::ProcessExperimentOptions options;
  options.command = "test -z \"$ACLTAPE_CALLS\" && test $(wc -l < {calls}) = 50000";
  for (int64_t i = 0; i < 50000; ++i) options.calls.push_back({i});
  EXPECT_EQ(bisect::ProcessExperiment(options).Try(bisect::AllElements(50000)).verdict,
            Verdict::kGood);
}

TEST(BisectProcess, ItsCommandMakesTheExperimentAgain) {
  for (const char* words :
       {"test \"$ACLTAPE_CALLS\" = 101,201", "test \"$(tr '\\n' ' ' < {calls})\" = '101 201 '"}) {
    const auto check = Check(words);
    EXPECT_EQ(std::system(check->Command({1}).c_str()), 0) << check->Command({1});
    EXPECT_NE(std::system(check->Command({2}).c_str()), 0);
  }
}

TEST(BisectProcess, ItsEnvironmentIsSetForItAndNamedInItsCommand) {
  bisect::ProcessExperimentOptions options;
  options.command = "test \"$PATH_OF_TEST:$ACLTAPE_CALLS\" = 'a b:7'";
  options.environment = {"PATH_OF_TEST=a b"};
  options.calls = {{7}};
  options.descriptions = {"call 7"};
  bisect::ProcessExperiment check(options);
  EXPECT_EQ(check.Try({0}).verdict, Verdict::kGood);
  EXPECT_EQ(check.Try({}).verdict, Verdict::kBad);
  EXPECT_EQ(std::system(check.Command({0}).c_str()), 0) << check.Command({0});
}

TEST(BisectProcess, ACommandThatRunsTooLongCannotBeJudged) {
  const auto begin = std::chrono::steady_clock::now();
  const auto check = Check("sleep 60 & sleep 60; exit 0", std::chrono::milliseconds(100));
  EXPECT_EQ(check->Try({}).verdict, Verdict::kCannotJudge);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace acltape::replayer
