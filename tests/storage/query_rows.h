// The whole answer to a query, for tests that look at single cells.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/query.h"

namespace acltape::storage {

struct QueryRows {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

// `limit` rows at most, 0: all.
inline QueryRows AllRows(const Reader& reader, std::string_view sql, int64_t limit = 0) {
  QueryRows all;
  RunQuery(
      reader, sql, [&all](const std::vector<std::string>& columns) { all.columns = columns; },
      [&all, limit](std::vector<Cell>& row) {
        all.rows.push_back(std::move(row));
        return static_cast<int64_t>(all.rows.size()) != limit;
      });
  return all;
}

}  // namespace acltape::storage
