// How a process ends: rules INIT-08 and INIT-09. Each test runs a child that exits in some careless
// way; the child's exit code tells whether it survived.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

// Streams, events and a model that outlive main.
struct Leftovers {
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  aclmdlRI model = nullptr;
  bool destroy = false;

  ~Leftovers() {
    if (!destroy) return;
    aclmdlRIDestroy(model);
    aclrtDestroyEvent(event);
    aclrtSynchronizeStream(stream);
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
  }
};
Leftovers leftovers;

aclError Sleep(void*) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return 0;
}

void Prepare() {
  aclInit(nullptr);
  aclInit(nullptr);  // INIT-08
  aclrtSetDevice(0);
  aclrtCreateStream(&leftovers.stream);
  aclrtCreateEvent(&leftovers.event);
  aclmdlRICaptureBegin(leftovers.stream, kGlobal);
  SoftLaunchKernel(leftovers.stream, "sleep", Sleep, nullptr, nullptr);
  aclmdlRICaptureEnd(leftovers.stream, &leftovers.model);
  for (int i = 0; i < 500; ++i) {
    SoftLaunchKernel(leftovers.stream, "sleep", Sleep, nullptr, nullptr);
    aclmdlRIExecuteAsync(leftovers.model, leftovers.stream);
  }
  aclrtRecordEvent(leftovers.event, leftovers.stream);
}

// EXPECT_EXIT forks before any device thread exists, so the child is a process like any other.
using Exit = testing::Test;

TEST_F(Exit, INIT_08_WithoutFinalizeAndWithQueuedWork) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Prepare();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Exit, INIT_09_LateDestructorsMayDestroyEverything) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Prepare();
        leftovers.destroy = true;
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Exit, AStreamThatWaitsForEverDoesNotHoldTheExit) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Prepare();
        aclrtEvent never = nullptr;
        aclrtStream blocked = nullptr;
        aclrtCreateEvent(&never);
        aclrtCreateStream(&blocked);
        aclrtStreamWaitEvent(blocked, never);
        leftovers.destroy = true;
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Exit, AForkedChildMayRunItsDestructors) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Prepare();
        leftovers.destroy = true;
        pid_t child = fork();
        if (child == 0) std::exit(0);
        int status = 0;
        waitpid(child, &status, 0);
        aclrtSynchronizeStream(leftovers.stream);
        std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace acltape::device
