// The description of a trace's tables: what is created from it, and rows whose columns go by name.
#include "storage/tables.h"

#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

std::string Rows(Database& database, const std::string& columns, const std::string& table) {
  Statement rows(database, "SELECT group_concat(" + columns + ", ' ') FROM " + table);
  rows.Next();
  return std::string(rows.Text(0));
}

TEST(CreateText, HasColumnsConstraintsAndTheFormOfTheTable) {
  EXPECT_EQ(
      CreateText(tables::kPlacement),
      "CREATE TABLE IF NOT EXISTS placement(plan_id INTEGER, call_id INTEGER, stream INTEGER, "
      "PRIMARY KEY(plan_id, call_id)) WITHOUT ROWID");
  EXPECT_EQ(
      CreateText(tables::kStack),
      "CREATE TABLE IF NOT EXISTS stack(stack_id INTEGER PRIMARY KEY, frames TEXT, user_frame "
      "INTEGER)");
}

TEST_F(TraceTest, EveryDescribedTableIsInATraceWithItsColumnsInOrder) {
  const Reader reader(Make());
  size_t checked = 0;
  for (const auto list : {std::span<const StoredTable* const>(tables::kRecorded),
                          std::span<const StoredTable* const>(tables::kResults),
                          std::span<const StoredTable* const>(tables::kTotals)}) {
    for (const StoredTable* table : list) {
      Statement info(reader.database(), "SELECT name FROM pragma_table_info(?1) ORDER BY cid");
      info.Bind(1, table->name);
      for (const StoredColumn& column : table->columns) {
        ASSERT_TRUE(info.Next()) << table->name << "." << column.name;
        EXPECT_EQ(info.Text(0), column.name) << table->name;
        ++checked;
      }
      EXPECT_FALSE(info.Next()) << table->name << " has more columns than its description";
    }
  }
  EXPECT_GT(checked, 150u);
}

TEST_F(TraceTest, RowsKeepWhatWasSetUntilTheyAreCleared) {
  Database database(Path("rows.db"), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  database.Execute(CreateText(tables::kProcess).c_str());
  RowInsert<tables::kProcess> row(database);
  row.Set<"name">(std::string_view("first"));
  row.Set<"rank">(int64_t{7});
  row.Run();
  row.Set<"name">(std::string_view("second"));
  row.Run();
  row.Clear();
  row.SetNonZero<"rank">(0);
  row.Run();
  EXPECT_EQ(Rows(database, "coalesce(name, '-') || ':' || coalesce(rank, '-')", "process"),
            "first:7 second:7 -:-");
}

TEST_F(TraceTest, RowsOfABatchAreNullWhereNothingWasSetAlsoAfterFullOnes) {
  Database database(Path("batch.db"), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  database.Execute(CreateText(tables::kBufferRole).c_str());
  TableBatch<tables::kBufferRole> batch(database);
  constexpr int64_t kRows = 100;  // more than one statement takes, and not a multiple of it
  for (int64_t id = 1; id <= kRows; ++id) {
    batch.Begin();
    batch.Set<"buffer_id">(id);
    if (id % 2 == 0) batch.Set<"pool">("pool " + std::to_string(id));
  }
  batch.Flush();
  EXPECT_EQ(database.Integer("SELECT count(*) FROM buffer_role"), kRows);
  EXPECT_EQ(database.Integer("SELECT count(*) FROM buffer_role WHERE role IS NULL"), kRows);
  EXPECT_EQ(database.Integer("SELECT count(*) FROM buffer_role "
                             "WHERE pool IS CASE WHEN buffer_id % 2 THEN NULL "
                             "ELSE 'pool ' || buffer_id END"),
            kRows);
}

}  // namespace
}  // namespace acltape::storage
