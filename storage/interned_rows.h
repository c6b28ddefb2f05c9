// Rows that are stored once, however often they are used: operators, layouts, signatures, scopes,
// stacks. When several traces become one, equal rows of theirs become one row.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "storage/reader.h"
#include "storage/tables.h"

namespace acltape::storage {

// New ids by old ones.
using IdMap = std::unordered_map<int64_t, int64_t>;

// The rows of one table with an id in its first column.
class InternedRows {
 public:
  // Rows are added to the schema `main` of `to`.
  InternedRows(Database& to, const StoredTable& table);

  // By column, the new value of an old one. A value that is no integer stays.
  using Changes = std::map<std::string_view, std::function<std::optional<int64_t>(int64_t)>>;

  // Adds the rows that are not there yet, in the order of their ids. `more`: by id, what other
  // tables hold of a row, which equal rows have too. `ids` gets the new ids, each before the next
  // row is looked at. Throws Error kTrace where a row is none of a recording.
  void Add(const Reader& from, const Changes& changes, IdMap& ids,
           const std::unordered_map<int64_t, std::string>& more = {});
  // True if Add made a new row of this id, last time.
  bool IsNew(int64_t new_id) const { return new_id >= first_new_; }

 private:
  const StoredTable& table_;
  Database& to_;
  std::unordered_map<std::string, int64_t> known_;  // new ids by content
  int64_t first_new_ = 1;
};

// A text that is equal for equal values: the type, then the content.
void AppendKey(std::string& key, sqlite3_value* value);

}  // namespace acltape::storage
