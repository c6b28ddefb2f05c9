#include "storage/checked_row.h"

#include <fmt/format.h>

#include "storage/visible_text.h"

namespace acltape::storage {

std::string ShownValue(std::string_view value) {
  constexpr size_t kShown = 40;
  return fmt::format("'{}{}'", VisibleText(value.substr(0, kShown)),
                     value.size() > kShown ? "..." : "");
}

double CheckedRow::RealOrNull(int column, std::string_view name) const {
  const int type = TypeOf(column);
  if (type == SQLITE_NULL) return 0;
  if (type != SQLITE_FLOAT && type != SQLITE_INTEGER) {
    RefuseValue(column, name, "where a number is expected");
  }
  return rows_.Real(column);
}

void CheckedRow::RefuseInteger(int column, std::string_view name, int64_t least,
                               int64_t most) const {
  RefuseValue(column, name,
              fmt::format("where a whole number from {} to {} is expected", least, most));
}

void CheckedRow::RefuseValue(int column, std::string_view name, std::string_view wrong) const {
  const int type = TypeOf(column);
  const std::string value = type == SQLITE_NULL   ? "NULL"
                            : type == SQLITE_BLOB ? "bytes"
                            : type == SQLITE_TEXT ? ShownValue(rows_.Text(column))
                                                  : std::string(rows_.Text(column));
  Refuse(fmt::format("has {} {}, {}", name, value, wrong));
}

void CheckedRow::Refuse(std::string_view wrong) const {
  const int type = TypeOf(key_);
  const std::string row = type == SQLITE_INTEGER ? fmt::format("row {}", rows_.Integer(key_))
                          : type == SQLITE_TEXT
                              ? fmt::format("row {}", ShownValue(rows_.Text(key_)))
                              : std::string("a row");
  throw Error(ErrorKind::kTrace,
              fmt::format("'{}' cannot be used: {} of its table {} {}; no acltape wrote that, so "
                          "record the program again",
                          path_, row, table_, wrong));
}

}  // namespace acltape::storage
