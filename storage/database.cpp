#include "storage/database.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace acltape::storage {
namespace {

std::string SystemText(sqlite3* handle) {
  const int number = handle == nullptr ? 0 : sqlite3_system_errno(handle);
  return number == 0 ? std::string() : fmt::format(" ({})", std::strerror(number));
}

bool HasSizeLimit() {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

std::string DamagedText(const std::string& path, std::string_view how) {
  return fmt::format(
      "'{}' is damaged or truncated ({}); record it again, or save what is left with `sqlite3 {} "
      ".recover`",
      path, how, path);
}

Database::Database(const std::string& path, int flags, const char* vfs) : path_(path) {
  const int code = sqlite3_open_v2(path.c_str(), &handle_, flags | SQLITE_OPEN_NOMUTEX, vfs);
  if (code != SQLITE_OK) {
    const std::string system = SystemText(handle_);
    sqlite3_close(handle_);
    handle_ = nullptr;
    throw Error(ErrorKind::kDevice, fmt::format("cannot open '{}'{}", path, system));
  }
  sqlite3_extended_result_codes(handle_, 1);
}

Database::~Database() { sqlite3_close_v2(handle_); }

void Database::Fail(int code, std::string_view doing) const {
  const char* message = handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
      throw Error(ErrorKind::kTrace, DamagedText(path_, message));
    case SQLITE_NOTADB:
      throw Error(ErrorKind::kTrace,
                  fmt::format("'{}' is not a trace: it is not an SQLite file", path_));
    case SQLITE_FULL:
      throw Error(ErrorKind::kDevice,
                  fmt::format("no room left on the disk of '{}' while {}", path_, doing));
    case SQLITE_READONLY:
      if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY) {
        throw Error(ErrorKind::kDevice,
                    fmt::format("'{0}' was left half written when a command was killed; '{0}{1}' "
                                "undoes that, but the file or its folder is read-only: copy both "
                                "files to a writable folder",
                                path_, code == SQLITE_READONLY_ROLLBACK ? "-journal" : "-wal"));
      }
      [[fallthrough]];
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw Error(ErrorKind::kDevice,
                  fmt::format("'{}' cannot be written: the file or its folder is read-only; copy "
                              "the trace to a writable folder",
                              path_));
    case SQLITE_CANTOPEN:
      throw Error(ErrorKind::kDevice, fmt::format("cannot open '{}' or its journal beside it{}",
                                                  path_, SystemText(handle_)));
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_WRITE && HasSizeLimit()) {
        throw Error(ErrorKind::kDevice,
                    fmt::format("'{}' cannot grow while {}: this process has a limit on the size "
                                "of files (ulimit -f)",
                                path_, doing));
      }
      throw Error(ErrorKind::kDevice, fmt::format("input or output on '{}' failed while {}{}",
                                                  path_, doing, SystemText(handle_)));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error(
          ErrorKind::kDevice,
          fmt::format("'{}' is in use by another process; try again when it is done", path_));
    case SQLITE_NOMEM:
      throw Error(ErrorKind::kDevice, fmt::format("out of memory while {} '{}'", doing, path_));
    default:
      throw Error(ErrorKind::kTrace,
                  fmt::format("SQLite refused {} '{}': {}", doing, path_, message));
  }
}

void Database::Execute(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) Fail(code, "working on it");
}

int64_t Database::Integer(const char* sql, int64_t otherwise) {
  Statement statement(*this, sql);
  return statement.Next() ? statement.Integer(0) : otherwise;
}

std::string Database::Text(const char* sql) {
  Statement statement(*this, sql);
  return statement.Next() ? std::string(statement.Text(0)) : std::string();
}

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  std::string_view rest;
  Prepare(sql, rest, [](int) {});
}

Statement::Statement(Database& database, std::string_view sql, std::string_view& rest,
                     const std::function<void(int code)>& refuse)
    : database_(database) {
  Prepare(sql, rest, refuse);
}

void Statement::Prepare(std::string_view sql, std::string_view& rest,
                        const std::function<void(int code)>& refuse) {
  const char* end = nullptr;
  const int code = sqlite3_prepare_v3(database_.handle(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &handle_, &end);
  if (code != SQLITE_OK) {
    refuse(code);
    database_.Fail(code, "reading");
  }
  rest = sql.substr(static_cast<size_t>(end - sql.data()));
}

Statement::~Statement() { sqlite3_finalize(handle_); }

bool Statement::Next() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) {
    sqlite3_reset(handle_);
    database_.Fail(code, "reading");
  }
  return false;
}

void Statement::Run() {
  const int code = sqlite3_step(handle_);
  // The code of the step decides: reset repeats it.
  sqlite3_reset(handle_);
  if (code != SQLITE_DONE && code != SQLITE_ROW) database_.Fail(code, "writing");
}

}  // namespace acltape::storage
