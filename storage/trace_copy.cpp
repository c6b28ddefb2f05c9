#include "storage/trace_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "meaning/options.h"
#include "storage/payload.h"
#include "storage/payload_rows.h"
#include "storage/schema.h"
#include "storage/stored_totals.h"
#include "storage/tables.h"

namespace acltape::storage {
namespace {

void RemoveFiles(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) unlink((path + suffix).c_str());
}

// The path as an SQLite URI that is only read.
std::string ReadOnlyUri(const std::string& path) {
  std::string uri = "file:";
  if (!path.starts_with('/')) uri += "./";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::strchr("/._-", c) != nullptr) {
      uri += c;
    } else {
      uri += fmt::format("%{:02x}", byte);
    }
  }
  return uri + "?mode=ro";
}

void CheckTarget(const Reader& source, const std::string& path, bool overwrite) {
  struct stat status;
  struct stat origin;
  if (stat(path.c_str(), &status) != 0) return;
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorKind::kUsage, fmt::format("'{}' is a folder; name a file", path));
  }
  if (stat(source.path().c_str(), &origin) == 0 && origin.st_dev == status.st_dev &&
      origin.st_ino == status.st_ino) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' is the trace itself; name another file", path));
  }
  if (!overwrite) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' exists already; use @force to overwrite it"_cli, path));
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kUsage, fmt::format("'{}' is not a regular file", path));
  }
}

}  // namespace

TraceCopy::TraceCopy(const Reader& source, const std::string& path, bool overwrite)
    : path_(path), partial_(path + ".partial") {
  CheckTarget(source, path, overwrite);
  RemoveFiles(partial_);
  const int file = open(partial_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) {
    throw Error(ErrorKind::kDevice,
                fmt::format("cannot create '{}' ({})", partial_, std::strerror(errno)));
  }
  close(file);
  try {
    database_ = std::make_unique<Database>(
        partial_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI);
    // Nobody else looks at the file before it is done, and a failed copy is thrown away.
    database_->Execute(
        "PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
        "PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY;");
    CreateSchema(*database_);
    Statement attach(*database_, "ATTACH ?1 AS source");
    const std::string uri = ReadOnlyUri(source.path());
    attach.Bind(1, std::string_view(uri));
    attach.Run();
    database_->Execute("BEGIN");
    SetMeta("schema_version", std::to_string(kSchemaVersion));
  } catch (const Error&) {
    database_.reset();
    RemoveFiles(partial_);
    throw;
  }
}

TraceCopy::~TraceCopy() {
  database_.reset();
  if (!partial_.empty()) RemoveFiles(partial_);
}

std::vector<std::string> TraceCopy::CommonColumns(std::string_view table) {
  std::vector<std::string> columns;
  Statement list(*database_,
                 "SELECT a.name FROM pragma_table_info(?1, 'main') a "
                 "JOIN pragma_table_info(?1, 'source') b ON a.name = b.name ORDER BY a.cid");
  list.Bind(1, table);
  while (list.Next()) columns.emplace_back(list.Text(0));
  return columns;
}

void TraceCopy::CopyRows(std::string_view table, const std::string& condition,
                         const std::map<std::string, std::string>& replaced) {
  const std::vector<std::string> columns = CommonColumns(table);
  if (columns.empty()) return;
  std::vector<std::string> values;
  for (const std::string& column : columns) {
    const auto other = replaced.find(column);
    values.push_back(other == replaced.end() ? column : other->second);
  }
  const std::string sql =
      fmt::format("INSERT OR REPLACE INTO main.{0}({1}) SELECT {2} FROM source.{0}{3}", table,
                  fmt::join(columns, ","), fmt::join(values, ","),
                  condition.empty() ? std::string() : " WHERE " + condition);
  database_->Execute(sql.c_str());
}

void TraceCopy::SetMeta(const std::string& key, const std::string& value) {
  RowInsert<tables::kMeta> set(*database_, kReplace, "", "main.");
  set.Set<"key">(key);
  set.Set<"value">(value);
  set.Run();
}

std::string TraceCopy::AddPayload(const void* data, size_t bytes) {
  std::string digest = DigestOf(data, bytes);
  Statement known(*database_, "SELECT 1 FROM main.payload WHERE digest = ?");
  known.Bind(1, std::string_view(digest));
  if (known.Next()) return digest;
  PayloadRows(*database_, "main.").Add(digest, data, bytes, kQuickCompression);
  return digest;
}

void TraceCopy::Close() {
  database_->Execute("COMMIT");
  database_->Execute("DETACH source");
  AddUpCalls(*database_);
  AddUpSteps(*database_);
  CreateIndexes(*database_);
  database_.reset();
}

void TraceCopy::Accept() {
  if (rename(partial_.c_str(), path_.c_str()) != 0) {
    throw Error(ErrorKind::kDevice,
                fmt::format("cannot name the new trace '{}' ({})", path_, std::strerror(errno)));
  }
  // Journals of a trace that had the name before do not belong to this one.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) unlink((path_ + suffix).c_str());
  partial_.clear();
}

}  // namespace acltape::storage
