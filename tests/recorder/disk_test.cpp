// Full and read-only disks: the program is never disturbed, the trace is openable, one sentence
// says what happened.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/recorder/record_fixture.h"

namespace acltape::test {
namespace {

// A file system of a given size in the test's folder; not mounted when this user may not.
class SmallDisk {
 public:
  SmallDisk(const std::string& folder, const char* size) : folder_(folder) {
    std::filesystem::create_directory(folder);
    mounted_ =
        mount("tmpfs", folder.c_str(), "tmpfs", 0, (std::string("size=") + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  std::string folder_;
  bool mounted_ = false;
};

TEST_F(RecordTest, AFullDiskStopsTheTraceAndNotTheProgram) {
  const SmallDisk disk(Path("disk"), "40m");
  if (!disk.mounted()) GTEST_SKIP() << "this user cannot mount a small file system";
  auto options = Options({"payload", "400", "262144"});
  options.payload = wire::PayloadPolicy::kAll;
  options.output = Path("disk") + "/t.db";
  const auto summary = collector::Record(options);
  EXPECT_EQ(summary.exit_code, 0);
  EXPECT_EQ(summary.signal, 0);
  EXPECT_EQ(summary.state, "partial");
  EXPECT_EQ(summary.failure.find("no room left on the disk of '" + options.output + "'"), 0u)
      << summary.failure;
  const storage::Reader reader(options.output);
  EXPECT_EQ(reader.State(), "partial");
  EXPECT_GT(reader.CallCount(true), 0);
  EXPECT_NE(Find(reader.Ledger(), "recording_stopped"), nullptr);
  // All payloads that were committed are whole.
  for (const storage::Snapshot& snapshot : reader.Snapshots()) {
    if (!snapshot.has_payload) continue;
    EXPECT_EQ(reader.Payload(snapshot.digest).size(), 262144u);
  }
  // One file, thanks to the room that was reserved.
  EXPECT_FALSE(std::filesystem::exists(options.output + "-wal"));
}

// Values fill the disk; every call that was complete when the recorder noticed is in the trace.
TEST_F(RecordTest, AFullDiskLosesNoCall) {
  for (const char* size : {"4500k", "9m", "20m"}) {
    const SmallDisk disk(Path(size), size);
    if (!disk.mounted()) GTEST_SKIP() << "this user cannot mount a small file system";
    for (const char* bytes : {"3000", "30000", "3000000"}) {
      SCOPED_TRACE(std::string("disk of ") + size + ", values of " + bytes + " bytes");
      const std::string count_file = Path(std::string("count") + bytes);
      auto options = Options({"payload", "20000", bytes, count_file});
      options.payload = wire::PayloadPolicy::kAll;
      options.output = Path(size) + "/t.db";
      options.overwrite = true;
      const auto summary = collector::Record(options);
      EXPECT_EQ(summary.exit_code, 0);
      EXPECT_EQ(summary.state, "partial");
      // While writing or, when the rows waited until the program had ended, while closing it.
      EXPECT_EQ(summary.failure.find("no room left on the disk of '" + options.output + "' while "),
                0u)
          << summary.failure;
      const storage::Reader reader(options.output);
      EXPECT_EQ(reader.State(), "partial");
      EXPECT_NE(Find(reader.Ledger(), "recording_stopped"), nullptr);
      EXPECT_EQ(reader.CallCount(true), CountIn(count_file));
      EXPECT_GT(reader.CallCount(true), 0);
      for (const storage::Snapshot& snapshot : reader.Snapshots()) {
        if (!snapshot.has_payload) continue;
        EXPECT_EQ(std::to_string(reader.Payload(snapshot.digest).size()), bytes);
      }
      EXPECT_FALSE(std::filesystem::exists(options.output + ".spool"));
    }
  }
}

TEST_F(RecordTest, ADiskWithLittleRoomIsToldToProtectLess) {
  const SmallDisk disk(Path("disk"), "100m");
  if (!disk.mounted()) GTEST_SKIP() << "this user cannot mount a small file system";
  auto options = Options({"loop", "1000"});
  options.output = Path("disk") + "/t.db";
  const auto summary = collector::Record(options);
  EXPECT_EQ(summary.state, "complete");
  const storage::LedgerEntry* row = Find(summary.ledger, "unprotected");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->severity, storage::Severity::kInfo);
  EXPECT_EQ(row->cause,
            "no file beside the trace has what was received: its disk has less than 256 MiB left; "
            "what the trace does not have yet is lost when acltape is killed");
}

TEST_F(RecordTest, ALimitOnTheFileSizeStopsTheTraceAndNotTheProgram) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit small{24 << 20, before.rlim_max};
  auto options = Options({"payload", "200", "262144"});
  options.payload = wire::PayloadPolicy::kAll;
  // The limit holds for shared memory too, so the arena must be small.
  options.slots = 2;
  options.ring_bytes = 1 << 20;
  setrlimit(RLIMIT_FSIZE, &small);
  const auto summary = collector::Record(options);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(summary.exit_code, 0);
  EXPECT_EQ(summary.state, "partial");
  EXPECT_NE(summary.failure, "");
  EXPECT_EQ(storage::Reader(Path()).State(), "partial");
}

TEST_F(RecordTest, ADiskTooSmallForAnEmptyTraceIsToldBeforeTheProgramStarts) {
  const SmallDisk disk(Path("disk"), "64k");
  if (!disk.mounted()) GTEST_SKIP() << "this user cannot mount a small file system";
  auto options = Options({"args", "never printed"});
  options.output = Path("disk") + "/t.db";
  EXPECT_EQ(ErrorOf([&] { collector::Record(options); }).first, 4);
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

TEST_F(RecordTest, AFolderThatCannotBeWrittenIsToldBeforeTheProgramStarts) {
  std::filesystem::create_directory(Path("locked"));
  chmod(folder_.c_str(), 0755);
  chmod(Path("locked").c_str(), 0555);
  auto options = Options({"exit", "0"});
  // The build may lie where only its owner can go.
  options.command = {"/bin/true"};
  options.output = Path("locked") + "/t.db";
  // root may write anywhere, so somebody else tries.
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) _exit(99);
    const auto [kind, sentence] = ErrorOf([&] { collector::Record(options); });
    const bool told = sentence == "cannot create '" + options.output + "' (Permission denied)";
    _exit(told ? kind : 98);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 4);
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

TEST_F(RecordTest, AFolderThatDoesNotExistIsToldBeforeTheProgramStarts) {
  auto options = Options({"exit", "0"});
  options.output = Path("nowhere") + "/t.db";
  const auto [kind, sentence] = ErrorOf([&] { collector::Record(options); });
  EXPECT_EQ(kind, 4);
  EXPECT_EQ(sentence, "cannot create '" + options.output + "' (No such file or directory)");
}

}  // namespace
}  // namespace acltape::test
