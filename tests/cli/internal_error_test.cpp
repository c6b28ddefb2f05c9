// A programming error of a command: the exit code 70 and the place, and never the user's file.
#include "storage/internal_error.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/frame/command.h"

namespace acltape::cli {
namespace {

class Planted final : public Command {
 public:
  explicit Planted(std::function<void()> act) : act_(std::move(act)) {}
  std::string Name() const override { return "planted"; }
  std::string Summary() const override { return "Fails"; }
  std::string Examples() const override { return ""; }
  void Declare(CLI::App& /*app*/) override {}
  int Run() override {
    act_();
    return kExitFine;
  }

 private:
  std::function<void()> act_;
};

struct Ended {
  int code = 0;
  std::string said;
};

Ended RunPlanted(std::function<void()> act) {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<Planted>(std::move(act)));
  char program[] = "acltape";
  char command[] = "planted";
  char* words[] = {program, command};
  testing::internal::CaptureStderr();
  Ended ended;
  ended.code = Main(2, words, commands);
  ended.said = testing::internal::GetCapturedStderr();
  return ended;
}

std::string PlacePattern(int line) {
  return "acltape: internal error at tests/cli/internal_error_test\\.cpp:" + std::to_string(line) +
         ", please report: .*\n";
}

// The line on which `act` fails is that of this macro's use.
#define EXPECT_INTERNAL_ERROR(act)                                                \
  do {                                                                            \
    const Ended ended = RunPlanted(act);                                          \
    EXPECT_EQ(ended.code, 70) << ended.said;                                      \
    EXPECT_TRUE(std::regex_match(ended.said, std::regex(PlacePattern(__LINE__)))) \
        << ended.said << "  is not of line " << __LINE__;                         \
  } while (false)

const std::vector<int>& Empty() {
  static const std::vector<int> empty;
  return empty;
}

TEST(InternalError, IsToldWithItsPlaceAndHasACodeOfItsOwn) {
  // clang-format off
  EXPECT_INTERNAL_ERROR([] { static_cast<void>(Empty().at(static_cast<size_t>(std::rand()))); });
  EXPECT_INTERNAL_ERROR([] { std::string text; text.resize(text.max_size() + 1); });
  EXPECT_INTERNAL_ERROR([] { static_cast<void>(std::get<int>(std::variant<int, std::string>("a"))); });
  EXPECT_INTERNAL_ERROR([] { static_cast<void>(nlohmann::json("text").get<int>()); });
  EXPECT_INTERNAL_ERROR([] { static_cast<void>(std::stoi("no number")); });
  EXPECT_INTERNAL_ERROR([] { throw std::invalid_argument("planted"); });
  EXPECT_INTERNAL_ERROR([] { throw InternalError("planted"); });
  // clang-format on
}

TEST(InternalError, KeepsItsPlaceWhenAnotherThreadMetIt) {
  // clang-format off
  EXPECT_INTERNAL_ERROR([] { std::async(std::launch::async, [] { throw std::out_of_range("planted"); }).get(); });
  // clang-format on
}

TEST(InternalError, IsNothingThatATraceOrTheSystemBringsAbout) {
  struct Case {
    std::function<void()> act;
    int code;
    std::string said;
  };
  const Case kCases[] = {
      {[] { throw Error(ErrorKind::kTrace, "the trace"); }, 3, "acltape: the trace\n"},
      {[] { throw Error(ErrorKind::kUsage, "the words"); }, 2, "acltape: the words\n"},
      {[] { throw std::system_error(ENOSPC, std::generic_category(), "disk"); }, 4,
       "acltape: unexpected failure: disk: No space left on device\n"},
      {[] { throw std::bad_alloc(); }, 4, "acltape: out of memory.\n"}};
  for (const Case& one : kCases) {
    const Ended ended = RunPlanted(one.act);
    EXPECT_EQ(ended.code, one.code);
    EXPECT_EQ(ended.said, one.said);
  }
}

}  // namespace
}  // namespace acltape::cli
