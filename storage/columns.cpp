#include "storage/columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/query.h"

namespace acltape::storage {

bool HasColumns(const Reader& trace, std::string_view table, std::string_view columns) {
  for (size_t at = 0; at <= columns.size();) {
    const size_t end = std::min(columns.find(',', at), columns.size());
    const Table found =
        RunQuery(trace, fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'",
                                    table, columns.substr(at, end - at)));
    if (found.rows.empty()) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace acltape::storage
