// Files that are no usable trace: one sentence each, never a crash.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "storage/database.h"
#include "storage/query.h"
#include "storage/schema.h"
#include "tests/storage/query_rows.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

std::pair<int, std::string> Open(const std::string& path) {
  return ErrorOf([&path] { Reader reader(path); });
}

TEST_F(TraceTest, AMissingFile) {
  const auto [kind, sentence] = Open(Path("none.db"));
  EXPECT_EQ(kind, 3);
  EXPECT_EQ(sentence, "there is no trace '" + Path("none.db") + "'");
  EXPECT_FALSE(std::filesystem::exists(Path("none.db")));
}

TEST_F(TraceTest, AFolder) {
  EXPECT_EQ(Open(folder_), std::make_pair(3, "'" + folder_ + "' is a folder, not a trace"));
}

TEST_F(TraceTest, AnEmptyFile) {
  std::ofstream(Path()).flush();
  EXPECT_EQ(Open(Path()),
            std::make_pair(3, "'" + Path() + "' is empty: nothing was recorded into it"));
}

TEST_F(TraceTest, AFileThatIsNotSqlite) {
  std::ofstream(Path()) << "just some text that is longer than a header";
  EXPECT_EQ(Open(Path()),
            std::make_pair(3, "'" + Path() + "' is not a trace: it is not an SQLite file"));
}

TEST_F(TraceTest, ADatabaseOfSomethingElse) {
  {
    Database database(Path(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    database.Execute("CREATE TABLE meta(key, value)");
  }
  EXPECT_EQ(Open(Path()),
            std::make_pair(3, "'" + Path() + "' is an SQLite file but not a trace of acltape"));
}

TEST_F(TraceTest, ANewerSchema) {
  Make();
  {
    Database database(Path(), SQLITE_OPEN_READWRITE);
    database.Execute(fmt::format("PRAGMA user_version={}", kSchemaVersion + 1).c_str());
  }
  EXPECT_EQ(
      Open(Path()),
      std::make_pair(3, fmt::format("'{}' was written by a newer acltape (schema {}, this one "
                                    "knows up to {}); update acltape",
                                    Path(), kSchemaVersion + 1, kSchemaVersion)));
}

TEST_F(TraceTest, EveryTruncationIsToldAtOpening) {
  const auto size = std::filesystem::file_size(Make());
  for (uintmax_t keep = 8192 * 3; keep < size; keep += 8192) {
    std::filesystem::copy_file(Path(), Path("cut.db"),
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(Path("cut.db"), keep);
    const auto [kind, sentence] = Open(Path("cut.db"));
    EXPECT_EQ(kind, 3) << "cut to " << keep << " of " << size << " bytes";
    EXPECT_NE(sentence.find("is damaged or truncated"), std::string::npos) << sentence;
  }
  // Even inside the first page.
  std::filesystem::resize_file(Path("cut.db"), 100);
  EXPECT_EQ(Open(Path("cut.db")).first, 3);
}

// Bytes changed anywhere: either everything is read, or one Error of a kind a command can report.
TEST_F(TraceTest, ChangedBytesNeverCrashAReader) {
  Make();
  std::ifstream file(Path(), std::ios::binary);
  const std::string sound((std::istreambuf_iterator<char>(file)), {});
  std::mt19937_64 random(4);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bytes = sound;
    const size_t offset = random() % bytes.size();
    for (size_t i = offset; i < std::min(offset + 1 + random() % 400, bytes.size()); ++i) {
      bytes[i] = static_cast<char>(random());
    }
    std::ofstream(Path("bad.db"), std::ios::binary) << bytes;
    const auto [kind, sentence] = ErrorOf([&] {
      const Reader reader(Path("bad.db"));
      for (const Call& call : reader.Calls(false)) {
        reader.GetOp(call.op_id);
        for (const Argument& argument : reader.Arguments(call)) {
          for (const TensorRef& tensor : argument.tensors) {
            if (tensor.defined()) reader.GetLayout(tensor.layout_id);
          }
        }
      }
      for (const Snapshot& snapshot : reader.Snapshots()) {
        if (snapshot.has_payload) reader.Payload(snapshot.digest);
      }
      reader.Ledger();
      reader.GetBuffer(1);
      for (const NamedQuery& query : NamedQueries()) AllRows(reader, query.sql);
    });
    EXPECT_TRUE(kind == 0 || kind == 2 || kind == 3) << kind << " " << sentence;
    refused += kind != 0 ? 1 : 0;
  }
  EXPECT_GT(refused, 10);
}

TEST_F(TraceTest, AReadOnlyFolderIsEnoughToRead) {
  Make();
  std::filesystem::permissions(folder_, std::filesystem::perms(0555));
  std::filesystem::permissions(Path(), std::filesystem::perms(0444));
  const pid_t child = fork();
  if (child == 0) {
    // root may write anywhere, so somebody else tries.
    if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) _exit(99);
    const auto [kind, sentence] = ErrorOf([&] {
      const Reader reader(Path(), Reader::Mode::kReadWrite);
      if (reader.Calls(false).size() != 8 || reader.writable()) _exit(98);
    });
    _exit(kind);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A command that was killed in the middle of its work leaves a rollback journal. Who may write
// undoes that work; who may not is told what to do.
TEST_F(TraceTest, WorkThatWasLeftHalfDoneIsUndone) {
  Make();
  const pid_t child = fork();
  if (child == 0) {
    Database database(Path(), SQLITE_OPEN_READWRITE);
    for (const char* sql :
         {"PRAGMA journal_mode=DELETE", "PRAGMA cache_size=1", "BEGIN", "CREATE TABLE junk(a)",
          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT "
          "3000) INSERT INTO junk SELECT printf('%500d', i) FROM n",
          "UPDATE call_row SET begin_ns = begin_ns + 1"}) {
      database.Execute(sql);
    }
    _exit(0);  // no destructor
  }
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(std::filesystem::exists(Path() + "-journal"));
  std::filesystem::permissions(Path(), std::filesystem::perms(0444));
  std::filesystem::permissions(folder_, std::filesystem::perms(0555));
  // As somebody who may not write, which root always may.
  const pid_t reader_child = fork();
  if (reader_child == 0) {
    if (getuid() == 0 && setuid(65534) != 0) _exit(97);
    try {
      const Reader reader(Path());
    } catch (const Error& error) {
      const std::string says = error.what();
      _exit(says.find("left half written when a command was killed") != std::string::npos &&
                    says.find("copy both files to a writable folder") != std::string::npos
                ? 0
                : 98);
    }
    _exit(99);
  }
  int status = 0;
  waitpid(reader_child, &status, 0);
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  std::filesystem::permissions(Path(), std::filesystem::perms(0644));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const Reader reader(Path());
  EXPECT_EQ(reader.Calls(false).size(), 8u);
  EXPECT_FALSE(std::filesystem::exists(Path() + "-journal"));
  EXPECT_EQ(reader.database().Integer("SELECT count(*) FROM sqlite_master WHERE name = 'junk'"), 0);
}

// A collector that was killed leaves the journal beside the file.
TEST_F(TraceTest, AnUnfoldedJournalIsRead) {
  const pid_t child = fork();
  if (child == 0) {
    Writer writer(Path(), WriterOptions());
    Fill(writer);
    writer.Commit();
    _exit(0);  // no destructor
  }
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(std::filesystem::exists(Path() + "-wal"));
  const Reader reader(Path());
  EXPECT_EQ(reader.State(), "partial");
  EXPECT_EQ(reader.Calls(false).size(), 8u);
}

}  // namespace
}  // namespace acltape::storage
