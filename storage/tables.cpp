#include "storage/tables.h"

#include <fmt/format.h>

namespace acltape::storage {

std::string CreateText(const StoredTable& table) {
  std::string text = fmt::format("CREATE TABLE IF NOT EXISTS {}(", table.name);
  for (const StoredColumn& column : table.columns) {
    if (&column != table.columns.data()) text += ", ";
    text += fmt::format("{} {}", column.name, column.type);
  }
  if (!table.constraint.empty()) text += fmt::format(", {}", table.constraint);
  text += table.without_rowid ? ") WITHOUT ROWID" : ")";
  return text;
}

std::string InsertText(const StoredTable& table, std::string_view verb, std::string_view schema) {
  std::string names;
  std::string values;
  for (const StoredColumn& column : table.columns) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", column.name);
    values += values.empty() ? "?" : ",?";
  }
  return fmt::format("{} {}{}({}) VALUES({}) ", verb, schema, table.name, names, values);
}

}  // namespace acltape::storage
