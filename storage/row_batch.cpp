#include "storage/row_batch.h"

namespace acltape::storage {
namespace {

std::string WithRows(std::string_view insert, int columns, int rows) {
  std::string row = "(?";
  for (int column = 1; column < columns; ++column) row += ",?";
  row += ')';
  std::string sql(insert);
  for (int i = 0; i < rows; ++i) {
    if (i != 0) sql += ',';
    sql += row;
  }
  return sql;
}

}  // namespace

RowBatch::RowBatch(Database& database, std::string_view insert, int columns)
    : columns_(columns),
      cells_(static_cast<size_t>(columns) * kRows),
      many_(database, WithRows(insert, columns, kRows)),
      one_(database, WithRows(insert, columns, 1)) {}

void RowBatch::BindCells(Statement& statement, size_t first, int count) {
  for (int i = 0; i < count; ++i) {
    const Cell& cell = cells_[first + static_cast<size_t>(i)];
    switch (cell.kind) {
      case Kind::kNull:
        statement.BindNull(i + 1);
        break;
      case Kind::kInteger:
        statement.Bind(i + 1, cell.value);
        break;
      case Kind::kReal:
        statement.Bind(i + 1, std::bit_cast<double>(cell.value));
        break;
      case Kind::kText:
        statement.Bind(i + 1, std::string_view(texts_).substr(static_cast<size_t>(cell.value),
                                                              static_cast<size_t>(cell.bytes)));
        break;
    }
  }
}

void RowBatch::Write() {
  BindCells(many_, 0, columns_ * kRows);
  // Emptied before it runs: rows that a full disk refuses are not tried again.
  rows_ = 0;
  many_.Run();
  texts_.clear();
}

void RowBatch::Flush() {
  if (rows_ == kRows) {
    Write();
    return;
  }
  const int rows = rows_;
  for (int row = 0; row < rows; ++row) {
    BindCells(one_, static_cast<size_t>(row) * static_cast<size_t>(columns_), columns_);
    one_.Run();
  }
  Clear();
}

void RowBatch::Clear() {
  rows_ = 0;
  texts_.clear();
}

}  // namespace acltape::storage
