// Memory and notifies between processes (section 32 of the rules). Each test makes two processes
// before it touches the device.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr size_t kUnit = size_t{2} << 20;

// Memory by which the two processes talk to each other.
struct Shared {
  std::atomic<int> step;
  std::atomic<int> child_pid;
  char key[65];
  uint64_t handle;
};

// One of the two. A failed check is printed, and makes the process end with 1.
class Side {
 public:
  Side(Shared* shared, const char* name) : shared_(*shared), name_(name) {}
  Shared* operator->() { return &shared_; }
  void Reach(int step) { shared_.step = step; }
  // False when the other one does not get there.
  bool Until(int step) {
    for (int i = 0; shared_.step < step && i < 200000; ++i) usleep(100);
    return shared_.step >= step;
  }
  void Check(bool good, const char* what, int line) {
    if (good) return;
    const char* message = aclGetRecentErrMsg();
    std::fprintf(stderr, "%s, line %d: %s: %s\n", name_, line, what, message ? message : "");
    good_ = false;
  }
  bool good() const { return good_; }

 private:
  Shared& shared_;
  const char* name_;
  bool good_ = true;
};
#define CHECK_SIDE(side, condition) side.Check((condition), #condition, __LINE__)

using Body = std::function<void(Side&)>;

// Runs the two bodies, each with the device set. Ends the calling process.
[[noreturn]] void RunBoth(const Body& parent, const Body& child, bool child_is_killed = false) {
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t pid = fork();  // before any use of the device
  if (pid == 0) shared->child_pid = getpid();
  Side side(shared, pid == 0 ? "child" : "parent");
  CHECK_SIDE(side, aclrtSetDevice(0) == 0);
  (pid == 0 ? child : parent)(side);
  if (pid == 0) std::_Exit(side.good() ? 0 : 1);
  int status = 1;
  waitpid(pid, &status, 0);
  const bool ended = child_is_killed ? WIFSIGNALED(status) : status == 0;
  std::_Exit(side.good() && ended ? 0 : 1);
}

class Ipc : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};
#define EXPECT_BOTH_GOOD(...) EXPECT_EXIT(RunBoth(__VA_ARGS__), testing::ExitedWithCode(0), "")

char* Device(size_t bytes) {
  void* memory = nullptr;
  aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  return static_cast<char*>(memory);
}

char At(const void* address) {
  char value = 0;
  aclrtMemcpy(&value, 1, address, 1, ACL_MEMCPY_DEVICE_TO_HOST);
  return value;
}

aclError Fill(void* address, int value, size_t bytes) {
  return aclrtMemset(address, bytes, value, bytes);
}

TEST_F(Ipc, IPC_01_TwoProcessesShareTheBytesOfABlock) {
  for (const size_t bytes : {size_t{16}, size_t{5000}, size_t{70} << 20}) {
    SCOPED_TRACE(bytes);
    EXPECT_BOTH_GOOD(
        [bytes](Side& side) {
          char* block = Device(bytes);
          char* neighbour = Device(16);
          CHECK_SIDE(side, Fill(block, 7, bytes) == 0 && Fill(neighbour, 5, 16) == 0);
          CHECK_SIDE(side, aclrtIpcMemGetExportKey(block, bytes, side->key, 65, 1) == 0);
          CHECK_SIDE(side, At(block) == 7 && At(block + bytes - 1) == 7);
          side.Reach(1);
          CHECK_SIDE(side, side.Until(2));
          CHECK_SIDE(side, At(block) == 9 && At(block + bytes - 1) == 7 && At(neighbour) == 5);
          CHECK_SIDE(side, Fill(block + bytes - 1, 11, 1) == 0);
          side.Reach(3);
          CHECK_SIDE(side, side.Until(4));
          CHECK_SIDE(side, aclrtIpcMemClose(side->key) == 0 && aclrtFree(block) == 0);
        },
        [bytes](Side& side) {
          CHECK_SIDE(side, side.Until(1));
          void* imported = nullptr;
          CHECK_SIDE(side, aclrtIpcMemImportByKey(&imported, side->key, 1) == 0);
          auto* block = static_cast<char*>(imported);
          CHECK_SIDE(side, At(block) == 7 && At(block + bytes - 1) == 7);
          void* base = nullptr;
          size_t size = 0;
          CHECK_SIDE(side, aclrtMemGetAddressRange(block, &base, &size) == 0);
          CHECK_SIDE(side, base == block && size == bytes);
          aclrtStream stream = nullptr;
          CHECK_SIDE(side, aclrtCreateStream(&stream) == 0);
          CHECK_SIDE(side, aclrtMemsetAsync(block, 1, 9, 1, stream) == 0);
          CHECK_SIDE(side, aclrtSynchronizeStream(stream) == 0);
          side.Reach(2);
          CHECK_SIDE(side, side.Until(3));
          CHECK_SIDE(side, At(block + bytes - 1) == 11);
          CHECK_SIDE(side, aclrtIpcMemClose(side->key) == 0);
          CHECK_SIDE(side, aclrtMemset(block, 1, 0, 1) == 107000);  // no longer its memory
          side.Reach(4);
        });
  }
}

