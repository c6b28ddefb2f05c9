// The main program of the unit tests. A case that fails prints the command that repeats it alone.
// The exit code is 77 when a case was skipped and none failed.
#include <gtest/gtest.h>

#include <cstdio>

namespace {

class RepeatingCommand : public testing::EmptyTestEventListener {
 public:
  explicit RepeatingCommand(const char* program) : program_(program) {}

  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    std::printf("$ %s --gtest_filter='%s.%s'\n", program_, test.test_suite_name(), test.name());
  }

 private:
  const char* program_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  tests.listeners().Append(new RepeatingCommand(argv[0]));
  const int status = RUN_ALL_TESTS();
  return status == 0 && tests.skipped_test_count() > 0 ? 77 : status;
}
