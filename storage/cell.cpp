#include "storage/cell.h"

#include <fmt/format.h>

#include <span>

#include "storage/database.h"

namespace acltape::storage {

Cell CellOf(const Statement& rows, int column) {
  switch (sqlite3_column_type(rows.handle(), column)) {
    case SQLITE_INTEGER:
      return rows.Integer(column);
    case SQLITE_FLOAT:
      return rows.Real(column);
    case SQLITE_TEXT:
      return std::string(rows.Text(column));
    case SQLITE_BLOB: {
      const std::string_view bytes = rows.Text(column);
      return fmt::format(
          "x'{:02x}'",
          fmt::join(std::span(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()),
                    ""));
    }
    default:
      return std::monostate();
  }
}

std::string_view NameOfColumn(const Statement& rows, int column) {
  return sqlite3_column_name(rows.handle(), column);
}

int ColumnCount(const Statement& rows) { return sqlite3_column_count(rows.handle()); }

}  // namespace acltape::storage
