// The end of a process, and events between two processes: rules INIT-08, INIT-09 and EVT-23. Each
// test runs a child that exits in some careless way; the child's exit code tells whether it
// survived.
#include <sys/mman.h>
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
#ifdef __SANITIZE_ADDRESS__
        // Its allocator stays locked in a child that was forked while another thread was in it, and
        // the leak check of the child waits for ever: no work is under way here.
        aclrtSynchronizeStream(leftovers.stream);
#endif
        pid_t child = fork();
        if (child == 0) std::exit(0);
        int status = 0;
        waitpid(child, &status, 0);
        aclrtSynchronizeStream(leftovers.stream);
        std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Exit, EVT_23_AnEventOrdersTwoProcesses) {
  // The child waits on its stream for the event of the parent, and answers by its own.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        struct Shared {
          std::atomic<int> step;
          aclrtIpcEventHandle to_child;
          aclrtIpcEventHandle to_parent;
        };
        auto* shared = static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        auto until = [shared](int step) {
          while (shared->step < step) usleep(100);
        };
        pid_t child = fork();  // before any use of the device
        aclrtSetDevice(0);
        aclrtEvent own = nullptr;
        aclrtEvent opened = nullptr;
        bool good = aclrtCreateEventExWithFlag(&own, ACL_EVENT_IPC) == 0;
        if (child == 0) {
          good &= aclrtIpcGetEventHandle(own, &shared->to_parent) == 0;
          shared->step = 1;
          until(2);
          good &= aclrtIpcOpenEventHandle(shared->to_child, &opened) == 0;
          // The parent's record waits for its gate.
          good &= aclrtStreamWaitEvent(nullptr, opened) == 0;
          good &= aclrtRecordEvent(own, nullptr) == 0;
          shared->step = 3;
          good &= aclrtSynchronizeStreamWithTimeout(nullptr, 50) == 507046;
          shared->step = 4;
          good &= aclrtSynchronizeStream(nullptr) == 0;
          std::_Exit(good ? 0 : 1);
        }
        Gate gate;
        until(1);
        good &= aclrtIpcGetEventHandle(own, &shared->to_child) == 0;
        good &= aclrtIpcOpenEventHandle(shared->to_parent, &opened) == 0;
        SoftLaunchKernel(nullptr, "gate", Gate::Run, nullptr, gate.bound());
        good &= aclrtRecordEvent(own, nullptr) == 0;
        shared->step = 2;
        until(4);
        aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
        good &= aclrtQueryEventStatus(opened, &status) == 0;
        good &= status == ACL_EVENT_RECORDED_STATUS_NOT_READY;
        gate.Open();
        good &= aclrtSynchronizeEvent(opened) == 0;
        int result = 1;
        waitpid(child, &result, 0);
        std::_Exit(good && WIFEXITED(result) ? WEXITSTATUS(result) : 2);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace acltape::device
