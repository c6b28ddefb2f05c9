// One value of a table: what SQL gives, and what commands print.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace acltape::storage {

class Statement;

// NULL, a whole number, a number, a text. Bytes are the text by which SQL writes them, x'0a0b'.
using Cell = std::variant<std::monostate, int64_t, double, std::string>;

// The value of a column in the row at which the statement is. Columns count from 0.
Cell CellOf(const Statement& rows, int column);
// The name of a column. Valid as long as the statement.
std::string_view NameOfColumn(const Statement& rows, int column);
int ColumnCount(const Statement& rows);

}  // namespace acltape::storage
