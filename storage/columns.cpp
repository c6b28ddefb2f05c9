#include "storage/columns.h"

#include <algorithm>

#include "storage/database.h"

namespace acltape::storage {

bool HasColumns(const Reader& trace, std::string_view table, std::string_view columns) {
  Statement found(trace.database(), "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2");
  for (size_t first = 0; first <= columns.size();) {
    const size_t end = std::min(columns.find(',', first), columns.size());
    found.Bind(1, table);
    found.Bind(2, columns.substr(first, end - first));
    if (!found.Next()) return false;
    found.Reset();
    first = end + 1;
  }
  return true;
}

}  // namespace acltape::storage
