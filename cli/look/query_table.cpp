#include "cli/look/query_table.h"

#include <utility>

namespace acltape::cli {

Table QueryTable(const storage::Reader& reader, std::string_view sql, int64_t limit) {
  Table table({});
  storage::RunQuery(
      reader, sql,
      [&table](const std::vector<std::string>& columns) {
        table = Table(columns);
        table.KeepNames();
      },
      [&table, limit](std::vector<Cell>& row) {
        table.Add(std::move(row));
        return static_cast<int64_t>(table.rows().size()) != limit;
      });
  return table;
}

}  // namespace acltape::cli
