// docs/schema.md is true: each of its queries runs on a trace, and every table and view of a trace
// is on the page.
#include <array>
#include <cstdio>
#include <fstream>

#include "storage/query.h"
#include "tests/storage/query_rows.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

std::string Page() {
  std::ifstream file(ACLTAPE_SCHEMA_PAGE);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The statements in ```sql fences of the page.
std::vector<std::string> Queries(const std::string& page) {
  std::vector<std::string> queries;
  for (size_t position = page.find("```sql\n"); position != std::string::npos;
       position = page.find("```sql\n", position)) {
    position += 7;
    const size_t end = page.find("```", position);
    const std::string block = page.substr(position, end - position);
    for (size_t begin = 0; begin < block.size();) {
      size_t stop = block.find(";\n", begin);
      if (stop == std::string::npos) stop = block.size();
      queries.push_back(block.substr(begin, stop - begin));
      begin = stop + 2;
    }
    position = end;
  }
  return queries;
}

TEST_F(TraceTest, EveryQueryOfThePageRuns) {
  const Reader reader(Make());
  const auto queries = Queries(Page());
  EXPECT_GE(queries.size(), 10u);
  for (const std::string& query : queries) {
    const auto [kind, sentence] =
        ErrorOf([&] { EXPECT_FALSE(AllRows(reader, query).columns.empty()) << query; });
    EXPECT_EQ(kind, 0) << query << "\n" << sentence;
  }
}

TEST_F(TraceTest, EveryQueryOfThePageRunsInTheStockShell) {
  if (std::system("command -v sqlite3 >/dev/null") != 0) GTEST_SKIP() << "no sqlite3 shell here";
  Make();
  int number = 0;
  for (const std::string& query : Queries(Page())) {
    std::ofstream(Path("query.sql")) << query << ";\n";
    const std::string command = "sqlite3 -bail -readonly " + Path() + " < " + Path("query.sql") +
                                " > " + Path("rows") + " 2> " + Path("errors");
    const int status = std::system(command.c_str());
    std::ifstream file(Path("errors"));
    const std::string errors((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(status, 0) << query << "\n" << errors;
    EXPECT_EQ(errors, "") << query;
    ++number;
  }
  EXPECT_GE(number, 10);
}

TEST_F(TraceTest, EveryTableViewAndColumnIsOnThePage) {
  const Reader reader(Make());
  const std::string page = Page();
  const QueryRows names =
      AllRows(reader,
              "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
              "WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%'");
  for (const auto& row : names.rows) {
    const std::string table = std::get<std::string>(row[0]);
    const std::string column = std::get<std::string>(row[1]);
    // A table's columns stand in the section that begins with its name.
    const size_t section = page.find("### " + table + "\n");
    ASSERT_NE(section, std::string::npos) << "no section ### " << table;
    const size_t end = page.find("\n##", section + 4);
    EXPECT_NE(page.substr(section, end - section).find("`" + column + "`"), std::string::npos)
        << table << "." << column << " is not described";
  }
}

}  // namespace
}  // namespace acltape::storage
