// The answer to SQL as a table to print.
#pragma once

#include <cstdint>
#include <string_view>

#include "cli/terminal/table.h"
#include "storage/query.h"

namespace acltape::cli {

// `limit` rows at most, 0: all. Throws as storage::RunQuery does.
Table QueryTable(const storage::Reader& reader, std::string_view sql, int64_t limit = 0);

}  // namespace acltape::cli
