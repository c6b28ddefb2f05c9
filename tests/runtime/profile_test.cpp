// Profiles: built-in ones, files, single settings, and the choices that the rules leave open. The
// settings are fixed when a process makes its first call, so each test body runs in a child.
#include <cstdlib>
#include <fstream>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

// Ends the child with 1 and the reason unless the condition holds.
#define REQUIRE(condition)                                                         \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                               \
    }                                                                              \
  } while (false)

class Profiles : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }

  // Writes the lines to a file and makes it the profile.
  static void UseFile(const std::string& lines) {
    std::string path = testing::TempDir() + "profile" + std::to_string(getpid());
    std::ofstream(path) << lines;
    setenv("ACLTAPE_SOFT_PROFILE", path.c_str(), 1);
  }
  static uint32_t Streams() {
    uint32_t streams = 0;
    aclrtSetDevice(0);
    aclrtGetStreamAvailableNum(&streams);
    return streams + 1;  // the default stream
  }
  [[noreturn]] static void Done() {
    if (const char* path = std::getenv("ACLTAPE_SOFT_PROFILE")) std::remove(path);
    std::_Exit(0);
  }
};

constexpr auto kDone = [](int status) { return testing::ExitedWithCode(0)(status); };

TEST_F(Profiles, GAP_05_TheDefaultIsOneServerProduct) {
  EXPECT_EXIT(
      {
        REQUIRE(std::string(aclrtGetSocName()) == "Ascend910B1");
        REQUIRE(Streams() == 1984);
        uint32_t events = 0;
        aclrtGetEventAvailNum(&events);
        REQUIRE(events == 65536);
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, DEV_18_TheProgramSeesTheDevicesThatTheEnvironmentChooses) {
  EXPECT_EXIT(
      {
        setenv("ACLTAPE_SOFT_DEVICES", "8", 1);
        setenv("ASCEND_RT_VISIBLE_DEVICES", "5,2,9,3", 1);  // 9 ends the list
        uint32_t count = 0;
        REQUIRE(aclrtGetDeviceCount(&count) == ACL_SUCCESS && count == 2);
        REQUIRE(aclrtSetDevice(1) == ACL_SUCCESS);
        REQUIRE(aclrtSetDevice(2) == ACL_ERROR_RT_INVALID_DEVICEID);
        int32_t number = -1;
        REQUIRE(aclrtGetPhyDevIdByUserDevId(1, &number) == ACL_SUCCESS && number == 2);
        REQUIRE(aclrtGetUserDevIdByPhyDevId(5, &number) == ACL_SUCCESS && number == 0);
        REQUIRE(aclrtGetLogicDevIdByPhyDevId(5, &number) == ACL_SUCCESS && number == 5);
        REQUIRE(aclrtGetUserDevIdByLogicDevId(3, &number) == ACL_ERROR_RT_INVALID_DEVICEID);
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, DEV_18_AChoiceOfNoDeviceIsReportedAndIgnored) {
  EXPECT_EXIT(
      {
        setenv("ASCEND_RT_VISIBLE_DEVICES", "1", 1);
        uint32_t count = 0;
        REQUIRE(aclrtGetDeviceCount(&count) == ACL_SUCCESS && count == 1);
        Done();
      },
      kDone, "ASCEND_RT_VISIBLE_DEVICES=1 names no device from 0 to 0; ignored");
}

TEST_F(Profiles, ABuiltInProfileIsChosenByName) {
  EXPECT_EXIT(
      {
        setenv("ACLTAPE_SOFT_PROFILE", "small", 1);
        REQUIRE(std::string(aclrtGetSocName()) == "Ascend310B1");
        REQUIRE(Streams() == 512);
        size_t free_bytes = 0;
        size_t total = 0;
        REQUIRE(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total) == 0);
        REQUIRE(total == size_t{4} << 30);
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, HostOnlyAcceptsComputationAndCarriesNoneOut) {
  EXPECT_EXIT(
      {
        setenv("ACLTAPE_SOFT_PROFILE", "host_only", 1);
        REQUIRE(aclrtSetDevice(0) == 0);
        static int runs = 0;
        static int drops = 0;
        const auto launch = [](aclrtStream stream) {
          return SoftLaunchKernel(
              stream, "k", [](void*) { return ++runs, ACL_SUCCESS; }, [](void*) { ++drops; },
              nullptr);
        };
        void* memory = nullptr;
        REQUIRE(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
        const int32_t sent = 7;
        REQUIRE(aclrtMemcpy(memory, 4, &sent, 4, ACL_MEMCPY_HOST_TO_DEVICE) == 0);
        REQUIRE(aclrtMemsetAsync(memory, 64, 1, 64, nullptr) == 0);
        REQUIRE(launch(nullptr) == 0);
        REQUIRE(drops == 1);  // nothing of it waits
        REQUIRE(aclrtSynchronizeStream(nullptr) == 0);
        int32_t back = 0;
        REQUIRE(aclrtMemcpy(&back, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST) == 0);
        REQUIRE(back == 7);  // copies are made, the fill is not

        aclrtStream stream = nullptr;
        REQUIRE(aclrtCreateStream(&stream) == 0);
        aclmdlRI model = nullptr;
        REQUIRE(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) == 0);
        REQUIRE(launch(stream) == 0);
        REQUIRE(aclmdlRICaptureEnd(stream, &model) == 0);
        REQUIRE(aclmdlRIExecuteAsync(model, stream) == 0);
        REQUIRE(aclrtSynchronizeStream(stream) == 0);
        REQUIRE(drops == 1);  // the model keeps its task
        REQUIRE(aclmdlRIDestroy(model) == 0);
        REQUIRE(drops == 2);
        REQUIRE(runs == 0);
        // Misuse is refused as ever.
        REQUIRE(launch(reinterpret_cast<aclrtStream>(uintptr_t{64})) != 0);
        REQUIRE(std::string(SoftDescribe()) == R"({"generator":2,"compute":"nothing"})");
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, AFileSetsEverything) {
  EXPECT_EXIT(
      {
        UseFile(
            "# a comment\n"
            "soc_name = Test 1\n"
            "  devices=3  \n"
            "streams = 9\n"
            "events = 4\n"
            "notifies = 1\n"
            "models = 1\n"
            "queue_depth = 16\n"
            "memory = 2M\n"
            "cube_cores = 7\n"
            "vector_cores = 8\n"
            "fault = aclrtMemFlush return=507000\n");
        REQUIRE(std::string(aclrtGetSocName()) == "Test 1");
        uint32_t count = 0;
        REQUIRE(aclrtGetDeviceCount(&count) == 0 && count == 3);
        REQUIRE(Streams() == 9);
        REQUIRE(aclrtGetEventAvailNum(&count) == 0 && count == 4);
        REQUIRE(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &count) == 0 && count == 7);
        REQUIRE(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &count) == 0 && count == 8);
        void* memory = nullptr;
        REQUIRE(aclrtMalloc(&memory, 3 << 20, ACL_MEM_MALLOC_HUGE_FIRST) == 207001);
        aclrtNotify notify = nullptr;
        REQUIRE(aclrtCreateNotify(&notify, 0) == 0);
        REQUIRE(aclrtCreateNotify(&notify, 0) == 207009);
        REQUIRE(aclrtMemFlush(&count, 4) == 507000);
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, TheEnvironmentStandsAboveTheProfile) {
  EXPECT_EXIT(
      {
        UseFile("streams = 9\nsoc_name = One\n");
        setenv("ACLTAPE_SOFT_STREAMS", "11", 1);
        setenv("ACLTAPE_SOFT_SOC_NAME", "Two", 1);
        REQUIRE(Streams() == 11);
        REQUIRE(std::string(aclrtGetSocName()) == "Two");
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, WhatIsNotUnderstoodIsReportedWithItsPlaceAndIgnored) {
  EXPECT_EXIT(
      {
        UseFile("streams = many\n");
        REQUIRE(Streams() == 1984);
        Done();
      },
      kDone, ":1: streams=many is not a number from 1 to 1048576; ignored");
  EXPECT_EXIT(
      {
        UseFile("\nstrems = 5\n");
        Streams();
        Done();
      },
      kDone, ":2: there is no setting \"strems\"; accepted are soc_name, fault, devices, streams");
  EXPECT_EXIT(
      {
        UseFile("streams 5\n");
        Streams();
        Done();
      },
      kDone, "\"streams 5\" is not of the form key = value");
  EXPECT_EXIT(
      {
        UseFile("peer_copy = maybe\n");
        Streams();
        Done();
      },
      kDone, "peer_copy=maybe is none of refuse, task_error, allow; ignored");
  EXPECT_EXIT(
      {
        setenv("ACLTAPE_SOFT_PROFILE", "/nonexistent/profile", 1);
        REQUIRE(Streams() == 1984);
        Done();
      },
      kDone,
      "is neither a built-in profile \\(server, newer, host_only, small\\) nor a file that can be "
      "read");
  EXPECT_EXIT(
      {
        setenv("ACLTAPE_SOFT_QUEUE_DEPTH", "-1", 1);
        Streams();
        Done();
      },
      kDone, "ACLTAPE_SOFT_QUEUE_DEPTH=-1 is not a number");
}

TEST_F(Profiles, STR_04_AQueueDepthOfItsOwn) {
  EXPECT_EXIT(
      {
        UseFile("queue_depth = 8\n");
        Streams();
        Gate gate;
        static std::atomic<int> submitted{0};
        std::thread([&] {
          aclrtSetDevice(0);
          aclrtStream stream = nullptr;
          aclrtCreateStream(&stream);
          SoftLaunchKernel(stream, "gate", Gate::Run, nullptr, gate.bound());
          gate.WaitUntilEntered();
          for (int i = 0; i < 100; ++i) {
            SoftLaunchKernel(
                stream, "k", [](void*) -> aclError { return 0; }, nullptr, nullptr);
            ++submitted;
          }
        }).detach();
        while (submitted < 7) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        REQUIRE(submitted == 7);
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, INIT_07_FinalisingAsOftenAsInitialising) {
  EXPECT_EXIT(
      {
        setenv("ACLTAPE_SOFT_FINALIZE", "counted", 1);
        aclInit(nullptr);
        aclInit(nullptr);
        REQUIRE(aclFinalize() == 0);
        REQUIRE(aclFinalize() == 0);
        REQUIRE(aclFinalize() == 100037);
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, DEV_10_SynchronisationOfTheWholeDevice) {
  EXPECT_EXIT(
      {
        setenv("ACLTAPE_SOFT_SYNCHRONIZE_DEVICE", "device", 1);
        Streams();
        Gate gate;
        SoftLaunchKernel(nullptr, "gate", Gate::Run, nullptr, gate.bound());
        aclrtContext other = nullptr;
        REQUIRE(aclrtCreateContext(&other, 0) == 0);
        REQUIRE(aclrtSynchronizeDeviceWithTimeout(20) == 507046);
        gate.Open();
        REQUIRE(aclrtSynchronizeDevice() == 0);
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, STR_06_OneCodeForAllCallsThatFindNoStream) {
  EXPECT_EXIT(
      {
        setenv("ACLTAPE_SOFT_NO_STREAM_CODE", "207005", 1);
        setenv("ACLTAPE_SOFT_STREAMS", "2", 1);
        aclrtSetDevice(0);
        aclrtStream stream = nullptr;
        REQUIRE(aclrtCreateStream(&stream) == 0);
        REQUIRE(aclrtCreateStream(&stream) == 207005);
        Done();
      },
      kDone, "^$");
  EXPECT_EXIT(
      {
        setenv("ACLTAPE_SOFT_NO_STREAM_CODE", "207008", 1);
        setenv("ACLTAPE_SOFT_STREAMS", "2", 1);
        aclrtSetDevice(0);
        aclrtStream stream = nullptr;
        REQUIRE(aclrtCreateStream(&stream) == 0);
        REQUIRE(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) == 207008);
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, EVT_17_ExEventsMayBeCounted) {
  EXPECT_EXIT(
      {
        UseFile("ex_events = counted\nevents = 2\n");
        aclrtSetDevice(0);
        aclrtEvent events[3] = {};
        for (aclrtEvent& event : events) {
          REQUIRE(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC) == 0);
        }
        REQUIRE(aclrtRecordEvent(events[0], nullptr) == 0);
        REQUIRE(aclrtRecordEvent(events[1], nullptr) == 0);
        REQUIRE(aclrtRecordEvent(events[2], nullptr) == 207007);
        REQUIRE(aclrtDestroyEvent(events[0]) == 0);
        REQUIRE(aclrtRecordEvent(events[2], nullptr) == 0);
        Done();
      },
      kDone, "^$");
}

// Memory on two devices, device 0 being current.
void OnTwoDevices(void** here, void** there) {
  aclrtSetDevice(1);
  aclrtMalloc(there, 8, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtSetDevice(0);
  aclrtMalloc(here, 8, ACL_MEM_MALLOC_HUGE_FIRST);
}

TEST_F(Profiles, CPY_12_CopiesWithoutPeerAccess) {
  EXPECT_EXIT(
      {
        UseFile("devices = 2\npeer_copy = task_error\n");
        void* here = nullptr;
        void* there = nullptr;
        OnTwoDevices(&here, &there);
        REQUIRE(aclrtMemcpyAsync(here, 8, there, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr) == 0);
        REQUIRE(aclrtSynchronizeStream(nullptr) == 507056);
        Done();
      },
      kDone, "^$");
  EXPECT_EXIT(
      {
        UseFile("devices = 2\npeer_copy = allow\n");
        void* here = nullptr;
        void* there = nullptr;
        OnTwoDevices(&here, &there);
        REQUIRE(aclrtMemcpy(here, 8, there, 8, ACL_MEMCPY_DEVICE_TO_DEVICE) == 0);
        Done();
      },
      kDone, "^$");
}

TEST_F(Profiles, CAP_61_GetInfoLikeTheSource) {
  EXPECT_EXIT(
      {
        setenv("ACLTAPE_SOFT_CAPTURE_INFO", "source", 1);
        aclrtSetDevice(0);
        aclrtStream streams[2] = {};
        for (aclrtStream& stream : streams) {
          aclrtCreateStream(&stream);
          aclmdlRICaptureBegin(stream, kRelaxed);
        }
        aclrtEvent event = nullptr;
        aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC);
        REQUIRE(aclrtRecordEvent(event, streams[0]) == 0);
        REQUIRE(aclrtStreamWaitEvent(streams[1], event) == 107032);
        aclmdlRICaptureStatus status = kNone;
        REQUIRE(aclmdlRICaptureGetInfo(streams[0], &status, nullptr) == 0);
        REQUIRE(status == kActive);
        aclmdlRI model = nullptr;
        REQUIRE(aclmdlRICaptureEnd(streams[0], &model) == 507903);
        Done();
      },
      kDone, "^$");
}

}  // namespace
}  // namespace acltape::device
