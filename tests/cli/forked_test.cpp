#include "cli/frame/forked.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <stdexcept>
#include <string>

#include "storage/error.h"

namespace acltape::cli {
namespace {

TEST(Forked, ResultsComeFromAnotherProcessWhole) {
  const std::string large(3 << 20, 'x');
  int calls = 0;
  const Forked forked = CallForked([&] {
    ++calls;  // counts in the copy only
    return std::to_string(getpid()) + '\0' + large;
  });
  EXPECT_EQ(forked.exit_code, 0);
  EXPECT_EQ(calls, 0);
  EXPECT_NE(forked.result.substr(0, forked.result.find('\0')), std::to_string(getpid()));
  EXPECT_EQ(forked.result.substr(forked.result.find('\0') + 1), large);
  EXPECT_EQ(CallForked([] { return ""; }).result, "");
}

TEST(Forked, ErrorsKeepTheirKindAndSentence) {
  for (const ErrorKind kind :
       {ErrorKind::kUsage, ErrorKind::kTrace, ErrorKind::kDevice, ErrorKind::kCannotJudge}) {
    try {
      CallForked([&]() -> std::string { throw Error(kind, "the trace is empty."); });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      EXPECT_STREQ(error.what(), "the trace is empty.");
    }
  }
}

TEST(Forked, OtherFailuresKeepWhatTheyAre) {
  EXPECT_THROW(CallForked([]() -> std::string { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_THROW(CallForked([] { return std::string(1, std::string().at(1)); }), std::logic_error);
  EXPECT_THROW(CallForked([]() -> std::string { throw std::runtime_error("r"); }),
               std::runtime_error);
}

TEST(Forked, AProcessThatEndsEarlyGivesItsCode) {
  EXPECT_EQ(CallForked([]() -> std::string { _exit(4); }).exit_code, 4);
  EXPECT_EQ(CallForked([]() -> std::string { _exit(0); }).exit_code, 4) << "it returned nothing";
}

TEST(Forked, ASignalIsAnErrorThatNamesIt) {
  try {
    CallForked([]() -> std::string {
      raise(SIGKILL);
      return "";
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_NE(std::string(error.what()).find("signal 9"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace acltape::cli
