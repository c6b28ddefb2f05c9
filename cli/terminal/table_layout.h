// Lays the cells of a table out as lines for people: columns aligned, numbers to the right.
#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "cli/terminal/table.h"

namespace acltape::cli {

// The text of a cell as a table for people shows it, on one line.
std::string CellForPeople(const Cell& cell);

// On a screen without a width every column stays, and a cell that is wider than 72 columns runs
// over instead of being cut. On one with a width no line is wider than that. Columns that are empty
// in all rows are left out. Then names of columns are wrapped, then text. Columns for which there
// is still no room stand below each row as "name: value": those with the longest sentences first,
// then the last ones.
std::string AlignedText(const Table& table, const Screen& screen);

}  // namespace acltape::cli
