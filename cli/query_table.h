// Results of SQL as tables to print. A blob is shown as SQL writes it, x'0a0b'.
#pragma once

#include <vector>

#include "cli/table.h"
#include "storage/query.h"

namespace acltape::cli {

std::vector<Cell> ToRow(std::vector<storage::Cell> cells);
Table ToTable(storage::Table found);

}  // namespace acltape::cli
