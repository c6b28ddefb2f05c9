// A row of a trace whose values are not trusted yet. Each value is taken with the type and the
// range that it must have. A value that breaks them ends in an Error of kind kTrace, one sentence
// that names the file, the table, the row, the column, the value and what is wrong.
//
// A trace may come from anywhere: all code that makes objects of rows takes their values through
// here, so that what works on the objects need not ask again (docs/trust.md).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "storage/database.h"

namespace acltape::storage {

// Limits that hold for every trace. They leave room in 64 bits: sums and products of values within
// them, as code after the gate makes them, do not overflow.
constexpr int64_t kMostBytes = int64_t{1} << 47;  // limit of a buffer, and of the end of a tensor
constexpr int64_t kMostId = int64_t{1} << 53;     // limit of ids of calls, signatures and streams
constexpr int64_t kMostBufferId = (int64_t{1} << 39) - 1;  // a tensor's id holds it above 24 bits
constexpr int64_t kMostLayoutId = (int64_t{1} << 24) - 1;
constexpr int64_t kMostNs = int64_t{1} << 61;  // a time or a duration
constexpr size_t kMostDimensions = 64;         // as PyTorch has it

// `value` as it may be shown: in quotes, without control characters, at most some 40 characters.
std::string ShownValue(std::string_view value);

class CheckedRow {
 public:
  // `rows` is at a row and outlives this. `key` is the column with the row's number.
  CheckedRow(const Statement& rows, const std::string& path, std::string_view table, int key = 0)
      : rows_(rows), path_(path), table_(table), key_(key) {}

  // The number of the row itself; from `least` on.
  int64_t Id(std::string_view name, int64_t most = kMostId, int64_t least = 1) const {
    return Integer(key_, name, least, most);
  }
  int64_t Integer(int column, std::string_view name, int64_t least, int64_t most) const {
    return IntegerOf(sqlite3_column_value(rows_.handle(), column), column, name, least, most);
  }
  // NULL reads as 0.
  int64_t IntegerOrNull(int column, std::string_view name, int64_t least, int64_t most) const {
    sqlite3_value* value = sqlite3_column_value(rows_.handle(), column);
    return sqlite3_value_type(value) == SQLITE_NULL ? 0
                                                    : IntegerOf(value, column, name, least, most);
  }
  // NULL reads as 0; integers are reals too.
  double RealOrNull(int column, std::string_view name) const;
  std::string_view Text(int column, std::string_view name) const {
    if (TypeOf(column) != SQLITE_TEXT) RefuseValue(column, name, "where a text is expected");
    return rows_.Text(column);
  }
  // NULL reads as an empty text.
  std::string_view TextOrNull(int column, std::string_view name) const {
    return TypeOf(column) == SQLITE_NULL ? std::string_view() : Text(column, name);
  }
  bool IsNull(int column) const { return TypeOf(column) == SQLITE_NULL; }

  // "'t.db' cannot be used: row 7 of its table layout has dtype 'evil', `wrong`; ...".
  [[noreturn]] void RefuseValue(int column, std::string_view name, std::string_view wrong) const;
  // "'t.db' cannot be used: row 7 of its table layout `wrong`; ...".
  [[noreturn]] void Refuse(std::string_view wrong) const;

 private:
  // One look at the column serves type and value, which counts where there is a row per call. (Such
  // a value is safe as long as one thread has the connection.)
  int64_t IntegerOf(sqlite3_value* value, int column, std::string_view name, int64_t least,
                    int64_t most) const {
    const int64_t integer = sqlite3_value_int64(value);
    if (sqlite3_value_type(value) != SQLITE_INTEGER || integer < least || integer > most) {
      RefuseInteger(column, name, least, most);
    }
    return integer;
  }
  int TypeOf(int column) const { return sqlite3_column_type(rows_.handle(), column); }
  [[noreturn]] void RefuseInteger(int column, std::string_view name, int64_t least,
                                  int64_t most) const;

  const Statement& rows_;
  const std::string& path_;
  std::string_view table_;
  int key_;
};

}  // namespace acltape::storage