TEST_F(Ipc, IPC_01_APartOfABlockIsSharedAtItsOwnAddress) {
  EXPECT_BOTH_GOOD(
      [](Side& side) {
        char* block = Device(3 * 4096);
        CHECK_SIDE(side, Fill(block, 1, 3 * 4096) == 0 && Fill(block + 5000, 2, 100) == 0);
        CHECK_SIDE(side, aclrtIpcMemGetExportKey(block + 5000, 100, side->key, 65, 1) == 0);
        side.Reach(1);
        CHECK_SIDE(side, side.Until(2));
      },
      [](Side& side) {
        CHECK_SIDE(side, side.Until(1));
        void* imported = nullptr;
        CHECK_SIDE(side, aclrtIpcMemImportByKey(&imported, side->key, 0) == 0);
        auto* part = static_cast<char*>(imported);
        CHECK_SIDE(side, At(part) == 2 && At(part + 99) == 2);
        CHECK_SIDE(side, aclrtMemset(part, 101, 0, 101) == 107000);  // past its end
        side.Reach(2);
      });
}

TEST_F(Ipc, IPC_01_WhatRunsDuringTheExportIsNotLost) {
  EXPECT_BOTH_GOOD(
      [](Side& side) {
        constexpr size_t kBytes = size_t{8} << 20;
        char* block = Device(kBytes);
        aclrtStream stream = nullptr;
        CHECK_SIDE(side, aclrtCreateStream(&stream) == 0 && Fill(block, 0, kBytes) == 0);
        for (int i = 0; i < 200; ++i) {
          CHECK_SIDE(side, aclrtMemsetAsync(block + i * 4096, 4096, 3, 4096, stream) == 0);
        }
        CHECK_SIDE(side, aclrtIpcMemGetExportKey(block, kBytes, side->key, 65, 1) == 0);
        CHECK_SIDE(side, aclrtSynchronizeStream(stream) == 0);
        side.Reach(1);
        CHECK_SIDE(side, side.Until(2));
      },
      [](Side& side) {
        CHECK_SIDE(side, side.Until(1));
        void* imported = nullptr;
        CHECK_SIDE(side, aclrtIpcMemImportByKey(&imported, side->key, 0) == 0);
        for (int i = 0; i < 200; ++i) {
          CHECK_SIDE(side, At(static_cast<char*>(imported) + i * 4096) == 3);
        }
        side.Reach(2);
      });
}

