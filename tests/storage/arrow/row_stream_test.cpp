// Rows of a trace through the C stream interface of Arrow, read as its specification says.
#include "storage/arrow/row_stream.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/arrow/step_of_call.h"
#include "storage/database.h"
#include "storage/internal_error.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage::arrow {
namespace {

constexpr auto kInteger = ColumnType::kInteger;
constexpr auto kReal = ColumnType::kReal;
constexpr auto kText = ColumnType::kText;

class RowStreamTest : public TraceTest {
 protected:
  void SetUp() override {
    TraceTest::SetUp();
    Writer writer(Path(), WriterOptions());
    Fill(writer);
    writer.Finish("complete");
    reader_ = std::make_shared<Reader>(Path());
  }

  void Open(std::string sql, std::vector<ColumnType> types) {
    Close();
    OpenRowStream(reader_, {.sql = std::move(sql), .table = "rows", .types = std::move(types)},
                  replaced_, &stream_);
  }
  void Close() {
    if (stream_.release != nullptr) stream_.release(&stream_);
  }
  void TearDown() override {
    Close();
    TraceTest::TearDown();
  }

  static bool IsNull(const ArrowArray& column, int64_t row) {
    const auto* bits = static_cast<const uint8_t*>(column.buffers[0]);
    return bits != nullptr && (bits[row / 8] >> (row % 8) & 1) == 0;
  }
  template <typename Value>
  static std::vector<std::optional<Value>> Values(const ArrowArray& column) {
    std::vector<std::optional<Value>> values;
    for (int64_t row = 0; row < column.length; ++row) {
      values.push_back(IsNull(column, row)
                           ? std::nullopt
                           : std::optional(static_cast<const Value*>(column.buffers[1])[row]));
    }
    return values;
  }
  static std::vector<std::optional<std::string>> Texts(const ArrowArray& column) {
    std::vector<std::optional<std::string>> texts;
    const auto* ends = static_cast<const int32_t*>(column.buffers[1]);
    for (int64_t row = 0; row < column.length; ++row) {
      texts.push_back(
          IsNull(column, row)
              ? std::nullopt
              : std::optional(std::string(static_cast<const char*>(column.buffers[2]) + ends[row],
                                          static_cast<size_t>(ends[row + 1] - ends[row]))));
    }
    return texts;
  }

