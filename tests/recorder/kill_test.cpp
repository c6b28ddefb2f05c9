// kill -9 at seeded random moments: the trace holds every call that the process had completed.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "tests/recorder/record_fixture.h"

namespace acltape::test {
namespace {

// The pid of the program, which is the first child of this process.
pid_t FirstChild() {
  std::ifstream file("/proc/self/task/" + std::to_string(getpid()) + "/children");
  pid_t child = 0;
  file >> child;
  return child;
}

TEST_F(RecordTest, KilledAtRandomMomentsEveryCompletedCallIsThere) {
  constexpr int kRuns = 30;
  std::mt19937 random(20261121);
  for (int run = 0; run < kRuns; ++run) {
    const int delay_us = static_cast<int>(random() % 60000);
    auto options = Options({"counted", Path("count" + std::to_string(run))});
    options.output = Path("t" + std::to_string(run) + ".db");
    // Small rings too: then the collector is late and the producer waits when it dies.
    options.ring_bytes = run % 2 == 0 ? 64 << 10 : 16 << 20;
    std::thread killer([&] {
      while (CountIn(options.command.back()) == 0) usleep(200);
      usleep(static_cast<unsigned>(delay_us));
      kill(FirstChild(), SIGKILL);
    });
    const auto summary = collector::Record(options);
    killer.join();
    SCOPED_TRACE("run " + std::to_string(run) + ", killed after " + std::to_string(delay_us) +
                 " us");
    EXPECT_EQ(summary.signal, SIGKILL);
    EXPECT_EQ(summary.state, "partial");
    const storage::Reader reader(options.output);
    EXPECT_EQ(reader.State(), "partial");
    const int64_t count = CountIn(options.command.back());
    // The program counts after it has recorded: it may have counted one call less than it recorded.
    EXPECT_GE(reader.CallCount(true), count);
    EXPECT_LE(reader.CallCount(true), count + 1);
  }
}

// The collector is killed: what it had committed is there, and the state is not believed.
TEST_F(RecordTest, AKilledCollectorLeavesAPartialTrace) {
  const auto options = Options({"loop", "3000000"});
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    collector::Record(options);
    _exit(0);
  }
  int64_t calls = 0;
  for (int round = 0; round < 500 && calls == 0; ++round) {
    usleep(20000);
    try {
      calls = storage::Reader(Path()).CallCount(true);
    } catch (const Error&) {
      // Not there yet.
    }
  }
  kill(-child, SIGKILL);
  waitpid(child, nullptr, 0);
  const storage::Reader reader(Path());
  EXPECT_EQ(reader.State(), "partial");
  EXPECT_GE(reader.CallCount(true), calls);
  EXPECT_GT(calls, 0);
}

}  // namespace
}  // namespace acltape::test
