// The column `where` of tables: the line of the program's source that a row's call comes from.
#pragma once

#include <string_view>

#include "analyzer/program/source_lines.h"
#include "cli/terminal/table.h"

namespace acltape::cli {

// The table with a column `where` after the column `calls`, whose cells hold a call id or a text
// that begins with one, such as "812-815". A trace without lines leaves the table as it is.
Table WithLines(const Table& table, std::string_view calls, const analyzer::SourceLines& lines);

}  // namespace acltape::cli
