// The answer to SQL as a table to print.
#pragma once

#include <cstdint>
#include <string_view>

#include "cli/terminal/table.h"
#include "storage/query.h"

namespace acltape::cli {

// The answer of a query that comes with acltape for people: times and sizes have units, and rows
// without a line of the program, which are the framework's adapter's, are one row if others have
// lines. In the other formats it stays as it is.
Table ForPeople(const Table& table, bool folds);

// `limit` rows at most, 0: all. Throws as storage::RunQuery does.
Table QueryTable(const storage::Reader& reader, std::string_view sql, int64_t limit = 0);

}  // namespace acltape::cli
