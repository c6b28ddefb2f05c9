// Answers of queries as text, to stand beside what is expected.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "storage/query.h"
#include "tests/storage/query_rows.h"

namespace acltape::storage {

inline std::string TextOf(const Cell& cell) {
  if (const auto* integer = std::get_if<int64_t>(&cell)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&cell)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return "-";
}

// Rows as lines, values separated by blanks, NULL as "-".
inline std::string Rows(const Reader& reader, std::string_view sql) {
  std::string lines;
  for (const auto& row : AllRows(reader, sql).rows) {
    for (size_t i = 0; i < row.size(); ++i) lines += (i == 0 ? "" : " ") + TextOf(row[i]);
    lines += "\n";
  }
  return lines;
}

}  // namespace acltape::storage
