// Memory of the device is memory of the host: what the host cannot back fails (MEM-18). Settings
// are read once, so each test runs a child of its own.
#include "runtime/device/host_memory.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr size_t kMega = size_t{1} << 20;

aclError Take(size_t bytes, void** memory = nullptr) {
  void* ignored = nullptr;
  if (memory == nullptr) memory = &ignored;
  return aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
}

// Ends the child with 1, and says which line, when the code is another one.
void Expect(aclError expected, aclError code, int line) {
  if (code == expected) return;
  std::fprintf(stderr, "line %d: %d, not %d: %s\n", line, code, expected, aclGetRecentErrMsg());
  _exit(1);
}
#define EXPECT_IN_CHILD(expected, code) Expect(expected, code, __LINE__)

// A limit that no process of another test has.
std::string Limit(size_t megabytes) {
  return std::to_string(megabytes * kMega + static_cast<size_t>(getpid()) % 100000);
}

void Begin(const std::string& limit) {
  setenv("ACLTAPE_SOFT_HOST_MEMORY", limit.c_str(), 1);
  aclInit(nullptr);
  aclrtSetDevice(0);
}

// A child whose host has so much memory ends well, and says something that matches at its end.
void RunChild(const std::string& limit, void (*run)(), const std::string& says) {
  EXPECT_EXIT(
      {
        Begin(limit);
        run();
        std::exit(0);
      },
      testing::ExitedWithCode(0), says);
}

TEST(HostMemory, MEM_18_WhatTheHostCannotBackFailsAtOnceAndIsSaidAtTheEnd) {
  RunChild(
      Limit(256),
      [] {
        void* large = nullptr;
        EXPECT_IN_CHILD(0, Take(200 * kMega, &large));
        EXPECT_IN_CHILD(207001, Take(100 * kMega));
        EXPECT_IN_CHILD(0, Take(20 * kMega));
        EXPECT_IN_CHILD(0, aclrtFree(large));
        EXPECT_IN_CHILD(0, Take(100 * kMega));
        for (int i = 0; i < 6; ++i) EXPECT_IN_CHILD(0, Take(20 * kMega));
        EXPECT_IN_CHILD(207001, Take(20 * kMega));
      },
      "aclrtMalloc: no room for 100.0 MiB; the host has 56.[0-9] MiB more for it; seen 2 times\n"
      ".*ACLTAPE_SOFT_HOST_MEMORY=1024G");
}

