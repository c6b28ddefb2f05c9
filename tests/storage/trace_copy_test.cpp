// Copies of traces: whose fault it is when one cannot be written or read.
#include "storage/trace_copy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "storage/error.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

using TraceCopyTest = TraceTest;

// Overwrites the beginning of the first page of a table.
void DamageTable(const std::string& path, const std::string& table) {
  int64_t place = 0;
  {
    Database file(path, SQLITE_OPEN_READONLY);
    const int64_t root =
        file.Integer(("SELECT rootpage FROM sqlite_master WHERE name = '" + table + "'").c_str());
    place = (root - 1) * file.Integer("PRAGMA page_size");
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(place);
  file << std::string(64, '\xff');
}

Error ErrorOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::kUsage, ""};
}

TEST_F(TraceCopyTest, ASourceThatIsDamagedIsNamed) {
  const std::string source = Make();
  DamageTable(source, "signature_argument");
  const Reader reader(source);
  TraceCopy copy(reader, Path("copy.db"), false);
  const Error error = ErrorOf([&] { copy.CopyRows("signature_argument"); });
  EXPECT_EQ(error.kind(), ErrorKind::kTrace);
  EXPECT_EQ(std::string(error.what()).rfind("'" + source + "' is damaged or truncated", 0), 0)
      << error.what();
}

TEST_F(TraceCopyTest, AStatementThatFailsOnASoundSourceIsAnInternalError) {
  const Reader reader(Make());
  TraceCopy copy(reader, Path("copy.db"), false);
  const Error error = ErrorOf([&] { copy.CopyRows("op", "no_such_column = 1"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInternal);
  EXPECT_NE(std::string(error.what()).find("internal error at tests/storage/trace_copy_test.cpp:"),
            std::string::npos)
      << error.what();
  EXPECT_NE(std::string(error.what()).find("no_such_column"), std::string::npos) << error.what();
}

TEST_F(TraceCopyTest, ACopyThatCannotBeReadAsItsSourceIsAnInternalError) {
  const Reader reader(Make());
  TraceCopy copy(reader, Path("copy.db"), false);
  copy.CopyRows("meta", "key <> 'schema_version'");
  for (const char* table :
       {"op", "layout", "signature", "signature_argument", "call_row", "buffer_row", "snapshot"}) {
    copy.CopyRows(table);
  }
  copy.Close();
  const auto read = [](const Reader& trace) { static_cast<void>(trace.Snapshots()); };
  EXPECT_NE(copy.ReadBack(read), nullptr);
  DamageTable(copy.partial_path(), "snapshot");
  const Error error = ErrorOf([&] { copy.ReadBack(read); });
  EXPECT_EQ(error.kind(), ErrorKind::kInternal);
  EXPECT_EQ(std::string(error.what()).find(".recover"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace acltape::storage