  std::shared_ptr<Reader> reader_;
  std::shared_ptr<int64_t> replaced_ = std::make_shared<int64_t>(0);
  ArrowArrayStream stream_ = {};
};

TEST_F(RowStreamTest, RowsAreColumnsWithABitForEachValue) {
  Open(
      "SELECT column1 AS number, column2 AS share, column3 AS name FROM "
      "(VALUES (7, 0.5, 'a'), (NULL, 2, ''), (-1, NULL, NULL))",
      {kInteger, kReal, kText});
  ArrowSchema schema;
  ASSERT_EQ(stream_.get_schema(&stream_, &schema), 0);
  ASSERT_EQ(schema.n_children, 3);
  EXPECT_EQ(std::string_view(schema.format), "+s");
  EXPECT_EQ(std::string_view(schema.children[0]->name), "number");
  EXPECT_EQ(std::string_view(schema.children[0]->format), "l");
  EXPECT_EQ(std::string_view(schema.children[1]->format), "g");
  EXPECT_EQ(std::string_view(schema.children[2]->format), "u");
  EXPECT_EQ(schema.children[2]->flags, kNullable);
  schema.release(&schema);
  EXPECT_EQ(schema.release, nullptr);

  ArrowArray batch;
  ASSERT_EQ(stream_.get_next(&stream_, &batch), 0);
  ASSERT_EQ(batch.length, 3);
  EXPECT_EQ(batch.children[0]->null_count, 1);
  EXPECT_EQ(Values<int64_t>(*batch.children[0]),
            (std::vector<std::optional<int64_t>>{7, std::nullopt, -1}));
  EXPECT_EQ(Values<double>(*batch.children[1]),
            (std::vector<std::optional<double>>{0.5, 2.0, std::nullopt}));
  EXPECT_EQ(Texts(*batch.children[2]),
            (std::vector<std::optional<std::string>>{"a", "", std::nullopt}));
  batch.release(&batch);
  EXPECT_EQ(batch.release, nullptr);

  ASSERT_EQ(stream_.get_next(&stream_, &batch), 0);
  EXPECT_EQ(batch.release, nullptr) << "the stream has ended";
}

TEST_F(RowStreamTest, ABatchOutlivesItsStreamAndTheReader) {
  Open("SELECT 'kept'", {kText});
  ArrowArray batch;
  ASSERT_EQ(stream_.get_next(&stream_, &batch), 0);
  Close();
  reader_.reset();
  EXPECT_EQ(Texts(*batch.children[0]), (std::vector<std::optional<std::string>>{"kept"}));
  batch.release(&batch);
}

TEST_F(RowStreamTest, ACallerMayTakeAColumnOutOfABatch) {
  Open("SELECT 1, 2", {kInteger, kInteger});
  ArrowArray batch;
  ASSERT_EQ(stream_.get_next(&stream_, &batch), 0);
  // As the specification moves a child: its bytes are copied, and the original is marked released.
  ArrowArray column = *batch.children[1];
  batch.children[1]->release = nullptr;
  batch.release(&batch);
  EXPECT_EQ(Values<int64_t>(column), (std::vector<std::optional<int64_t>>{2}));
  column.release(&column);
}

TEST_F(RowStreamTest, BatchesHaveSoManyRowsOrSoManyBytesOfText) {
  const std::string numbers =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ";
  const auto lengths = [&] {
    std::vector<int64_t> found;
    for (;;) {
      ArrowArray batch;
      EXPECT_EQ(stream_.get_next(&stream_, &batch), 0);
      if (batch.release == nullptr) return found;
      found.push_back(batch.length);
      batch.release(&batch);
    }
  };
  Open(numbers + "70000) SELECT i FROM n", {kInteger});
  EXPECT_EQ(lengths(), (std::vector<int64_t>{kBatchRows, 70000 - kBatchRows}));
  Open(numbers + "5) SELECT printf('%*s', 24 << 20, '') FROM n", {kText});
  EXPECT_EQ(lengths(), (std::vector<int64_t>{3, 2}));
  Open("SELECT 1 WHERE 0", {kInteger});
  EXPECT_EQ(lengths(), (std::vector<int64_t>{}));
}

TEST_F(RowStreamTest, AValueOfAnotherTypeEndsTheStreamWithASentence) {
  struct Wrong {
    const char* sql;
    ColumnType type;
    const char* sentence;
  };
  for (const Wrong& wrong :
       {Wrong{"SELECT 'x' AS bytes", kInteger, "bytes 'x', where a whole number is expected"},
        Wrong{"SELECT 1.5 AS bytes", kInteger, "bytes 1.5, where a whole number is expected"},
        Wrong{"SELECT 'x' AS share", kReal, "share 'x', where a number is expected"},
        Wrong{"SELECT 5 AS name", kText, "name 5, where a text is expected"},
        Wrong{"SELECT x'00' AS name", kText, "name bytes, where a text is expected"}}) {
    Open(wrong.sql, {wrong.type});
    ArrowArray batch;
    EXPECT_EQ(stream_.get_next(&stream_, &batch), EINVAL);
    const std::string said = stream_.get_last_error(&stream_);
    EXPECT_NE(said.find(wrong.sentence), std::string::npos) << said;
    EXPECT_NE(said.find(Path()), std::string::npos) << said;
  }
}

TEST_F(RowStreamTest, BytesThatAreNoUtf8AreReplacedAndCounted) {
  Open("SELECT CAST(x'61ff62' AS TEXT) UNION ALL SELECT CAST(x'c3' AS TEXT) UNION ALL SELECT '模'",
       {kText});
  ArrowArray batch;
  ASSERT_EQ(stream_.get_next(&stream_, &batch), 0);
  EXPECT_EQ(Texts(*batch.children[0]),
            (std::vector<std::optional<std::string>>{"a\xef\xbf\xbd"
                                                     "b",
                                                     "\xef\xbf\xbd", "模"}));
  EXPECT_EQ(*replaced_, 2);
  batch.release(&batch);
}

TEST_F(RowStreamTest, AStatementHasAsManyColumnsAsTypes) {
  EXPECT_THROW(Open("SELECT 1, 2", {kInteger}), InternalError);
}

TEST_F(RowStreamTest, TheStepOfACallIsThatOfTheViewCall) {
  Database& database = reader_->database();
  AddStepOfCall(database);
  EXPECT_EQ(database.Integer("SELECT count(*) FROM call WHERE step IS NOT NULL"), 8);
  EXPECT_EQ(database.Integer("SELECT count(*) FROM call WHERE step IS NOT step_of_call(call_id)"),
            0);
  EXPECT_EQ(database.Text("SELECT group_concat(ifnull(step_of_call(column1), '-')) FROM "
                          "(VALUES (8), (1), (0), (100), (5), (NULL))"),
            "1,0,-,-,1,-");
}

}  // namespace
}  // namespace acltape::storage::arrow
