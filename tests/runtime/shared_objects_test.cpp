// Threads that destroy objects which others use, and reset the device under them: each call gets a
// code, and no memory is touched that is gone. ThreadSanitizer and AddressSanitizer see the rest.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "acl/acl.h"

namespace acltape::device {
namespace {

constexpr int kThreads = 8;
constexpr size_t kObjects = 8;

// Codes of calls that cannot be made, by the numbers of their kinds: a wrong argument or state, no
// resources; and those of waits that ended early. Codes of a device that failed are no answer.
bool IsAnswer(aclError code) {
  constexpr int kFirstOfCaptures = 507900;
  return code < 300000 || code >= kFirstOfCaptures || code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ||
         code == ACL_ERROR_RT_STREAM_ABORT || code == ACL_ERROR_RT_MODEL_EXECUTE;
}

struct Tables {
  std::array<std::atomic<aclrtStream>, kObjects> streams{};
  std::array<std::atomic<aclrtEvent>, kObjects> events{};
  std::array<std::atomic<aclrtNotify>, kObjects> notifies{};
  std::array<std::atomic<aclmdlRI>, kObjects> models{};
};

// One thread's calls, in an order that its seed decides.
class Caller {
 public:
  Caller(Tables& tables, int seed) : tables_(tables), random_(static_cast<uint32_t>(seed)) {}

  void Make(int calls) {
    aclrtSetDevice(0);
    for (int i = 0; i < calls; ++i) Note(One());
  }
  const std::set<aclError>& codes() const { return codes_; }

 private:
  void Note(aclError code) { codes_.insert(code); }
  size_t Any() { return random_() % kObjects; }

  aclError One() {
    std::atomic<aclrtStream>& stream = tables_.streams[Any()];
    std::atomic<aclrtEvent>& event = tables_.events[Any()];
    std::atomic<aclrtNotify>& notify = tables_.notifies[Any()];
    std::atomic<aclmdlRI>& model = tables_.models[Any()];
    switch (random_() % 16) {
      case 0:
        return Replace(stream, aclrtCreateStream, aclrtDestroyStreamForce);
      case 1:
        return Replace(
            event,
            [](aclrtEvent* made) { return aclrtCreateEventExWithFlag(made, ACL_EVENT_SYNC); },
            aclrtDestroyEvent);
      case 2:
        return Replace(
            notify, [](aclrtNotify* made) { return aclrtCreateNotify(made, 0); },
            aclrtDestroyNotify);
      case 3:
        return stream == nullptr ? ACL_SUCCESS : aclrtDestroyStreamForce(stream);
      case 4:
        return event == nullptr ? ACL_SUCCESS : aclrtDestroyEvent(event);
      case 5:
        return aclrtRecordEvent(event, stream);
      case 6:
        return aclrtStreamWaitEvent(stream, event);
      case 7:
        return aclrtSynchronizeStreamWithTimeout(stream, 20);
      case 8:
        return aclrtLaunchHostFunc(
            stream, [](void*) {}, nullptr);
      case 9: {
        aclrtStreamStatus status;
        return aclrtStreamQuery(stream, &status);
      }
      case 10: {
        aclrtEventRecordedStatus status;
        return aclrtQueryEventStatus(event, &status);
      }
      case 11:
        return stream == nullptr ? ACL_SUCCESS : aclrtStreamAbort(stream);
      case 12:
        return stream == nullptr ? ACL_SUCCESS
                                 : aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
      case 13: {
        aclmdlRI made = nullptr;
        const aclError code = stream == nullptr ? ACL_SUCCESS : aclmdlRICaptureEnd(stream, &made);
        if (aclmdlRI old = model.exchange(made)) Note(aclmdlRIDestroy(old));
        return code;
      }
      case 14:
        return model == nullptr ? ACL_SUCCESS : aclmdlRIExecuteAsync(model, stream);
      default:
        return aclrtRecordNotify(notify, stream);
    }
  }

  // Puts a new object into the table, and destroys the one that was there.
  template <typename Handle, typename Create, typename Destroy>
  aclError Replace(std::atomic<Handle>& place, const Create& create, const Destroy& destroy) {
    Handle made = nullptr;
    Note(create(&made));
    Handle old = place.exchange(made);
    return old == nullptr ? ACL_SUCCESS : destroy(old);
  }

  Tables& tables_;
  std::mt19937 random_;
  std::set<aclError> codes_;
};

std::set<aclError> CodesOf(const std::function<void(int round)>& meanwhile, int rounds) {
  static Tables& tables = *new Tables;
  std::vector<Caller> callers;
  for (int i = 0; i < kThreads; ++i) callers.emplace_back(tables, 7919 * (i + 1));
  std::vector<std::thread> threads;
  for (Caller& caller : callers) threads.emplace_back([&caller] { caller.Make(3000); });
  for (int round = 0; round < rounds; ++round) meanwhile(round);
  for (std::thread& thread : threads) thread.join();
  std::set<aclError> codes;
  for (const Caller& caller : callers) codes.insert(caller.codes().begin(), caller.codes().end());
  return codes;
}

std::string NotAllowed(const std::set<aclError>& codes) {
  std::string text;
  for (const aclError code : codes) {
    if (!IsAnswer(code)) text += std::to_string(code) + " ";
  }
  return text;
}

class SharedObjects : public ::testing::Test {
 protected:
  void SetUp() override { aclInit(nullptr); }
};

TEST_F(SharedObjects, OneThreadDestroysWhatOthersUse) {
  const std::set<aclError> codes = CodesOf([](int) {}, 0);
  EXPECT_EQ(NotAllowed(codes), "");
  EXPECT_TRUE(codes.contains(ACL_ERROR_RT_INVALID_HANDLE));  // it happened
}

TEST_F(SharedObjects, TheDeviceIsResetWhileOthersUseIt) {
  const std::set<aclError> codes = CodesOf(
      [](int) {
        aclrtResetDeviceForce(0);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      30);
  EXPECT_EQ(NotAllowed(codes), "");
  EXPECT_TRUE(codes.contains(ACL_ERROR_RT_CONTEXT_NULL));
}

TEST_F(SharedObjects, TheInterfaceEndsAndBeginsWhileOthersUseIt) {
  const std::set<aclError> codes = CodesOf(
      [](int) {
        aclFinalize();
        aclInit(nullptr);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      30);
  EXPECT_EQ(NotAllowed(codes), "");
}

TEST_F(SharedObjects, OfTwoThatDestroyAnObjectOneSucceeds) {
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  for (int round = 0; round < 200; ++round) {
    aclrtEvent event = nullptr;
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    std::atomic<int> destroyed{0}, refused{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        aclrtSetDevice(0);
        for (const aclError code : {aclrtDestroyEvent(event), aclrtDestroyStream(stream)}) {
          if (code == ACL_SUCCESS) ++destroyed;
          if (code == ACL_ERROR_RT_INVALID_HANDLE) ++refused;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(destroyed, 2);
    EXPECT_EQ(refused, 2);
  }
}

}  // namespace
}  // namespace acltape::device
