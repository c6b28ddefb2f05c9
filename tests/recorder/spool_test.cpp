// Received records and records in the rings survive the program and the collector: both are killed
// at seeded random moments, spools are cut and changed, and folded into their traces.
#include "recorder/collector/spool.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "recorder/collector/fold.h"
#include "storage/database.h"
#include "tests/recorder/record_fixture.h"

namespace acltape::test {
namespace {

class SpoolTest : public RecordTest {
 protected:
  // Records in a process group of its own and kills all of it `delay_us` after something is so.
  void KillAll(const collector::RecordOptions& options, const std::function<bool()>& is_so,
               unsigned delay_us) {
    const pid_t child = fork();
    if (child == 0) {
      setpgid(0, 0);
      collector::Record(options);
      _exit(0);
    }
    for (int round = 0; round < 60000 && !is_so(); ++round) usleep(1000);
    usleep(delay_us);
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the recording ended before it was killed";
  }

  // The program has recorded a call.
  static std::function<bool()> FirstCallIn(const std::string& count_file) {
    return [count_file] { return CountIn(count_file) > 0; };
  }
  // So many calls are in the trace; false while it cannot be opened.
  bool HasCalls(int64_t calls) const {
    bool has = false;
    ErrorOf([&] { has = storage::Reader(Path()).CallCount(true) >= calls; });
    return has;
  }

  std::string Spool() const { return Path() + storage::kSpoolSuffix; }

  static std::string ContentOf(const std::string& path) {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return content.str();
  }
  static void Write(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }

  // A trace whose recorder was killed, with its spool.
  void MakeKilled() {
    auto options = Options({"counted", Path("count")});
    options.ring_bytes = 64 << 10;
    KillAll(options, FirstCallIn(Path("count")), 20000);
    // One file, so that a copy is whole.
    storage::Database(Path(), SQLITE_OPEN_READWRITE).Execute("PRAGMA journal_mode=DELETE");
  }
};

TEST_F(SpoolTest, KilledTogetherEveryCompletedCallIsThere) {
  constexpr int kRuns = 15;
  std::mt19937 random(20261124);
  int64_t kept = 0;
  int64_t before = 0;
  for (int run = 0; run < kRuns; ++run) {
    const unsigned delay_us = random() % 400000;
    SCOPED_TRACE("run " + std::to_string(run) + ", killed after " + std::to_string(delay_us) +
                 " us");
    const std::string count_file = Path("count" + std::to_string(run));
    auto options = Options({"counted", count_file});
    options.overwrite = true;
    options.ring_bytes = run % 2 == 0 ? 64 << 10 : 4 << 20;
    KillAll(options, FirstCallIn(count_file), delay_us);
    const collector::Folded folded = collector::FoldSpool(Path(), nullptr);
    EXPECT_TRUE(folded.done);
    const storage::Reader reader(Path());
    EXPECT_EQ(reader.State(), "partial");
    const auto ledger = reader.Ledger();
    ASSERT_NE(Find(ledger, "recorder_killed"), nullptr);
    for (const storage::LedgerEntry& row : ledger) {
      EXPECT_LT(row.severity, storage::Severity::kDataLoss) << row.kind << ": " << row.cause;
    }
    const int64_t calls = reader.CallCount(true);
    const int64_t count = CountIn(count_file);
    EXPECT_EQ(calls, folded.calls);
    // The program counts after it has recorded: it may be one call late.
    EXPECT_LE(calls, count + 1);
    EXPECT_GE(calls, count);
    EXPECT_GE(calls, folded.calls_before);
    EXPECT_FALSE(std::filesystem::exists(Spool()));
    EXPECT_FALSE(std::filesystem::exists(Path() + ".folding"));
    EXPECT_FALSE(collector::FoldSpool(Path(), nullptr).done) << "the second time nothing is left";
    kept += calls;
    before += folded.calls_before;
  }
  EXPECT_GT(kept, before) << "the spools had nothing that the traces lacked";
}

TEST_F(SpoolTest, ContentsThatTheTraceHasAreTakenOutOfTheSpoolAndComeBack) {
  auto options = Options({"payload", "1000000", "262144", Path("count")});
  options.payload = wire::PayloadPolicy::kAll;
  KillAll(
      options, [&] { return HasCalls(100); }, 0);
  struct stat status;
  ASSERT_EQ(stat(Spool().c_str(), &status), 0);
  const int64_t contents = storage::Reader(Path()).CallCount(true) * 262144;
  EXPECT_GT(contents, 20 << 20) << "too little was written to tell";
  // Some 8 MiB may wait for the end of their transaction.
  EXPECT_LT(status.st_blocks * 512, status.st_size - contents + (32 << 20))
      << "of a spool of " << status.st_size << " bytes";
  ASSERT_TRUE(collector::FoldSpool(Path(), nullptr).done);
  const storage::Reader reader(Path());
  EXPECT_EQ(Find(reader.Ledger(), "payload_damaged"), nullptr);
  int64_t whole = 0;
  int64_t missing = 0;
  for (const storage::Snapshot& snapshot : reader.Snapshots()) {
    if (snapshot.has_payload) {
      ASSERT_EQ(reader.Payload(snapshot.digest).size(), 262144u);
      ++whole;
    } else {
      ++missing;
    }
  }
  EXPECT_GT(whole, 80);
  EXPECT_EQ(missing, 0);
  EXPECT_GE(reader.CallCount(true), CountIn(Path("count")));
}

TEST_F(SpoolTest, ARecordingThatEndsLeavesNoSpool) {
  const auto summary = Record({"loop", "50000"});
  EXPECT_EQ(summary.state, "complete");
  EXPECT_FALSE(std::filesystem::exists(Spool()));
}

TEST_F(SpoolTest, ASpoolWithoutRoomIsGivenUpAndNothingIsLost) {
  for (const uint64_t most : {0, 1000, 100000, 1000000}) {
    auto options = Options({"loop", "200000"});
    options.overwrite = true;
    options.ring_bytes = 64 << 10;
    options.spool_bytes = most;
    const auto summary = collector::Record(options);
    EXPECT_EQ(summary.state, "complete") << "at most " << most << " bytes";
    EXPECT_EQ(storage::Reader(Path()).CallCount(true), 200000) << "at most " << most << " bytes";
    EXPECT_FALSE(std::filesystem::exists(Spool()));
  }
}

TEST_F(SpoolTest, ATraceThatIsBeingRecordedIsLeftAlone) {
  const pid_t child = fork();
  if (child == 0) {
    collector::Record(Options({"sleep", "1"}));
    _exit(0);
  }
  while (!std::filesystem::exists(Spool())) usleep(1000);
  while (ErrorOf([&] { storage::Reader(Path()).Meta("state"); }).first != 0) usleep(1000);
  EXPECT_FALSE(collector::FoldSpool(Path(), nullptr).done);
  EXPECT_TRUE(std::filesystem::exists(Spool()));
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(storage::Reader(Path()).State(), "complete");
}

TEST_F(SpoolTest, SeveralWhoFoldAtOnceFoldOnce) {
  MakeKilled();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const auto [kind, sentence] = ErrorOf([&] {
        const bool done = collector::FoldSpool(Path(), nullptr).done;
        const bool kept = Find(storage::Reader(Path()).Ledger(), "recorder_killed") != nullptr;
        _exit(kept ? (done ? 10 : 0) : 98);
      });
      std::fprintf(stderr, "%s\n", sentence.c_str());
      _exit(kind == 0 ? 97 : 99);
    }
    children.push_back(child);
  }
  int folded = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 10) << WEXITSTATUS(status);
    folded += WEXITSTATUS(status) == 10 ? 1 : 0;
  }
  EXPECT_EQ(folded, 1);
}

