#include "storage/interned_rows.h"

#include <fmt/format.h>

#include <bit>

#include "storage/checked_row.h"

namespace acltape::storage {
namespace {

std::string SelectText(const StoredTable& table) {
  std::string names;
  for (const StoredColumn& column : table.columns) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", column.name);
  }
  return fmt::format("SELECT {} FROM {} ORDER BY 1", names, table.name);
}

}  // namespace

void AppendKey(std::string& key, sqlite3_value* value) {
  const int type = sqlite3_value_type(value);
  key += static_cast<char>('0' + type);
  if (type == SQLITE_NULL) return;
  if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
    const int64_t bits = type == SQLITE_INTEGER
                             ? sqlite3_value_int64(value)
                             : std::bit_cast<int64_t>(sqlite3_value_double(value));
    key += fmt::format("{};", bits);
    return;
  }
  const void* content = sqlite3_value_blob(value);
  const auto bytes = static_cast<size_t>(sqlite3_value_bytes(value));
  key += fmt::format("{}:", bytes);
  if (content != nullptr) key.append(static_cast<const char*>(content), bytes);
}

InternedRows::InternedRows(Database& to, const StoredTable& table) : table_(table), to_(to) {}

void InternedRows::Add(const Reader& from, const Changes& changes, IdMap& ids,
                       const std::unordered_map<int64_t, std::string>& more) {
  first_new_ = static_cast<int64_t>(known_.size()) + 1;
  ids.clear();
  Statement rows(from.database(), SelectText(table_));
  const CheckedRow row(rows, from.path(), table_.name);
  Statement insert(to_, InsertText(table_, "INSERT INTO", "main."));
  const auto columns = static_cast<int>(table_.columns.size());
  while (rows.Next()) {
    const int64_t id = row.Id(table_.columns[0].name, kMostId, 0);
    std::string key;
    if (const auto found = more.find(id); found != more.end()) key = found->second;
    for (int column = 1; column < columns; ++column) {
      sqlite3_value* value = sqlite3_column_value(rows.handle(), column);
      const auto change = changes.find(table_.columns[column].name);
      std::optional<int64_t> changed;
      if (change != changes.end() && sqlite3_value_type(value) == SQLITE_INTEGER) {
        changed = change->second(sqlite3_value_int64(value));
        key += changed ? fmt::format("i{};", *changed) : "n";
        insert.Bind(column + 1, changed);
      } else {
        sqlite3_bind_value(insert.handle(), column + 1, value);
        AppendKey(key, value);
      }
    }
    const auto [known, is_new] =
        known_.try_emplace(std::move(key), static_cast<int64_t>(known_.size()) + 1);
    ids[id] = known->second;
    if (!is_new) {
      insert.Reset();
      continue;
    }
    insert.Bind(1, known->second);
    insert.Run();
  }
}

}  // namespace acltape::storage
