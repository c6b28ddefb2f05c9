// The end of a process, and events between two processes: rules INIT-08, INIT-09 and EVT-23. Each
// test runs a child that exits in some careless way; the child's exit code tells whether it
// survived.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

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

TEST_F(Exit, AHostFunctionThatEndsTheProcessGivesItsExitCode) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Prepare();
        aclrtStream stream = nullptr;
        aclrtCreateStream(&stream);
        aclrtLaunchHostFunc(
            stream, [](void*) { std::exit(7); }, nullptr);
        aclrtSynchronizeStream(stream);
        std::exit(0);
      },
      testing::ExitedWithCode(7), "");
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

// Work that waits for what nobody writes or records, by name.
struct Endless {
  const char* name;
  void (*submit)(aclrtStream stream, aclrtStream other);
};

void* Cell() {
  void* cell = nullptr;
  aclrtMalloc(&cell, 8, ACL_MEM_MALLOC_NORMAL_ONLY);
  aclrtMemset(cell, 8, 0, 8);
  return cell;
}

void Capture(aclrtStream stream, const std::function<void()>& tasks) {
  aclmdlRI model = nullptr;
  aclmdlRICaptureBegin(stream, kGlobal);
  tasks();
  aclmdlRICaptureEnd(stream, &model);
  aclmdlRIExecuteAsync(model, stream);
  aclmdlRIExecuteAsync(model, stream);
}

const Endless kEndless[] = {
    {"a value", [](aclrtStream stream,
                   aclrtStream) { aclrtValueWait(Cell(), 1, ACL_STREAM_WAIT_VALUE_EQ, stream); }},
    {"a value in a graph",
     [](aclrtStream stream, aclrtStream) {
       void* cell = Cell();
       Capture(stream, [&] { aclrtValueWait(cell, 1, ACL_STREAM_WAIT_VALUE_EQ, stream); });
     }},
    {"a value in a graph of two streams",
     [](aclrtStream stream, aclrtStream other) {
       void* cell = Cell();
       aclrtEvent fork = nullptr;
       aclrtEvent join = nullptr;
       aclrtCreateEventExWithFlag(&fork, ACL_EVENT_SYNC);
       aclrtCreateEventExWithFlag(&join, ACL_EVENT_SYNC);
       Capture(stream, [&] {
         aclrtRecordEvent(fork, stream);
         aclrtStreamWaitEvent(other, fork);
         aclrtValueWait(cell, 1, ACL_STREAM_WAIT_VALUE_EQ, other);
         aclrtRecordEvent(join, other);
         aclrtStreamWaitEvent(stream, join);
       });
     }},
    {"an external event in a graph",
     [](aclrtStream stream, aclrtStream) {
       aclrtEvent event = nullptr;
       aclrtCreateEventWithFlag(&event, ACL_EVENT_EXTERNAL);
       Capture(stream, [&] {
         aclrtStreamWaitEvent(stream, event);
         aclrtResetEvent(event, stream);
       });
     }},
    {"an event of the old kind",
     [](aclrtStream stream, aclrtStream) {
       aclrtEvent event = nullptr;
       aclrtCreateEvent(&event);
       aclrtStreamWaitEvent(stream, event);
     }},
    {"a notify",
     [](aclrtStream stream, aclrtStream) {
       aclrtNotify notify = nullptr;
       aclrtCreateNotify(&notify, 0);
       aclrtWaitAndResetNotify(notify, stream, 0);
     }},
    {"a stream that waits",
     [](aclrtStream stream, aclrtStream other) {
       aclrtEvent event = nullptr;
       aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC);
       aclrtValueWait(Cell(), 1, ACL_STREAM_WAIT_VALUE_EQ, other);
       aclrtRecordEvent(event, other);
       aclrtStreamWaitEvent(stream, event);
     }},
};

// Calls that release a stream or wait for it. Each is followed by the rest that a tidy program
// does.
struct Release {
  const char* name;
  void (*release)(aclrtContext context, aclrtStream stream, aclrtStream other);
};