TEST_F(Ipc, IPC_01_AStreamThatWaitsDoesNotHoldTheExportUp) {
  aclInit(nullptr);
  ASSERT_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  aclrtNotify notify = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  ASSERT_OK(aclrtWaitAndResetNotify(notify, stream, 0));
  usleep(20000);  // the worker waits by now
  char* block = Device(4096);
  char key[65];
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_OK(aclrtIpcMemGetExportKey(block, 4096, key, 65, 0));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  ASSERT_OK(aclrtRecordNotify(notify, nullptr));
  EXPECT_OK(aclrtSynchronizeStream(stream));
  ASSERT_OK(aclrtFree(block));
  aclrtResetDeviceForce(0);
}

TEST_F(Ipc, IPC_02_OnlyProcessesOfTheListMayImport) {
  EXPECT_BOTH_GOOD(
      [](Side& side) {
        char* block = Device(64);
        CHECK_SIDE(side, aclrtIpcMemGetExportKey(block, 64, side->key, 65, 0) == 0);
        int32_t other = getpid();
        CHECK_SIDE(side, aclrtIpcMemSetImportPid(side->key, &other, 1) == 0);
        side.Reach(1);
        CHECK_SIDE(side, side.Until(2));
        int32_t child = side->child_pid;
        CHECK_SIDE(side, aclrtIpcMemSetImportPid(side->key, &child, 1) == 0);
        side.Reach(3);
        CHECK_SIDE(side, side.Until(4));
      },
      [](Side& side) {
        CHECK_SIDE(side, side.Until(1));
        void* imported = nullptr;
        CHECK_SIDE(side, aclrtIpcMemImportByKey(&imported, side->key, 0) == 507899);
        int32_t own = 0;
        CHECK_SIDE(side, aclrtDeviceGetBareTgid(&own) == 0 && own == side->child_pid);
        side.Reach(2);
        CHECK_SIDE(side, side.Until(3));
        CHECK_SIDE(side, aclrtIpcMemImportByKey(&imported, side->key, 0) == 0);
        side.Reach(4);
      });
}

TEST_F(Ipc, IPC_03_AfterTheEndNobodyImports_AndImportersKeepTheirBytes) {
  EXPECT_BOTH_GOOD(
      [](Side& side) {
        char* block = Device(100000);
        CHECK_SIDE(side, Fill(block, 4, 100000) == 0);
        CHECK_SIDE(side, aclrtIpcMemGetExportKey(block, 100000, side->key, 65, 1) == 0);
        side.Reach(1);
        CHECK_SIDE(side, side.Until(2));
        CHECK_SIDE(side, aclrtFree(block) == 0);
        // The addresses are used again, and the other process does not see that.
        for (int i = 0; i < 2000; ++i) {
          char* other = Device(100000);
          CHECK_SIDE(side, Fill(other, 8, 100000) == 0);
          CHECK_SIDE(side, aclrtFree(other) == 0);
        }
        side.Reach(3);
        CHECK_SIDE(side, side.Until(4));
      },
      [](Side& side) {
        CHECK_SIDE(side, side.Until(1));
        void* imported = nullptr;
        void* again = nullptr;
        CHECK_SIDE(side, aclrtIpcMemImportByKey(&imported, side->key, 0) == 0);
        CHECK_SIDE(side, aclrtIpcMemImportByKey(&again, side->key, 0) == 0 && again == imported);
        side.Reach(2);
        CHECK_SIDE(side, side.Until(3));
        CHECK_SIDE(side, At(imported) == 4);
        CHECK_SIDE(side, aclrtIpcMemClose(side->key) == 0);
        CHECK_SIDE(side, At(imported) == 4);  // imported twice, closed once
        CHECK_SIDE(side, aclrtIpcMemClose(side->key) == 0);
        CHECK_SIDE(side, aclrtIpcMemClose(side->key) == 107000);
        CHECK_SIDE(side, aclrtIpcMemImportByKey(&imported, side->key, 0) == 507899);
        side.Reach(4);
      });
}

