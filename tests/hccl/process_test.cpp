// Communication between ranks that are processes: how they meet, and what the others see when one
// of them ends or does not come. Each test makes its processes before it touches the device.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "tests/hccl/ranks.h"

namespace acltape::hccl {
namespace {

constexpr uint32_t kMost = 8;

// Memory that the test's processes share.
struct Board {
  HcclRootInfo root;
  std::atomic<int> root_is_there;
  std::atomic<uint32_t> rounds[kMost];  // how often the rank has come through
  char text[kMost][1024];               // the message that the rank got
  int code[kMost];
  std::atomic<uint32_t> step;
};

double Seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Me : Rank {
  Board* board = nullptr;
  bool good = true;

  void Check(bool condition, const char* what, int line) {
    if (condition) return;
    const char* message = aclGetRecentErrMsg();
    std::fprintf(stderr, "rank %u, line %d: %s: %s\n", rank, line, what, message ? message : "");
    good = false;
  }
  // Rank 0 makes the root information, the others wait for it.
  HcclResult Meet() {
    if (rank == 0) {
      const HcclResult made = HcclGetRootInfo(&board->root);
      if (made != HCCL_SUCCESS) return made;
      board->root_is_there = 1;
    }
    for (int i = 0; board->root_is_there == 0 && i < 100000; ++i) usleep(100);
    return HcclCommInitRootInfo(ranks, &board->root, rank, &comm);
  }
  HcclResult Sum(float* data, uint64_t count) const {
    return HcclAllReduce(data, data, count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream);
  }
  // Synchronises and writes down what it was told.
  int Wait() {
    board->code[rank] = aclrtSynchronizeStream(stream);
    if (board->code[rank] != 0) {
      std::snprintf(board->text[rank], sizeof board->text[rank], "%s", aclGetRecentErrMsg());
    }
    return board->code[rank];
  }
};
#define CHECK_ME(me, condition) me.Check((condition), #condition, __LINE__)

using Body = std::function<void(Me&)>;

Board* NewBoard() {
  return static_cast<Board*>(
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

pid_t StartRank(Board* board, uint32_t rank, uint32_t ranks, const Body& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  alarm(60);  // a rank that hangs fails the test
  ShowDevices("8");
  Me me;
  me.rank = rank;
  me.ranks = ranks;
  me.board = board;
  CHECK_ME(me, aclInit(nullptr) == 0);
  CHECK_ME(me, aclrtSetDevice(static_cast<int32_t>(rank)) == 0);
  CHECK_ME(me, aclrtCreateStream(&me.stream) == 0);
  body(me);
  std::fflush(nullptr);
  _exit(me.good ? 0 : 1);
}

// Runs the body in a process for each rank, and expects that all end well.
void RunRanks(uint32_t ranks, const Body& body) {
  Board* board = NewBoard();
  std::vector<pid_t> processes;
  for (uint32_t i = 0; i < ranks; ++i) processes.push_back(StartRank(board, i, ranks, body));
  for (uint32_t i = 0; i < ranks; ++i) {
    int status = 0;
    waitpid(processes[i], &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "rank " << i << " ended with status " << status;
  }
  munmap(board, sizeof *board);
}

TEST(HcclProcesses, HCL_02_RanksMeetByTheRootInformation) {
  for (const uint32_t ranks : {2u, 5u, 8u}) {
    RunRanks(ranks, [](Me& me) {
      CHECK_ME(me, me.Meet() == HCCL_SUCCESS);
      float* data = me.UploadAll(std::vector<float>(70000, static_cast<float>(me.rank + 1)));
      for (int i = 0; i < 3; ++i) CHECK_ME(me, me.Sum(data, 70000) == HCCL_SUCCESS);
      CHECK_ME(me, me.Wait() == 0);
      const auto n = static_cast<float>(me.ranks);
      CHECK_ME(me, me.Download(data, 70000) == std::vector<float>(70000, n * (n + 1) / 2 * n * n));
      char name[COMM_NAME_MAX_LENGTH] = {};
      CHECK_ME(me, HcclGetCommName(me.comm, name) == HCCL_SUCCESS);
      if (me.rank == 0) std::snprintf(me.board->text[0], sizeof name, "%s", name);
      CHECK_ME(me, HcclBarrier(me.comm, me.stream) == HCCL_SUCCESS && me.Wait() == 0);
      CHECK_ME(me, std::strcmp(me.board->text[0], name) == 0);
      CHECK_ME(me, HcclCommDestroy(me.comm) == HCCL_SUCCESS);
    });
  }
}

TEST(HcclProcesses, HCL_02_RanksThatDisagreeAboutTheirNumberDoNotMeet) {
  RunRanks(2, [](Me& me) {
    setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
    me.ranks = me.rank == 0 ? 2 : 3;
    const HcclResult met = me.Meet();
    CHECK_ME(me, met != HCCL_SUCCESS);
    if (met == HCCL_E_PARA) {
      CHECK_ME(me, std::strstr(aclGetRecentErrMsg(), "another one says") != nullptr);
    }
  });
}

TEST(HcclProcesses, HCL_02_ARankThatDoesNotJoinIsNamedAfterTheTimeToConnect) {
  RunRanks(2, [](Me& me) {
    setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
    if (me.rank == 1) return;
    CHECK_ME(me, me.Meet() == HCCL_E_TIMEOUT);
    CHECK_ME(me,
             std::strstr(aclGetRecentErrMsg(), "rank 1 of 2 did not join within 1 s") != nullptr);
  });
}

TEST(HcclProcesses, HCL_02_RanksMeetByATableOfRanks) {
  char path[] = "/tmp/acltape_rank_table_XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  std::ofstream(path) << R"({"status": "completed", "version": "1.0", "server_count": "1",
    "server_list": [{"server_id": "localhost", "device": [
      {"device_id": "0", "device_ip": "192.168.1.1", "rank_id": "0"},
      {"device_id": "1", "device_ip": "192.168.1.2", "rank_id": "1"}]}]})";
  RunRanks(2, [&](Me& me) {
    if (me.rank == 0) usleep(100000);  // the one that serves comes late
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    std::snprintf(config.hcclCommName, sizeof config.hcclCommName, "by_table");
    CHECK_ME(me, HcclCommInitClusterInfoConfig(path, me.rank, &config, &me.comm) == HCCL_SUCCESS);
    char name[COMM_NAME_MAX_LENGTH] = {};
    CHECK_ME(me, HcclGetCommName(me.comm, name) == 0 && std::strcmp(name, "by_table") == 0);
    float* data = me.UploadAll(std::vector<float>(9, 1));
    CHECK_ME(me, me.Sum(data, 9) == HCCL_SUCCESS && me.Wait() == 0);
    CHECK_ME(me, me.Download(data, 9) == std::vector<float>(9, 2));
    CHECK_ME(me,
             HcclCommInitClusterInfo("/nowhere", me.rank, &me.comm) == HCCL_E_OPEN_FILE_FAILURE);
  });
  close(file);
  unlink(path);
}

TEST(HcclProcesses, HCL_02_PartsOfACommunicatorMakeOneOfTheirOwn) {
  RunRanks(4, [](Me& me) {
    CHECK_ME(me, me.Meet() == HCCL_SUCCESS);
    // Two groups at once: {0, 2} and {1, 3}; made twice, as a program does that makes them anew.
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    uint32_t members[2] = {me.rank % 2, me.rank % 2 + 2};
    for (int i = 0; i < 2; ++i) {
      HcclComm sub = nullptr;
      CHECK_ME(me, HcclCreateSubCommConfig(&me.comm, 2, members, 17, me.rank / 2, &config, &sub) ==
                       HCCL_SUCCESS);
      float* data = me.UploadAll(std::vector<float>(5, static_cast<float>(me.rank)));
      CHECK_ME(me, HcclAllReduce(data, data, 5, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, sub,
                                 me.stream) == HCCL_SUCCESS);
      CHECK_ME(me, me.Wait() == 0);
      CHECK_ME(me, me.Download(data, 5) ==
                       std::vector<float>(5, static_cast<float>(members[0] + members[1])));
      CHECK_ME(me, HcclCommDestroy(sub) == HCCL_SUCCESS);
    }
  });
}

TEST(HcclProcesses, HCL_09_ARankThatNeverComesEndsTheOthersAfterTheTimeToExecute) {
  RunRanks(2, [](Me& me) {
    setenv("HCCL_EXEC_TIMEOUT", "1", 1);
    CHECK_ME(me, me.Meet() == HCCL_SUCCESS);
    float* data = me.UploadAll(std::vector<float>(9, 1));
    if (me.rank == 1) {
      for (int i = 0; me.board->step == 0 && i < 100000; ++i) usleep(100);
      return;
    }
    CHECK_ME(me, me.Sum(data, 9) == HCCL_SUCCESS);
    CHECK_ME(me, me.Wait() == ACL_ERROR_RT_FFTS_PLUS_TIMEOUT);
    const char* who =
        "rank 0 waits in collective 1, HcclAllReduce(count 9, fp32, sum), of communicator";
    for (const char* word :
         {"EI0002", who, "for rank 1", "has come to 0 collectives", "HCCL_EXEC_TIMEOUT"}) {
      CHECK_ME(me, std::strstr(me.board->text[0], word) != nullptr);
    }
    HcclResult error = HCCL_SUCCESS;
    CHECK_ME(me, HcclGetCommAsyncError(me.comm, &error) == 0 && error == HCCL_E_TIMEOUT);
    me.board->step = 1;
  });
}

// As sandboxes do that keep processes apart. For good.
bool ForbidReadingOfProcesses() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {static_cast<unsigned short>(std::size(code)), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    return false;
  }
  char from = 0, to = 0;
  const iovec local = {&to, 1}, remote = {&from, 1};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == -1 && errno == EPERM;
}

TEST(HcclProcesses, HCL_04_ARankThatMayNotReadTheOthersGetsLargeDataToo) {
  RunRanks(3, [](Me& me) {
    constexpr uint64_t kCount = 1500001;
    if (me.rank == 1) CHECK_ME(me, ForbidReadingOfProcesses());
    CHECK_ME(me, me.Meet() == HCCL_SUCCESS);
    float* data = me.UploadAll(std::vector<float>(kCount, static_cast<float>(me.rank + 1)));
    CHECK_ME(me, me.Sum(data, kCount) == HCCL_SUCCESS && me.Wait() == 0);
    CHECK_ME(me, me.Download(data, kCount) == std::vector<float>(kCount, 6));
  });
}

// The stream writes what is given right before and right after the collective.
TEST(HcclProcesses, HCL_04_WhatIsGivenStaysUntilAllHaveReadIt) {
  RunRanks(2, [](Me& me) {
    constexpr uint64_t kCount = 600000;
    CHECK_ME(me, me.Meet() == HCCL_SUCCESS);
    const auto own = static_cast<float>(me.rank);
    float* given = me.UploadAll(std::vector<float>(kCount, 0));
    float* taken = me.UploadAll(std::vector<float>(2 * kCount, 0));
    std::vector<float> next(kCount);
    for (int round = 1; round <= 20; ++round) {
      std::fill(next.begin(), next.end(), static_cast<float>(10 * round) + own);
      float* source = me.UploadAll(next);
      CHECK_ME(me, aclrtMemcpyAsync(given, kCount * 4, source, kCount * 4,
                                    ACL_MEMCPY_DEVICE_TO_DEVICE, me.stream) == 0);
      CHECK_ME(me, HcclAllGather(given, taken, kCount, HCCL_DATA_TYPE_FP32, me.comm, me.stream) ==
                       HCCL_SUCCESS);
      CHECK_ME(me, aclrtMemsetAsync(given, kCount * 4, 0xFF, kCount * 4, me.stream) == 0);
      if (me.rank == static_cast<uint32_t>(round) % 2) usleep(2000);  // each is late in turn
      CHECK_ME(me, me.Wait() == 0);
      const std::vector<float> seen = me.Download(taken, 2 * kCount);
      for (uint32_t rank = 0; rank < 2; ++rank) {
        const auto wanted = static_cast<float>(10 * round) + static_cast<float>(rank);
        const auto* first = seen.data() + rank * kCount;
        CHECK_ME(me, std::all_of(first, first + kCount, [&](float v) { return v == wanted; }));
      }
    }
  });
}

// Ranks add up until they are told otherwise; returns when that is an error.
void AddUpForEver(Me& me) {
  CHECK_ME(me, me.Meet() == HCCL_SUCCESS);
  std::mt19937 random(me.board->step);
  float* data = me.UploadAll(std::vector<float>(2000000, 0));
  while (true) {
    // The last one is read where it lies.
    const uint64_t most[] = {50, 200000, 2000000};
    const uint64_t count = 1 + random() % most[random() % 3];
    if (me.Sum(data, count) != HCCL_SUCCESS || me.Wait() != 0) return;
    me.board->rounds[me.rank].fetch_add(1);
  }
}

// True when the process's socket, by which ranks meet, is still there.
bool SocketIsLeft(pid_t process) {
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    if (line.find("@acltape-hccl-" + std::to_string(process) + "-") != std::string::npos)
      return true;
  }
  return false;
}

// One rank is killed at a random moment. Each of the others is told within 5 s, and by name.
void KillOne(uint32_t seed) {
  std::mt19937 random(seed);
  const uint32_t ranks = 2 + random() % 3;
  const uint32_t victim = random() % ranks;
  Board* board = NewBoard();
  board->step = seed;
  std::vector<pid_t> processes;
  for (uint32_t i = 0; i < ranks; ++i)
    processes.push_back(StartRank(board, i, ranks, AddUpForEver));
  const double limit = Seconds() + 30;
  while (board->rounds[0] == 0 && Seconds() < limit) usleep(100);
  usleep(random() % 3000);
  kill(processes[victim], SIGKILL);
  const double killed = Seconds();
  for (uint32_t i = 0; i < ranks; ++i) {
    int status = 0;
    if (i == victim) continue;  // it stays a zombie meanwhile, as under a launcher
    waitpid(processes[i], &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "seed " << seed << ", rank " << i;
    EXPECT_EQ(board->code[i], ACL_ERROR_RT_SUSPECT_REMOTE_ERROR) << "seed " << seed;
    const std::string text = board->text[i];
    EXPECT_NE(text.find("for rank " + std::to_string(victim) + " (process " +
                        std::to_string(processes[victim]) + ")"),
              std::string::npos)
        << "seed " << seed << ": " << text;
    EXPECT_NE(text.find("its process has ended"), std::string::npos) << text;
  }
  EXPECT_LT(Seconds() - killed, 5) << "seed " << seed;
  waitpid(processes[victim], nullptr, 0);
  EXPECT_FALSE(SocketIsLeft(processes[0])) << "seed " << seed;
  munmap(board, sizeof *board);
}

// ACLTAPE_HCCL_KILLS=200 kills so often.
TEST(HcclProcesses, HCL_09_ARankThatIsKilledEndsTheOthersAndLeavesNothing) {
  const char* wanted = std::getenv("ACLTAPE_HCCL_KILLS");
  const int runs = wanted != nullptr ? std::atoi(wanted) : 12;
  for (int i = 0; i < runs && !HasFailure(); ++i) KillOne(static_cast<uint32_t>(i) + 1);
}

}  // namespace
}  // namespace acltape::hccl
