#include "storage/columns.h"

#include <algorithm>

#include "storage/database.h"

namespace acltape::storage {

bool HasColumns(const Reader& trace, std::string_view table, std::string_view columns) {
  Statement found(trace.database(), "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2");
  for (size_t at = 0; at <= columns.size();) {
    const size_t end = std::min(columns.find(',', at), columns.size());
    found.Bind(1, table);
    found.Bind(2, columns.substr(at, end - at));
    if (!found.Next()) return false;
    found.Reset();
    at = end + 1;
  }
  return true;
}

}  // namespace acltape::storage
