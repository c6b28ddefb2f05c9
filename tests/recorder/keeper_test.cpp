// The process that outlives the collector and the program: what it is to others, what it does when
// its collector is killed, and what is told where it cannot be.
#include "recorder/collector/keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "recorder/collector/fold.h"
#include "recorder/collector/spool.h"
#include "recorder/collector/spool_contents.h"
#include "storage/process_identity.h"
#include "tests/recorder/producer.h"
#include "tests/recorder/record_fixture.h"

namespace acltape::test {
namespace {

bool WaitUntil(const std::function<bool()>& is_so) {
  for (int round = 0; round < 30000; ++round) {
    if (is_so()) return true;
    usleep(1000);
  }
  return false;
}

bool Runs(pid_t pid) { return storage::ProcessStartTime(pid) != 0; }

std::string ContentOf(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

class KeeperTest : public RecordTest {
 protected:
  void TearDown() override {
    for (const pid_t pid : {recorder_, program_, keeper_}) {
      if (pid > 0) kill(pid, SIGKILL);
    }
    if (recorder_ > 0) waitpid(recorder_, nullptr, 0);
    RecordTest::TearDown();
  }

  // Records a program that counts its calls, in another process.
  void Begin(const std::string& mode = "counted") {
    auto options = Options({mode, Path("count")});
    options.ring_bytes = 64 << 10;
    options.outlive_ms = 100;
    recorder_ = fork();
    if (recorder_ == 0) {
      setpgid(0, 0);
      collector::Record(options);
      _exit(0);
    }
    ASSERT_TRUE(WaitUntil([&] { return CountIn(Path("count")) > 0; }));
    const std::string children =
        "/proc/" + std::to_string(recorder_) + "/task/" + std::to_string(recorder_) + "/children";
    std::ifstream(children) >> program_ >> keeper_;
    ASSERT_GT(keeper_, 0) << "the recorder has no second child";
  }
  void KillRecorder() {
    kill(recorder_, SIGKILL);
    waitpid(recorder_, nullptr, 0);
    recorder_ = 0;
  }
  void KillProgram() {
    kill(program_, SIGKILL);
    ASSERT_TRUE(WaitUntil([&] { return !Runs(program_); }));
  }
  // Returns the ledger of the trace once the rest is folded into it.
  std::vector<storage::LedgerEntry> FoldedLedger() {
    EXPECT_TRUE(collector::FoldSpool(Path(), nullptr).done);
    const storage::Reader reader(Path());
    calls_ = reader.CallCount(true);
    return reader.Ledger();
  }
  std::string Keeper(const std::string& what) const {
    return "/proc/" + std::to_string(keeper_) + "/" + what;
  }

  pid_t recorder_ = 0;
  pid_t program_ = 0;
  pid_t keeper_ = 0;
  int64_t calls_ = 0;
};

TEST_F(KeeperTest, HoldsNoTerminalNoPipeAndNoFolder) {
  Begin();
  for (const int stream : {0, 1, 2}) {
    EXPECT_EQ(std::filesystem::read_symlink(Keeper("fd/" + std::to_string(stream))), "/dev/null");
  }
  std::set<std::string> held;
  for (const auto& entry : std::filesystem::directory_iterator(Keeper("fd"))) {
    const std::string name = std::filesystem::read_symlink(entry.path());
    if (name != "/dev/null") held.insert(name.substr(0, name.find('[')));
  }
  EXPECT_EQ(held, std::set<std::string>(
                      {"/memfd:acltape (deleted)", Path(), Path() + ".spool", "socket:"}));
  EXPECT_EQ(std::filesystem::read_symlink(Keeper("cwd")), "/");
  EXPECT_EQ(getsid(keeper_), keeper_) << "a session of its own";
  EXPECT_EQ(ContentOf(Keeper("comm")), "acltape keeper\n");
  EXPECT_STREQ(ContentOf(Keeper("cmdline")).c_str(), "acltape keeper");
}

TEST_F(KeeperTest, EndsWithARecordingAndIsReaped) {
  const auto summary = Record({"loop", "1000"});
  EXPECT_EQ(summary.state, "complete");
  EXPECT_EQ(Find(summary.ledger, "unprotected"), nullptr);
  errno = 0;
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(KeeperTest, GoesOnRecordingWhileTheProgramOfAKilledRecorderRuns) {
  Begin();
  KillRecorder();
  const int64_t at_kill = CountIn(Path("count"));
  ASSERT_TRUE(WaitUntil([&] { return CountIn(Path("count")) > at_kill + 100000; }))
      << "the program stands still";
  const collector::Folded folded = collector::FoldSpool(Path(), nullptr);
  EXPECT_FALSE(folded.done);
  EXPECT_EQ(folded.goes_on, static_cast<uint32_t>(program_));
  auto again = Options({"exit", "0"});
  again.overwrite = true;
  EXPECT_EQ(ErrorOf([&] { collector::Record(again); }).second,
            "'" + Path() +
                "' is being recorded by another process; wait for it, or name another "
                "file");
  KillProgram();
  const auto ledger = FoldedLedger();
  EXPECT_GE(calls_, CountIn(Path("count")));
  ASSERT_NE(Find(ledger, "recorder_killed"), nullptr);
  EXPECT_EQ(Find(ledger, "recorder_killed")->severity, storage::Severity::kNotice);
  EXPECT_EQ(Find(ledger, "calls_missing"), nullptr);
  EXPECT_TRUE(WaitUntil([&] { return !Runs(keeper_); }));
}

TEST_F(KeeperTest, ThatIsToldToEndLeavesTheProgramAlone) {
  Begin();
  kill(keeper_, SIGTERM);  // while its recorder lives there is nothing to end
  KillRecorder();
  usleep(50000);
  ASSERT_TRUE(Runs(keeper_));
  kill(keeper_, SIGTERM);
  ASSERT_TRUE(WaitUntil([&] { return !Runs(keeper_); }));
  EXPECT_TRUE(Runs(program_));
  const int64_t at_end = CountIn(Path("count"));
  const auto ledger = FoldedLedger();
  EXPECT_GT(calls_, 0);
  EXPECT_LE(calls_, at_end + 1);
  EXPECT_NE(Find(ledger, "process_outlived"), nullptr);
}

TEST_F(KeeperTest, WhoseEndCameTooEarlyIsInTheLedger) {
  Begin();
  ASSERT_TRUE(WaitUntil([&] { return std::filesystem::file_size(Path() + ".spool") > 100000; }));
  kill(keeper_, SIGKILL);
  KillRecorder();
  KillProgram();
  const auto ledger = FoldedLedger();
  EXPECT_GT(calls_, 0);
  const storage::LedgerEntry* row = Find(ledger, "recorder_killed");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->severity, storage::Severity::kDataLoss);
  EXPECT_EQ(row->cause,
            "acltape was killed while it recorded, and the process that keeps what lies in the "
            "threads' rings did not end its work; the trace holds what was received, and lacks "
            "what was in the rings and what came later");
}

// The part of one thread's records that a killed collector left.
struct Left {
  const char* name;
  uint64_t spooled;   // bytes of the records that the spool has
  uint64_t released;  // bytes among them that the ring has given up
  uint64_t cut;       // bytes of an entry that is not whole
  bool ended;         // the log has
};
constexpr uint64_t kWritten = 40 * 16;  // bytes of the thread's records

// Writes them through a ring; returns them.
std::string WriteRecords(Producer& producer) {
  std::string all;
  for (uint64_t i = 0; all.size() < kWritten; ++i) {
    const uint64_t record[2] = {uint64_t{16} << 32, i};  // a kPad of 16 bytes
    producer.Raw(record, sizeof(record));
    all.append(reinterpret_cast<const char*>(record), sizeof(record));
  }
  return all;
}

// A spool with them, opened.
int MakeSpool(const std::string& path, const Left& left, const std::string& records) {
  using collector::SpoolKind;
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  const collector::SpoolHeader header;
  EXPECT_EQ(pwrite(file, &header, sizeof(header), 0), static_cast<ssize_t>(sizeof(header)));
  uint64_t end = sizeof(header);
  const auto add = [&](SpoolKind kind, std::span<const std::byte> body) {
    end += collector::WriteEntry(file, end, {kind, 0, 0, 1, 1}, body);
  };
  const auto bytes = std::as_bytes(std::span(records));
  collector::LogOrigin origin;
  origin.generation = 1;
  add(SpoolKind::kOpen, collector::OpeningOf(origin));
  if (left.spooled > 0) add(SpoolKind::kRecords, bytes.first(left.spooled));
  const collector::SlotEnd counts;
  if (left.ended) add(SpoolKind::kEnd, std::as_bytes(std::span(&counts, 1)));
  if (left.cut > 0) {
    const uint64_t whole = end;
    add(SpoolKind::kRecords, bytes.subspan(left.spooled));
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(whole + left.cut)), 0);
  }
  return file;
}

// The collector can be killed between any two steps. Its last entry may be cut, or whole while the
// ring still holds the same records.
TEST_F(KeeperTest, TakesWhatTheSpoolLacksAndNothingTwice) {
  for (const Left& left :
       {Left{"nothing yet", 0, 0, 0, false}, Left{"released", 160, 160, 0, false},
        Left{"not released", 160, 80, 0, false}, Left{"cut", 160, 160, 50, false},
        Left{"all", kWritten, 160, 0, false}, Left{"ended", kWritten, kWritten, 0, true}}) {
    SCOPED_TRACE(left.name);
    collector::ArenaOwner arena({.slots = 2, .ring_bytes = 64 << 10});
    collector::ArenaServer server(arena);
    Producer producer(Arena::Open(arena.fd()));
    const std::string records = WriteRecords(producer);
    producer.slot()->tail.store(left.released);
    const std::string path = Path("spool");
    collector::Takeover job{arena, server};
    job.spool = MakeSpool(path, left, records);
    const std::atomic<bool> never{false};
    collector::TakeOver(job, never);

    const collector::SpoolContents contents = collector::ReadContents(job.spool);
    EXPECT_TRUE(contents.closed);
    EXPECT_EQ(contents.logs, 1u);
    ASSERT_EQ(contents.slots.size(), 1u);
    EXPECT_EQ(contents.slots[0].taken, kWritten);
    EXPECT_TRUE(contents.slots[0].ended);
    const std::string content = ContentOf(path);
    EXPECT_EQ(content.size(), contents.end);
    EXPECT_NE(content.find(records.substr(left.spooled)), std::string::npos);
    producer.Forget();
    close(job.spool);
  }
}

// Runs `action` as a user of whom nobody else has a process, with room for so many of its own.
template <typename Action>
int AsLonelyUser(const std::string& folder, rlim_t processes, Action action) {
  constexpr uid_t kLonely = 61234;
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit few{processes, processes};
    if (setgid(kLonely) != 0 || setuid(kLonely) != 0 || setrlimit(RLIMIT_NPROC, &few) != 0) {
      _exit(99);
    }
    _exit(action());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(KeeperTest, ThatTheSystemDoesNotStartIsInTheLedger) {
  if (geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a thread of ThreadSanitizer counts against the limit of processes";
#endif
  auto options = Options({});
  options.command = {"/bin/true"};  // the build may lie where only its owner can go
  // The recorder with its second thread and the program.
  const int code = AsLonelyUser(folder_, 3, [&] {
    const auto summary = collector::Record(options);
    return summary.state == "complete" && summary.exit_code == 0 && summary.failure.empty() ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  const auto ledger = storage::Reader(Path()).Ledger();
  const storage::LedgerEntry* row = Find(ledger, "unprotected");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->severity, storage::Severity::kInfo);
  EXPECT_EQ(row->subject, "rings");
  EXPECT_EQ(
      row->cause,
      "no process could be started that keeps what lies in the threads' rings (Resource "
      "temporarily unavailable); it is lost when acltape and the program are killed together");
}

TEST_F(KeeperTest, IsOfNoUseWithoutASpool) {
  auto options = Options({"loop", "1000"});
  options.spool_bytes = 0;
  const auto summary = collector::Record(options);
  EXPECT_EQ(summary.state, "complete");
  EXPECT_EQ(summary.leaves, 1000);
  const storage::LedgerEntry* row = Find(summary.ledger, "unprotected");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->subject, "spool");
  EXPECT_EQ(row->cause,
            "no file beside the trace has what was received: the recording keeps none; what the "
            "trace does not have yet is lost when acltape is killed");
}

}  // namespace
}  // namespace acltape::test
