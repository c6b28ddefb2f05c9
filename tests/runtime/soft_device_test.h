// Parts that the tests of the soft device share: a device, streams, and kernels that log or block.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "runtime/kernel_launch.h"

namespace acltape::device {

// The tests take all memory of the device and use little of it; the host may have less (MEM-18).
[[maybe_unused]] inline const bool kTakesMoreThanTheHostHas =
    setenv("ACLTAPE_SOFT_HOST_MEMORY", "1024G", /*overwrite=*/0) == 0;

// Shows the device's own sentence when a code is not the expected one.
inline testing::AssertionResult HasCode(const char* expression, const char*, aclError actual,
                                        aclError expected) {
  if (actual == expected) return testing::AssertionSuccess();
  const char* message = aclGetRecentErrMsg();
  return testing::AssertionFailure() << expression << " returned " << actual << ", not " << expected
                                     << ": " << (message != nullptr ? message : "no message");
}

#define EXPECT_CODE(code, expression) \
  EXPECT_PRED_FORMAT2(::acltape::device::HasCode, (expression), (code))
#define EXPECT_OK(expression) EXPECT_CODE(ACL_SUCCESS, expression)
#define ASSERT_OK(expression) \
  ASSERT_PRED_FORMAT2(::acltape::device::HasCode, (expression), ACL_SUCCESS)

// A kernel that stands still until the test opens it. What the kernel looks at outlives the gate.
class Gate {
 public:
  Gate() : state_(NewState()) {}
  ~Gate() { Open(); }
  void Open() { state_->open.store(true); }
  bool Entered() const { return state_->entered.load(); }
  void WaitUntilEntered() const {
    while (!Entered()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  // The kernel and its argument.
  static aclError Run(void* bound) {
    auto* state = static_cast<State*>(bound);
    state->entered.store(true);
    while (!state->open.load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    return ACL_SUCCESS;
  }
  void* bound() const { return state_; }

 private:
  struct State {
    std::atomic<bool> open{false};
    std::atomic<bool> entered{false};
  };
  static State* NewState() {
    static std::mutex mutex;
    static std::deque<State>& states = *new std::deque<State>;
    std::lock_guard lock(mutex);
    return &states.emplace_back();
  }

  State* state_;
};

// Collects the names of the kernels that ran, in the order in which they ran.
class Log {
 public:
  void Add(const std::string& entry) {
    std::lock_guard lock(mutex_);
    entries_.push_back(entry);
  }
  std::vector<std::string> entries() const {
    std::lock_guard lock(mutex_);
    return entries_;
  }
  // "abc" for the entries a, b, c.
  std::string text() const {
    std::string joined;
    for (const std::string& entry : entries()) joined += entry;
    return joined;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> entries_;
};

class SoftDevice : public testing::Test {
 protected:
  void SetUp() override {
    aclInit(nullptr);
    ASSERT_OK(aclrtSetDevice(0));
    ASSERT_OK(aclrtCreateStream(&stream_));
    ASSERT_OK(aclrtCreateStream(&other_));
  }

  void TearDown() override {
    aclmdlRICaptureMode global = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
    aclmdlRICaptureThreadExchangeMode(&global);
    aclrtResetDeviceForce(0);
    aclFinalize();
  }

  // Launches a kernel that adds `entry` to the log and returns `result`.
  void Launch(aclrtStream stream, Log& log, const std::string& entry, aclError result = 0) {
    struct Bound {
      Log* log;
      std::string entry;
      aclError result;
    };
    ASSERT_OK(SoftLaunchKernel(
        stream, ("kernel_" + entry).c_str(),
        [](void* bound) {
          auto* kernel = static_cast<Bound*>(bound);
          kernel->log->Add(kernel->entry);
          return kernel->result;
        },
        [](void* bound) { delete static_cast<Bound*>(bound); }, new Bound{&log, entry, result}));
  }

  void Launch(aclrtStream stream, Gate& gate) {
    ASSERT_OK(SoftLaunchKernel(stream, "gate", Gate::Run, nullptr, gate.bound()));
  }

  aclrtEvent CreateEx(uint32_t flags = ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE) {
    aclrtEvent event = nullptr;
    EXPECT_OK(aclrtCreateEventExWithFlag(&event, flags));
    return event;
  }

  void Begin(aclrtStream stream,
             aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL) {
    ASSERT_OK(aclmdlRICaptureBegin(stream, mode));
  }

  aclmdlRI End(aclrtStream stream, aclError expected = ACL_SUCCESS) {
    auto* untouched = reinterpret_cast<aclmdlRI>(1);
    aclmdlRI model = untouched;
    EXPECT_CODE(expected, aclmdlRICaptureEnd(stream, &model));
    EXPECT_NE(model, untouched);
    EXPECT_EQ(model == nullptr, expected != ACL_SUCCESS);
    return model;
  }

  aclmdlRICaptureStatus Status(aclrtStream stream) {
    aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED;
    EXPECT_OK(aclmdlRICaptureGetInfo(stream, &status, nullptr));
    return status;
  }

  // Runs `body` in another thread that has the device set.
  template <typename Body>
  void InThread(Body body) {
    std::thread([&] {
      ASSERT_OK(aclrtSetDevice(0));
      body();
      ASSERT_OK(aclrtResetDevice(0));
    }).join();
  }

  aclrtStream stream_ = nullptr;
  aclrtStream other_ = nullptr;
};

inline constexpr auto kNone = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
inline constexpr auto kActive = ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
inline constexpr auto kInvalidated = ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED;
inline constexpr auto kGlobal = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
inline constexpr auto kThreadLocal = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
inline constexpr auto kRelaxed = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;

}  // namespace acltape::device
