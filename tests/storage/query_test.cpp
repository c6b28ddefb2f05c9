// Read-only SQL.
#include "storage/query.h"

#include "tests/storage/query_rows.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

TEST_F(TraceTest, EveryNamedQueryRuns) {
  const Reader reader(Make());
  for (const NamedQuery& query : NamedQueries()) {
    const QueryRows table = AllRows(reader, query.sql);
    EXPECT_FALSE(table.columns.empty()) << query.name;
    EXPECT_FALSE(query.description.empty()) << query.name;
  }
  EXPECT_EQ(FindNamedQuery("top_ops")->name, "top_ops");
  EXPECT_EQ(FindNamedQuery("no_such"), nullptr);
}

// Each condition stands in the SQL as a comment, and every query with one runs over a part.
TEST_F(TraceTest, NamedQueriesLookAtPickedCallsAlone) {
  const Reader reader(Make());
  reader.database().Execute("CREATE TEMP TABLE picked (call_id INTEGER PRIMARY KEY)");
  reader.database().Execute("INSERT INTO temp.picked VALUES (2), (4)");
  for (const NamedQuery& query : NamedQueries()) {
    if (!query.TakesCalls()) continue;
    AllRows(reader, PickedSql(query.sql, true));
    AllRows(reader, PickedSql(query.sql, false));
    if (!query.over_picked.empty()) AllRows(reader, PickedSql(query.over_picked, true));
  }
  EXPECT_FALSE(FindNamedQuery("meta")->TakesCalls());
  const auto rows = [&](const char* name, bool in) {
    const QueryRows table = AllRows(reader, PickedSql(FindNamedQuery(name)->sql, in));
    return table.rows.size();
  };
  EXPECT_EQ(rows("capture_breaks", true), 1u);  // the host read of step 0
  EXPECT_EQ(rows("capture_breaks", false), 1u);
  const QueryRows top = AllRows(reader, PickedSql(FindNamedQuery("top_ops")->over_picked, true));
  EXPECT_EQ(top.rows.size(), 2u);  // addmm and the host read, once each
  EXPECT_EQ(std::get<int64_t>(top.rows[0][2]), 1);
}

TEST_F(TraceTest, ValuesKeepTheirType) {
  const Reader reader(Make());
  const QueryRows table =
      AllRows(reader, "SELECT NULL AS n, 7 AS i, 0.5 AS r, 'x' AS t, x'0102' AS b; -- done");
  EXPECT_EQ(table.columns, std::vector<std::string>({"n", "i", "r", "t", "b"}));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(table.rows[0][0]));
  EXPECT_EQ(std::get<int64_t>(table.rows[0][1]), 7);
  EXPECT_EQ(std::get<double>(table.rows[0][2]), 0.5);
  EXPECT_EQ(std::get<std::string>(table.rows[0][3]), "x");
  EXPECT_EQ(std::get<std::string>(table.rows[0][4]), "x'0102'");
}

TEST_F(TraceTest, ALimitEndsAQueryEarly) {
  const Reader reader(Make());
  EXPECT_EQ(AllRows(reader, "SELECT * FROM call", 3).rows.size(), 3u);
  EXPECT_EQ(AllRows(reader, "SELECT * FROM call").rows.size(), 8u);
}

TEST_F(TraceTest, StatementsThatWriteAreRefused) {
  // Even where the trace could be written.
  Reader reader(Make(), Reader::Mode::kReadWrite);
  for (const char* sql :
       {"DELETE FROM call_row", "INSERT INTO meta VALUES('a','b')", "DROP VIEW call",
        "CREATE TABLE x(y)", "UPDATE meta SET value = 1", "PRAGMA user_version=5",
        "PRAGMA journal_mode=WAL", "ATTACH '/tmp/acltape-attached.db' AS other", "VACUUM",
        "VACUUM INTO '/tmp/acltape-vacuumed.db'"}) {
    const auto [kind, sentence] = ErrorOf([&] { AllRows(reader, sql); });
    EXPECT_EQ(kind, 2) << sql << ": " << sentence;
  }
  EXPECT_EQ(reader.Calls(false).size(), 8u);
  EXPECT_FALSE(std::filesystem::exists("/tmp/acltape-attached.db"));
  EXPECT_FALSE(std::filesystem::exists("/tmp/acltape-vacuumed.db"));
}

TEST_F(TraceTest, MistakesAreUsageErrorsWithSqlitesOwnWords) {
  const Reader reader(Make());
  const auto sentence = [&reader](const char* sql) {
    const auto [kind, text] = ErrorOf([&] { AllRows(reader, sql); });
    EXPECT_EQ(kind, 2) << sql;
    return text;
  };
  EXPECT_EQ(sentence("SELECT * FROM nowhere"), "this query cannot be run: no such table: nowhere");
  EXPECT_EQ(sentence(""), "this query cannot be run: it is empty");
  EXPECT_EQ(sentence("-- only a comment"), "this query cannot be run: it is empty");
  EXPECT_EQ(sentence("SELECT 1; SELECT 2"),
            "this query cannot be run: it holds more than one statement");
  EXPECT_EQ(sentence("SELECT json_extract('{', '$')"), "this query cannot be run: malformed JSON");
}

TEST_F(TraceTest, TablesCanBeDescribed) {
  const Reader reader(Make());
  EXPECT_GT(AllRows(reader, "SELECT name FROM pragma_table_info('call')").rows.size(), 15u);
  EXPECT_GT(AllRows(reader, "SELECT name FROM pragma_index_list('step')").rows.size(), 0u);
}

TEST_F(TraceTest, AQueryMayBeTheFirstToTakeListsApart) {
  const Reader reader(Make());
  EXPECT_EQ(AllRows(reader, "SELECT value FROM json_each('[7,8]')").rows.size(), 2u);
  EXPECT_EQ(AllRows(reader, "SELECT value FROM json_tree('[7,[8]]')").rows.size(), 4u);
}

}  // namespace
}  // namespace acltape::storage
