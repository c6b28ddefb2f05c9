// One column of some rows in the memory layout of Arrow: values, and a bit for each that is not
// NULL.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "storage/arrow/arrow_abi.h"

namespace acltape::storage::arrow {

// The letters are those in which a caller asks for columns (row_stream.h).
enum class ColumnType : char { kInteger = 'i', kReal = 'r', kText = 't' };

// "l", "g" or "u".
const char* FormatOf(ColumnType type);

class Column {
 public:
  Column(ColumnType type, int64_t rows_at_most);

  ColumnType type() const { return type_; }

  // At most as many values as were said.
  void AddNull();
  void AddInteger(int64_t value) { SetValue(static_cast<uint64_t>(value)); }
  void AddReal(double value) { SetValue(std::bit_cast<uint64_t>(value)); }
  // Bytes that are no UTF-8 become U+FFFD, because readers of columns refuse others.
  void AddText(std::string_view text);

  // Bytes of the texts so far.
  int64_t text_bytes() const { return static_cast<int64_t>(text_.size()); }
  // Texts that were not UTF-8.
  int64_t replaced_texts() const { return replaced_texts_; }

  // Moves the rows into `array`, which then owns them.
  static void Export(Column column, ArrowArray* array);

 private:
  void SetValue(uint64_t bits) {
    SetBit();
    values_[rows_++] = bits;
  }
  void SetBit() { bits_[rows_ / 8] |= static_cast<uint8_t>(1 << (rows_ % 8)); }

  ColumnType type_;
  size_t rows_ = 0;
  int64_t nulls_ = 0;
  int64_t replaced_texts_ = 0;
  std::unique_ptr<uint8_t[]> bits_;     // 1: not NULL
  std::unique_ptr<uint64_t[]> values_;  // whole numbers or doubles
  std::unique_ptr<int32_t[]> ends_;     // 0, and the end of each text
  std::string text_;
};

}  // namespace acltape::storage::arrow
