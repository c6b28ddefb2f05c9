// The column `where` of tables whose rows have calls of two traces.
#pragma once

#include "analyzer/program/source_lines.h"
#include "cli/terminal/table.h"

namespace acltape::cli {

// The table with a column `where` for the calls in its columns `a_call` and `b_call`: the line of
// the call of A, and that of the call of B where A has no call or no line.
Table WithLinesOfBoth(const Table& table, const analyzer::SourceLines& of_a,
                      const analyzer::SourceLines& of_b);

}  // namespace acltape::cli