TEST_F(Ipc, IPC_04_AKilledProcessLeavesNothingBehind) {
  EXPECT_BOTH_GOOD(
      [](Side& side) {
        CHECK_SIDE(side, side.Until(1));
        void* imported = nullptr;
        CHECK_SIDE(side, aclrtIpcMemImportByKey(&imported, side->key, 0) == 0);
        CHECK_SIDE(side, kill(side->child_pid, SIGKILL) == 0);
        const std::string process = "/proc/" + std::to_string(side->child_pid) + "/fd";
        siginfo_t info;
        CHECK_SIDE(side, waitid(P_PID, static_cast<id_t>(side->child_pid.load()), &info,
                                WEXITED | WNOWAIT) == 0);
        CHECK_SIDE(side, At(imported) == 6 && Fill(imported, 1, 64) == 0);
        CHECK_SIDE(side, aclrtIpcMemClose(side->key) == 0);
        CHECK_SIDE(side, aclrtIpcMemImportByKey(&imported, side->key, 0) == 507899);
      },
      [](Side& side) {
        char* block = Device(64);
        CHECK_SIDE(side, Fill(block, 6, 64) == 0);
        CHECK_SIDE(side, aclrtIpcMemGetExportKey(block, 64, side->key, 65, 1) == 0);
        side.Reach(1);
        while (true) pause();
      },
      true);
}

aclrtDrvMemHandle Physical() {
  aclrtPhysicalMemProp prop{};
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  aclrtDrvMemHandle handle = nullptr;
  aclrtMallocPhysical(&handle, kUnit, &prop, 0);
  return handle;
}

char* Map(aclrtDrvMemHandle handle) {
  void* address = nullptr;
  if (aclrtReserveMemAddress(&address, kUnit, 0, nullptr, 0) != 0) return nullptr;
  return aclrtMapMem(address, kUnit, 0, handle, 0) == 0 ? static_cast<char*>(address) : nullptr;
}

TEST_F(Ipc, IPC_05_PhysicalMemoryIsSharedByAHandle) {
  EXPECT_BOTH_GOOD(
      [](Side& side) {
        aclrtDrvMemHandle handle = Physical();
        char* mapped = Map(handle);
        CHECK_SIDE(side, mapped != nullptr && Fill(mapped, 3, kUnit) == 0);
        CHECK_SIDE(side, aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 0,
                                                         &side->handle) == 0);
        side.Reach(1);
        CHECK_SIDE(side, side.Until(2));
        int32_t child = side->child_pid;
        CHECK_SIDE(side, aclrtMemSetPidToShareableHandle(side->handle, &child, 1) == 0);
        side.Reach(3);
        CHECK_SIDE(side, side.Until(4));
        CHECK_SIDE(side, At(mapped + 100) == 5);
      },
      [](Side& side) {
        CHECK_SIDE(side, side.Until(1));
        aclrtDrvMemHandle handle = nullptr;
        CHECK_SIDE(side, aclrtMemImportFromShareableHandle(side->handle, 0, &handle) == 507899);
        side.Reach(2);
        CHECK_SIDE(side, side.Until(3));
        CHECK_SIDE(side, aclrtMemImportFromShareableHandleV2(
                             &side->handle, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 0, &handle) == 0);
        char* mapped = Map(handle);
        CHECK_SIDE(side, mapped != nullptr && At(mapped + kUnit - 1) == 3);
        CHECK_SIDE(side, Fill(mapped + 100, 5, 1) == 0);
        uint64_t shareable = 0;
        CHECK_SIDE(side, aclrtMemExportToShareableHandleV2(
                             handle, 1, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &shareable) == 107000);
        CHECK_SIDE(side, aclrtFreePhysical(handle) == 0);
        side.Reach(4);
      });
}