const Release kReleases[] = {
    {"aclrtDestroyStream",
     [](aclrtContext, aclrtStream stream, aclrtStream) { aclrtDestroyStream(stream); }},
    {"aclrtDestroyContext",
     [](aclrtContext context, aclrtStream, aclrtStream) { aclrtDestroyContext(context); }},
    {"aclrtResetDevice", [](aclrtContext, aclrtStream, aclrtStream) { aclrtResetDevice(0); }},
    {"aclrtResetDeviceForce",
     [](aclrtContext, aclrtStream, aclrtStream) { aclrtResetDeviceForce(0); }},
    {"aclFinalize", [](aclrtContext, aclrtStream, aclrtStream) { aclFinalize(); }},
    {"aclrtSynchronizeStream",
     [](aclrtContext, aclrtStream stream, aclrtStream other) {
       const bool first = aclrtSynchronizeStream(stream) == 507046;
       const bool second = aclrtSynchronizeStream(other) == 507046;
       if (!first && !second) std::exit(1);
     }},
    {"aclrtSynchronizeDevice",
     [](aclrtContext, aclrtStream, aclrtStream) {
       if (aclrtSynchronizeDevice() != 507046) std::exit(1);
       if (aclrtSynchronizeDevice() != 0) std::exit(2);  // the work is dropped
     }},
};

// Ends the process by itself; with `own_context` the streams are of a context of their own.
[[noreturn]] void EndWith(const Endless& endless, const Release& release, bool own_context) {
  setenv("ACLTAPE_SOFT_RELEASE_WAIT", "100", 1);
  setenv("ACLTAPE_SOFT_SYNCHRONIZE_WAIT", "100", 1);
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtContext context = nullptr;
  if (own_context) aclrtCreateContext(&context, 0);
  aclrtStream stream = nullptr;
  aclrtStream other = nullptr;
  aclrtCreateStream(&stream);
  aclrtCreateStream(&other);
  endless.submit(stream, other);
  release.release(context, stream, other);
  if (own_context) aclrtDestroyContext(context);
  aclrtResetDevice(0);
  aclFinalize();
  std::exit(0);
}

TEST_F(Exit, WorkThatWaitsForEverDoesNotHoldAReleaseUp) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const Endless& endless : kEndless) {
    for (const Release& release : kReleases) {
      SCOPED_TRACE(std::string(release.name) + " while a stream waits for " + endless.name);
      const bool own_context = std::string(release.name) == "aclrtDestroyContext";
      EXPECT_EXIT(EndWith(endless, release, own_context), testing::ExitedWithCode(0),
                  "drops the work of stream");
    }
  }
}

// A kernel of half a second, and a stream that waits for it: longer than the patience.
[[noreturn]] void ReleaseWhileWorkGoesOn(bool synchronizes) {
  setenv("ACLTAPE_SOFT_RELEASE_WAIT", "100", 1);
  setenv("ACLTAPE_SOFT_SYNCHRONIZE_WAIT", "100", 1);
  static std::atomic<int> ran{0};
  const auto slow = [](void*) -> aclError {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return 0;
  };
  const auto count = [](void*) -> aclError {
    ++ran;
    return 0;
  };
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  aclrtStream other = nullptr;
  aclrtEvent event = nullptr;
  aclrtCreateStream(&stream);
  aclrtCreateStream(&other);
  aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC);
  SoftLaunchKernel(stream, "slow", slow, nullptr, nullptr);
  aclrtRecordEvent(event, stream);
  aclrtStreamWaitEvent(other, event);
  SoftLaunchKernel(other, "count", count, nullptr, nullptr);
  if (synchronizes && aclrtSynchronizeDevice() != 0) std::exit(2);
  aclrtResetDevice(0);
  std::exit(ran == 1 ? 0 : 1);
}

TEST_F(Exit, AReleaseWaitsForWorkThatGoesOn) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(ReleaseWhileWorkGoesOn(false), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(ReleaseWhileWorkGoesOn(true), testing::ExitedWithCode(0), "");
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