TEST_F(SpoolTest, AnotherRecordingsSpoolIsLeftAlone) {
  MakeKilled();
  std::string content = ContentOf(Spool());
  content[offsetof(collector::SpoolHeader, identity)] ^= 1;
  Write(Spool(), content);
  EXPECT_FALSE(collector::FoldSpool(Path(), nullptr).done);
  EXPECT_EQ(ContentOf(Spool()), content);
}

TEST_F(SpoolTest, ASpoolOfAnotherVersionIsNamedAndKept) {
  MakeKilled();
  const std::string trace = ContentOf(Path());
  std::string content = ContentOf(Spool());
  content[offsetof(collector::SpoolHeader, version)] ^= 64;
  Write(Spool(), content);
  const auto [kind, sentence] = ErrorOf([&] { collector::FoldSpool(Path(), nullptr); });
  EXPECT_EQ(kind, 3);
  EXPECT_EQ(sentence, "'" + Spool() +
                          "' was received by another version of acltape than this one; open the "
                          "trace with that version, or remove the file");
  EXPECT_EQ(ContentOf(Path()), trace);
  EXPECT_EQ(ContentOf(Spool()), content);
}

// The recorder can be killed while it writes; a file can be damaged later.
TEST_F(SpoolTest, ACutOrChangedSpoolGivesATraceThatOpens) {
  MakeKilled();
  const std::string trace = ContentOf(Path());
  const std::string spool = ContentOf(Spool()).substr(0, 60000);
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::string content = spool;
    const bool cut = round % 2 == 0;
    if (cut) {
      content.resize(sizeof(collector::SpoolHeader) +
                     random() % (spool.size() - sizeof(collector::SpoolHeader)));
    } else {
      for (int i = 0; i < 8; ++i) {
        const size_t body = spool.size() - sizeof(collector::SpoolHeader);
        content[sizeof(collector::SpoolHeader) + random() % body] = static_cast<char>(random());
      }
    }
    Write(Path(), trace);
    Write(Spool(), content);
    EXPECT_TRUE(collector::FoldSpool(Path(), nullptr).done);
    const storage::Reader reader(Path());
    EXPECT_EQ(reader.State(), "partial");
    const auto ledger = reader.Ledger();
    EXPECT_NE(Find(ledger, "recorder_killed"), nullptr);
    if (cut) {
      EXPECT_EQ(Find(ledger, "malformed_record"), nullptr);
      EXPECT_EQ(Find(ledger, "unknown_record"), nullptr);
    }
  }
}

}  // namespace
}  // namespace acltape::test
