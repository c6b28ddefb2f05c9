// A thin layer over SQLite's C interface: a connection and a prepared statement that close
// themselves, and one translation of SQLite's codes into acltape::Error:
//   damaged or not a database  -> kTrace
//   disk full, I/O, permission -> kDevice
//   a mistake in a user's SQL  -> kUsage (only from storage/query.h)
// Not thread-safe: one connection belongs to one thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "storage/error.h"

namespace acltape::storage {

// Says that the pages of a file are damaged.
std::string DamagedText(const std::string& path, std::string_view how);

class Database {
 public:
  // `flags` and `vfs` are those of sqlite3_open_v2. Opening does not read the file yet.
  Database(const std::string& path, int flags, const char* vfs = nullptr);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs statements that give no rows (or whose rows do not matter).
  void Execute(const char* sql);
  // First column of the first row; `otherwise` when there is none.
  int64_t Integer(const char* sql, int64_t otherwise = 0);
  std::string Text(const char* sql);

  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return path_; }

  // Throws the Error that stands for `code` on this connection.
  [[noreturn]] void Fail(int code, std::string_view doing) const;

 private:
  sqlite3* handle_ = nullptr;
  std::string path_;
};

// A prepared statement, kept and reused. Parameters count from 1, columns from 0.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  // Makes a statement of SQL that somebody else wrote. `rest` is the text after its first
  // statement; if there is no statement, the handle is null. `refuse` may throw its own Error for a
  // code of SQLite.
  Statement(Database& database, std::string_view sql, std::string_view& rest,
            const std::function<void(int code)>& refuse);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void Bind(int parameter, int64_t value) { sqlite3_bind_int64(handle_, parameter, value); }
  // 0 is stored as NULL, which costs no byte of content.
  void BindNonZero(int parameter, int64_t value) {
    if (value == 0) {
      sqlite3_bind_null(handle_, parameter);
    } else {
      sqlite3_bind_int64(handle_, parameter, value);
    }
  }
  void Bind(int parameter, const std::optional<int64_t>& value) {
    value ? Bind(parameter, *value) : BindNull(parameter);
  }
  void Bind(int parameter, double value) { sqlite3_bind_double(handle_, parameter, value); }
  void BindNull(int parameter) { sqlite3_bind_null(handle_, parameter); }
  // The caller keeps the bytes alive until Run or Reset.
  void Bind(int parameter, std::string_view text) {
    sqlite3_bind_text64(handle_, parameter, text.data() == nullptr ? "" : text.data(), text.size(),
                        SQLITE_STATIC, SQLITE_UTF8);
  }
  void BindBlob(int parameter, const void* data, size_t bytes) {
    sqlite3_bind_blob64(handle_, parameter, bytes == 0 ? "" : data, bytes, SQLITE_STATIC);
  }

  // True while there is a row.
  bool Next();
  void Reset() { sqlite3_reset(handle_); }
  // Executes a statement that gives no row and makes it ready for the next.
  void Run();

  bool IsNull(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
  int64_t Integer(int column) const { return sqlite3_column_int64(handle_, column); }
  double Real(int column) const { return sqlite3_column_double(handle_, column); }
  // Valid until the next Next, Reset or Run.
  std::string_view Text(int column) const {
    const void* text = sqlite3_column_blob(handle_, column);
    return text == nullptr ? std::string_view()
                           : std::string_view(static_cast<const char*>(text),
                                              sqlite3_column_bytes(handle_, column));
  }

  sqlite3_stmt* handle() const { return handle_; }

 private:
  void Prepare(std::string_view sql, std::string_view& rest,
               const std::function<void(int code)>& refuse);

  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
};

}  // namespace acltape::storage