TEST_F(Ipc, IPC_06_ANotifyOrdersTwoProcesses) {
  EXPECT_BOTH_GOOD(
      [](Side& side) {
        aclrtNotify notify = nullptr;
        aclrtStream stream = nullptr;
        CHECK_SIDE(side, aclrtCreateNotify(&notify, 0) == 0 && aclrtCreateStream(&stream) == 0);
        CHECK_SIDE(side, aclrtWaitAndResetNotify(notify, stream, 0) == 0);
        usleep(20000);  // it waits already, and is moved then
        CHECK_SIDE(side, aclrtNotifyGetExportKey(notify, side->key, 65, 0) == 0);
        int32_t child = side->child_pid;
        CHECK_SIDE(side, aclrtNotifySetImportPid(notify, &child, 1) == 0);
        CHECK_SIDE(side, aclrtSynchronizeStreamWithTimeout(stream, 50) == 507046);
        side.Reach(1);
        CHECK_SIDE(side, aclrtSynchronizeStream(stream) == 0 && side.Until(2));
        CHECK_SIDE(side, aclrtRecordNotify(notify, stream) == 0);
        CHECK_SIDE(side, aclrtSynchronizeStream(stream) == 0);
        CHECK_SIDE(side, aclrtDestroyNotify(notify) == 0);  // the other one keeps its own
        side.Reach(3);
        CHECK_SIDE(side, side.Until(4));
      },
      [](Side& side) {
        CHECK_SIDE(side, side.Until(1));
        aclrtNotify notify = nullptr;
        uint32_t number = 0;
        CHECK_SIDE(side, aclrtNotifyImportByKey(&notify, side->key, 2) == 0);
        CHECK_SIDE(side, aclrtGetNotifyId(notify, &number) == 0);
        CHECK_SIDE(side, aclrtRecordNotify(notify, nullptr) == 0);
        side.Reach(2);
        CHECK_SIDE(side, side.Until(3));
        CHECK_SIDE(side, aclrtWaitAndResetNotify(notify, nullptr, 10) == 0);
        CHECK_SIDE(side, aclrtSynchronizeStream(nullptr) == 0);
        CHECK_SIDE(side, aclrtDestroyNotify(notify) == 0);
        CHECK_SIDE(side, aclrtNotifyImportByKey(&notify, side->key, 2) == 507899);
        side.Reach(4);
      });
}

class IpcArguments : public SoftDevice {};

TEST_F(IpcArguments, IPC_07_Refusals) {
  char key[65];
  char* block = Device(64);
  void* address = nullptr;
  int32_t pid = getpid();
  EXPECT_CODE(107000, aclrtIpcMemGetExportKey(block, 0, key, 65, 0));
  EXPECT_CODE(107000, aclrtIpcMemGetExportKey(block, 65, key, 65, 0));
  EXPECT_CODE(107000, aclrtIpcMemGetExportKey(block, 64, key, 64, 0));
  EXPECT_CODE(107000, aclrtIpcMemGetExportKey(block, 64, key, 65, 2));
  EXPECT_CODE(107000, aclrtIpcMemGetExportKey(key, 64, key, 65, 0));  // host memory
  ASSERT_OK(aclrtIpcMemGetExportKey(block, 64, key, 65, 0));
  EXPECT_CODE(107000, aclrtIpcMemImportByKey(&address, key, 2));
  EXPECT_CODE(107000, aclrtIpcMemImportByKey(&address, "no key", 0));
  EXPECT_CODE(107000, aclrtIpcMemSetImportPid(key, &pid, 0));
  EXPECT_CODE(107000, aclrtIpcMemSetImportPid("no key", &pid, 1));
  EXPECT_CODE(107000, aclrtIpcMemClose("no key"));
  ASSERT_OK(aclrtIpcMemClose(key));
  EXPECT_CODE(107000, aclrtIpcMemClose(key));
  EXPECT_CODE(107000, aclrtIpcMemSetImportPid(key, &pid, 1));
  ASSERT_OK(aclrtFree(block));

  aclrtNotify notify = nullptr;
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  EXPECT_CODE(107000, aclrtNotifySetImportPid(notify, &pid, 1));  // it has no key
  EXPECT_CODE(107000, aclrtNotifyGetExportKey(notify, key, 64, 0));
  EXPECT_CODE(107000, aclrtNotifyGetExportKey(notify, key, 65, 1));
  EXPECT_CODE(107000, aclrtNotifyImportByKey(&notify, "no key", 0));
  ASSERT_OK(aclrtNotifyGetExportKey(notify, key, 65, 0));
  EXPECT_CODE(107000, aclrtNotifyImportByKey(&notify, key, 1));

  aclrtDrvMemHandle handle = Physical();
  aclrtDrvMemHandle imported = nullptr;
  uint64_t shareable = 0;
  EXPECT_CODE(107000,
              aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_POSIX, 0, &shareable));
  EXPECT_CODE(107000,
              aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 2, &shareable));
  EXPECT_CODE(207000, aclrtMemExportToShareableHandleV2(handle, 0, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
                                                        &shareable));
  ASSERT_OK(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 0, &shareable));
  // One handle has one shareable handle, and that is for other processes.
  EXPECT_CODE(107000,
              aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 0, &shareable));
  EXPECT_CODE(107000, aclrtMemImportFromShareableHandle(shareable, 0, &imported));
  EXPECT_CODE(107001, aclrtMemImportFromShareableHandle(shareable, 7, &imported));
  EXPECT_CODE(107000, aclrtMemSetPidToShareableHandle(shareable, &pid, 0));
  EXPECT_CODE(107000, aclrtMemSetPidToShareableHandle(shareable + 1, &pid, 1));
  EXPECT_OK(aclrtMemSetPidToShareableHandle(shareable, &pid, 1));
  EXPECT_OK(aclrtFreePhysical(handle));
}