TEST(HostMemory, MEM_18_TheDevicesSizeStaysAsItIs) {
  RunChild(
      Limit(256),
      [] {
        size_t free = 0;
        size_t total = 0;
        EXPECT_IN_CHILD(0, aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
        EXPECT_IN_CHILD(64, static_cast<aclError>(total >> 30));
        EXPECT_IN_CHILD(64, static_cast<aclError>(free >> 30));
      },
      "^$");
}

TEST(HostMemory, MEM_18_PinnedMemoryPhysicalMemoryAndPoolsCountToo) {
  RunChild(
      Limit(256),
      [] {
        void* pinned = nullptr;
        EXPECT_IN_CHILD(0, aclrtMallocHost(&pinned, 200 * kMega));
        aclrtPhysicalMemProp prop{};
        prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
        prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
        prop.memAttr = ACL_HBM_MEM_HUGE;
        prop.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
        aclrtDrvMemHandle physical = nullptr;
        EXPECT_IN_CHILD(207001, aclrtMallocPhysical(&physical, 100 * kMega, &prop, 0));
        aclrtStream stream = nullptr;
        EXPECT_IN_CHILD(0, aclrtCreateStream(&stream));
        aclrtMemPoolProps props{};
        props.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
        props.handleType = ACL_MEM_HANDLE_TYPE_NONE;
        props.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
        aclrtMemPool pool = nullptr;
        EXPECT_IN_CHILD(0, aclrtMemPoolCreate(&pool, &props));
        void* pooled = nullptr;
        EXPECT_IN_CHILD(207001, aclrtMemPoolMallocAsync(&pooled, 100 * kMega, pool, stream));
        EXPECT_IN_CHILD(0, aclrtFreeHost(pinned));
        // Each of the others gives back what it had.
        for (int i = 0; i < 3; ++i) {
          EXPECT_IN_CHILD(0, aclrtMallocPhysical(&physical, 200 * kMega, &prop, 0));
          EXPECT_IN_CHILD(207001, Take(100 * kMega));
          EXPECT_IN_CHILD(0, aclrtFreePhysical(physical));
          EXPECT_IN_CHILD(0, aclrtMemPoolMallocAsync(&pooled, 200 * kMega, pool, stream));
          EXPECT_IN_CHILD(0, aclrtMemPoolFreeAsync(pooled, stream));
          EXPECT_IN_CHILD(0, aclrtSynchronizeStream(stream));
          EXPECT_IN_CHILD(0, aclrtMemPoolTrimTo(pool, 0));
          void* plain = nullptr;
          EXPECT_IN_CHILD(0, Take(200 * kMega, &plain));
          EXPECT_IN_CHILD(207001, aclrtMallocHost(&pinned, 100 * kMega));
          EXPECT_IN_CHILD(0, aclrtFree(plain));
        }
      },
      // With a pool there, aclrtMalloc asks again when the pool has given back what it can.
      "aclrtMalloc: .*; seen 6 times\n.*aclrtMallocHost: .*; seen 3 times\n"
      ".*aclrtMallocPhysical: .*; seen 1 times\n.*aclrtMemPoolMallocAsync: .*; seen 2 times\n");
}

// A process that takes memory when it is asked for some.
class Rank {
 public:
  explicit Rank(const std::string& limit) {
    int asks[2];
    int answers[2];
    if (pipe(asks) != 0 || pipe(answers) != 0) std::abort();
    process_ = fork();
    if (process_ == 0) {
      Begin(limit);
      for (size_t bytes = 0; read(asks[0], &bytes, sizeof bytes) == sizeof bytes;) {
        const aclError code = Take(bytes);
        if (write(answers[1], &code, sizeof code) < 0) break;
      }
      _exit(0);
    }
    asks_ = asks[1];
    answers_ = answers[0];
    close(asks[0]);
    close(answers[1]);
  }
  ~Rank() { Kill(); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  aclError Takes(size_t bytes) const {
    aclError code = -1;
    if (write(asks_, &bytes, sizeof bytes) < 0) return -1;
    return read(answers_, &code, sizeof code) == sizeof code ? code : -1;
  }
  void Kill() {
    if (process_ == 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    close(asks_);
    close(answers_);
    process_ = 0;
  }

 private:
  pid_t process_ = 0;
  int asks_ = -1;
  int answers_ = -1;
};

TEST(HostMemory, MEM_18_RanksOfAHostShareItAndOneThatIsKilledGivesItBack) {
  const std::string limit = Limit(512);
  Rank first(limit);
  Rank second(limit);
  EXPECT_EQ(first.Takes(300 * kMega), 0);
  EXPECT_EQ(second.Takes(300 * kMega), 207001);
  EXPECT_EQ(second.Takes(150 * kMega), 0);
  first.Kill();
  EXPECT_EQ(second.Takes(300 * kMega), 0);
}

TEST(HostMemory, MEM_18_WithoutTheSettingItIsWhatTheHostHas) {
  const auto available = AvailableHostMemory();
  ASSERT_TRUE(available);
  setenv("ACLTAPE_SOFT_MEMORY", "32768G", 1);
  Rank rank("0");
  // Half of it twice is more than there is when the first half is not used.
  EXPECT_EQ(rank.Takes(*available / 2), 0);
  EXPECT_EQ(rank.Takes(*available * 2), 207001);
  EXPECT_EQ(rank.Takes(*available / 4 * 3), 207001);
  Rank regardless("32768G");
  EXPECT_EQ(regardless.Takes(*available * 2), 0);
  unsetenv("ACLTAPE_SOFT_MEMORY");
}

// A host of files.
class FilesOfHost : public testing::Test {
 protected:
  void SetUp() override { root_ = testing::TempDir() + "host_" + std::to_string(getpid()); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void WriteMemory(size_t total, size_t available, size_t swap) const {
    const auto line = [](const char* name, size_t megabytes) {
      return std::string(name) + ":   " + std::to_string(megabytes << 10) + " kB\n";
    };
    Write("/proc/meminfo", line("MemTotal", total) + line("MemFree", 1) +
                               line("MemAvailable", available) + line("SwapFree", swap));
  }
  // Megabytes that are available.
  size_t Available() const { return AvailableHostMemory(root_).value_or(0) / kMega; }

  std::string root_;
};

TEST_F(FilesOfHost, MEM_18_AReserveIsKeptFromWhatIsAvailable) {
  EXPECT_FALSE(AvailableHostMemory(root_));
  WriteMemory(4096, 2000, 0);
  EXPECT_EQ(Available(), 2000u - 256);
  WriteMemory(64000, 20000, 1000);
  EXPECT_EQ(Available(), 21000u - 2000);
  WriteMemory(4096, 100, 0);
  EXPECT_EQ(Available(), 0u);
}

TEST_F(FilesOfHost, MEM_18_TheLeastOfAllControlGroupsCounts) {
  WriteMemory(4096, 4000, 0);
  Write("/proc/self/cgroup", "0::/user.slice/job\n");
  Write("/sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  Write("/sys/fs/cgroup/user.slice/job/memory.current", "1000\n");
  EXPECT_EQ(Available(), 4000u - 256);
  Write("/sys/fs/cgroup/user.slice/memory.max", std::to_string(3000 * kMega) + "\n");
  Write("/sys/fs/cgroup/user.slice/memory.current", std::to_string(1000 * kMega) + "\n");
  EXPECT_EQ(Available(), 2000u - 256);
  // Pages of files can go.
  Write("/sys/fs/cgroup/user.slice/memory.stat",
        "active_file 5\ninactive_file " + std::to_string(100 * kMega) + "\n");
  EXPECT_EQ(Available(), 2100u - 256);
}

TEST_F(FilesOfHost, MEM_18_AContainerSeesItsControlGroupAtTheMount) {
  WriteMemory(4096, 4000, 0);
  Write("/proc/self/cgroup", "4:memory:/docker/7e81\n0::/\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(1000 * kMega) + "\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(400 * kMega) + "\n");
  EXPECT_EQ(Available(), 600u - 256);
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Available(), 4000u - 256);
}

TEST(HostProcesses, MEM_18_AProcessThatHasEndedIsNone) {
  const auto self = FindHostProcess(static_cast<uint64_t>(getpid()));
  ASSERT_TRUE(self);
  EXPECT_GT(self->started, 0u);
  EXPECT_GT(self->resident, 0u);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended{};
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_FALSE(FindHostProcess(static_cast<uint64_t>(child)));
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(FindHostProcess(static_cast<uint64_t>(child)));
}

}  // namespace
}  // namespace acltape::device
