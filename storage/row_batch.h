// Inserts rows of one table many at a time: a statement of 32 rows costs half as much per row as 32
// statements of one. For the tables that grow with every call.
//
//   batch.Begin();      // a row; what is not set is NULL
//   batch.Set(0, 7);
//   batch.Set(2, "text");
//
// Columns count from 0; TableBatch (tables.h) has them by name. Rows reach the table when 32 are
// there, or at Flush. The values of a row are copied.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/database.h"

namespace acltape::storage {

class RowBatch {
 public:
  // `insert` is the statement up to VALUES ("INSERT INTO t VALUES").
  RowBatch(Database& database, std::string_view insert, int columns);

  // Starts a row.
  void Begin() {
    if (rows_ == kRows) Write();
    row_ = cells_.data() + static_cast<size_t>(rows_++) * static_cast<size_t>(columns_);
    std::fill_n(row_, columns_, Cell{Kind::kNull, 0, 0});
  }
  void Set(int column, int64_t value) { row_[column] = {Kind::kInteger, value, 0}; }
  void Set(int column, double value) {
    row_[column] = {Kind::kReal, std::bit_cast<int64_t>(value), 0};
  }
  void Set(int column, std::string_view text) {
    row_[column] = {Kind::kText, static_cast<int64_t>(texts_.size()),
                    static_cast<int64_t>(text.size())};
    texts_ += text;
  }

  void Flush();
  // Forgets rows that have not reached the table.
  void Clear();

 private:
  static constexpr int kRows = 32;
  enum class Kind : uint8_t { kNull, kInteger, kReal, kText };
  struct Cell {
    Kind kind;
    int64_t value;  // or the bits of a real number, or where the text begins in texts_
    int64_t bytes;
  };

  void Write();
  void BindCells(Statement& statement, size_t first, int count);

  int columns_;
  int rows_ = 0;
  Cell* row_ = nullptr;  // the row that is being filled
  std::vector<Cell> cells_;
  std::string texts_;
  Statement many_;
  Statement one_;
};

}  // namespace acltape::storage