TEST_F(IpcArguments, MEM_14_PhysicalMemoryTellsItsHandlePropertiesAndAccess) {
  size_t before = 0;
  size_t during = 0;
  size_t total = 0;
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
  aclrtDrvMemHandle handle = Physical();
  char* mapped = Map(handle);
  aclrtPhysicalMemProp prop{};
  ASSERT_OK(aclrtMemGetAllocationPropertiesFromHandle(handle, &prop));
  EXPECT_EQ(prop.memAttr, ACL_HBM_MEM_HUGE);
  EXPECT_EQ(prop.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  aclrtMemLocation location{0, ACL_MEM_LOCATION_TYPE_DEVICE};
  uint64_t flag = 0;
  ASSERT_OK(aclrtMemGetAccess(mapped, &location, &flag));
  EXPECT_EQ(flag, ACL_RT_MEM_ACCESS_FLAGS_READWRITE);
  location.type = ACL_MEM_LOCATION_TYPE_HOST;
  ASSERT_OK(aclrtMemGetAccess(mapped, &location, &flag));
  EXPECT_EQ(flag, ACL_RT_MEM_ACCESS_FLAGS_NONE);
  EXPECT_CODE(107000, aclrtMemGetAccess(mapped + 4096, &location, &flag));

  aclrtDrvMemHandle retained = nullptr;
  ASSERT_OK(aclrtMemRetainAllocationHandle(mapped, &retained));
  EXPECT_EQ(retained, handle);
  EXPECT_CODE(107000, aclrtMemRetainAllocationHandle(mapped + 4096, &retained));
  // As many frees as there were holds. Then the mapping alone keeps the memory.
  ASSERT_OK(aclrtFreePhysical(handle));
  ASSERT_OK(aclrtFreePhysical(handle));
  EXPECT_CODE(107017, aclrtFreePhysical(handle));
  ASSERT_OK(Fill(mapped, 1, kUnit));
  ASSERT_OK(aclrtMemRetainAllocationHandle(mapped, &retained));
  ASSERT_OK(aclrtFreePhysical(retained));
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &during, &total));
  EXPECT_EQ(before - during, kUnit);
  ASSERT_OK(aclrtUnmapMem(mapped));
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &during, &total));
  EXPECT_EQ(before, during);
  ASSERT_OK(aclrtReleaseMemAddress(mapped));
}

}  // namespace
}  // namespace acltape::device
