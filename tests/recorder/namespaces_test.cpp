// Processes of another user, of another PID namespace and under another root are recorded.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "storage/query.h"
#include "tests/recorder/record_fixture.h"
#include "tests/storage/query_rows.h"

namespace acltape::test {
namespace {

constexpr unsigned kNobody = 65534;

// A run of namespaces_program with these words; FOLDER is the folder of the test.
struct Program {
  const char* name;
  std::vector<std::string> words;
  int64_t calls;  // one before each change, ten by "calls"
};

template <typename Action>
bool InChild(Action action) {
  const pid_t child = fork();
  if (child == 0) _exit(action() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

class NamespacesTest : public RecordTest {
 protected:
  void SetUp() override {
    RecordTest::SetUp();
    if (geteuid() != 0) GTEST_SKIP() << "only root becomes another user and makes namespaces";
    if (!NobodyCanExecute()) GTEST_SKIP() << "the build folder is closed to other users";
    if (!NamespacesCanBeMade()) GTEST_SKIP() << "this system allows root no namespaces";
    std::filesystem::permissions(folder_, std::filesystem::perms::all);
  }

  collector::RecordOptions Words(std::vector<std::string> words) const {
    collector::RecordOptions options = Options({});
    options.command = {ACLTAPE_NAMESPACES_PROGRAM};
    for (const std::string& word : words) {
      options.command.push_back(word == "FOLDER" ? folder_ : word);
    }
    options.ring_bytes = 64 << 10;
    return options;
  }

 private:
  static bool NobodyCanExecute() {
    return InChild([] {
      return setuid(kNobody) == 0 && access(ACLTAPE_NAMESPACES_PROGRAM, R_OK | X_OK) == 0;
    });
  }
  static bool NamespacesCanBeMade() {
    return InChild([] { return unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET) == 0; });
  }
};

// Rows that say that something is missing.
std::string Losses(const std::vector<storage::LedgerEntry>& ledger) {
  std::string text;
  for (const storage::LedgerEntry& entry : ledger) {
    if (entry.kind != "no_operators" && entry.severity >= storage::Severity::kNotice) {
      text += entry.kind + ": " + entry.cause + "\n";
    }
  }
  return text;
}

class RecordedNamespacesTest : public NamespacesTest,
                               public ::testing::WithParamInterface<Program> {};

TEST_P(RecordedNamespacesTest, EveryCallIsThere) {
  const auto summary = collector::Record(Words(GetParam().words));
  EXPECT_EQ(summary.exit_code, 0);
  EXPECT_EQ(summary.signal, 0);
  EXPECT_EQ(summary.leaves, GetParam().calls);
  EXPECT_EQ(summary.state, "complete");
  EXPECT_EQ(Losses(summary.ledger), "");
  // Threads have the numbers of the collector's namespace as processes do: a main thread has that
  // of its process.
  const storage::Reader reader(Path());
  EXPECT_TRUE(storage::AllRows(reader,
                               "SELECT pid FROM process WHERE pid NOT IN (SELECT tid FROM thread "
                               "WHERE thread.process_id = process.process_id)")
                  .rows.empty());
}

INSTANTIATE_TEST_SUITE_P(
    , RecordedNamespacesTest,
    ::testing::Values(
        Program{"User", {"user", "calls"}, 12}, Program{"UserExec", {"user", "exec", "calls"}, 13},
        Program{"OldProc", {"process", "calls"}, 12},
        Program{"OldProcExec", {"process", "exec", "calls"}, 13},
        Program{"OldProcNewNetwork", {"network", "process", "exec", "calls"}, 14},
        Program{"FreshProc", {"process", "proc", "calls"}, 13},
        Program{"FreshProcOfAChild", {"exec", "process", "proc", "process", "proc", "calls"}, 16},
        Program{"FreshProcExec", {"process", "proc", "exec", "calls"}, 14},
        Program{"FreshProcUserExec", {"process", "proc", "user", "exec", "calls"}, 15},
        Program{"Root", {"root", "FOLDER", "calls"}, 12},
        Program{"RootOfAnotherUser", {"root", "FOLDER", "process", "user", "calls"}, 14},
        Program{"Strangers", {"strangers", "user", "exec", "calls"}, 14}),
    [](const auto& info) { return std::string(info.param.name); });

// The collector sees the end of a process by its own number for it.
TEST_F(NamespacesTest, AKilledProcessIsNoticedAndItsCallsAreThere) {
  auto options = Words({"process", "proc", "counted", folder_ + "/count"});
  options.outlive_ms = 60000;
  const auto summary = collector::Record(options);
  EXPECT_EQ(summary.exit_code, 0);
  EXPECT_EQ(summary.state, "complete");
  EXPECT_LT(summary.wall_ns, 30'000'000'000) << "the recording waited for a process that was gone";
  const int64_t count = CountIn(folder_ + "/count") + 3;
  EXPECT_GE(summary.leaves, count);
  EXPECT_LE(summary.leaves, count + 1);
}

// A recorder in a PID namespace of its own that still sees the /proc of the outer one.
TEST_F(NamespacesTest, ARecorderWhoseOwnNumbersAreNotThoseOfProcRecords) {
  const auto options = Words({"calls"});
  EXPECT_TRUE(InChild([&] {
    if (unshare(CLONE_NEWPID) != 0) return false;
    return InChild([&] {
      const auto summary = collector::Record(options);
      return summary.leaves == 11 && summary.state == "complete" && Losses(summary.ledger).empty();
    });
  }));
}

// With another network too there is no way to the collector.
TEST_F(NamespacesTest, AProcessThatCannotLearnItsNumberIsInTheLedger) {
  const auto summary = collector::Record(Words({"network", "process", "proc", "calls"}));
  EXPECT_EQ(summary.exit_code, 0);
  EXPECT_EQ(summary.leaves, 4 + 6) << "all but those of the child that is forked last";
  EXPECT_EQ(summary.state, "partial");
  const storage::LedgerEntry* row = Find(summary.ledger, "processes_without_number");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->severity, storage::Severity::kDataLoss);
  EXPECT_EQ(row->count, 1);
}

TEST_F(NamespacesTest, AProcessThatAStoppedRecorderDidNotAnswerIsInTheLedger) {
  const auto options = Words({"stop", "user", "exec", "calls"});
  EXPECT_TRUE(InChild([&] { return collector::Record(options).exit_code == 0; }));
  const storage::Reader reader(Path());
  EXPECT_EQ(reader.State(), "partial");
  EXPECT_EQ(reader.CallCount(true), 3);
  const auto ledger = reader.Ledger();
  const storage::LedgerEntry* row = Find(ledger, "processes_unanswered");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->severity, storage::Severity::kDataLoss);
  EXPECT_EQ(row->count, 1);
}

}  // namespace
}  // namespace acltape::test
