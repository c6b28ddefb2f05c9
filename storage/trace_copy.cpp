#include "storage/trace_copy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "storage/internal_error.h"
#include "storage/payload.h"
#include "storage/payload_rows.h"
#include "storage/schema.h"
#include "storage/side_files.h"
#include "storage/stored_totals.h"
#include "storage/tables.h"

namespace acltape::storage {
namespace {

void RemoveSides(const std::string& path) {
  for (const char* suffix : kSqliteSuffixes) unlink((path + suffix).c_str());
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

// Throws Error kTrace if the file of a trace is damaged, or if a row of it is none of acltape's.
void RefuseFaulty(const Reader& trace) {
  if (trace.database().Text("PRAGMA main.quick_check(1)") != "ok") {
    throw Error(ErrorKind::kTrace, DamagedText(trace.path(), "its pages do not fit together"));
  }
  trace.VisitCalls(/*leaves_only=*/false, [](const Call& /*call*/) {});
  static_cast<void>(trace.SignatureArguments(0));
  static_cast<void>(trace.Steps());
  static_cast<void>(trace.Snapshots());
}

// Says of an error in a copy what went wrong there, without what the user of a foreign trace is
// told to do.
[[noreturn]] void BlameAcltape(const Error& error, SourcePlace place) {
  const std::string said = error.what();
  throw InternalError(fmt::format("the new trace, as it was written, cannot be used: {}",
                                  said.substr(0, said.rfind("; "))),
                      place);
}

}  // namespace

TraceCopy::TraceCopy(const Reader& source, const std::string& path, bool overwrite,
                     const std::vector<std::string>& reads)
    : source_(&source),
      file_(path,
            {.overwrite = overwrite, .trace = source.path(), .reads = reads, .is_trace = true}) {
  try {
    database_ = std::make_unique<Database>(
        partial_path(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI);
    // Nobody else looks at the file before it is done, and a failed copy is thrown away.
    database_->Execute(
        fmt::format("PRAGMA page_size={}; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                    "PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY;",
                    source.database().Integer("PRAGMA page_size"))
            .c_str());
    CreateSchema(*database_);
    IndexPayloads(*database_);  // contents are looked for while they are added
    Attach();
    SetMeta("schema_version", std::to_string(kSchemaVersion));
  } catch (const Error&) {
    database_.reset();
    RemoveSides(partial_path());
    throw;
  }
}

TraceCopy::~TraceCopy() {
  database_.reset();
  if (!partial_path().empty()) RemoveSides(partial_path());
}

void TraceCopy::Attach() {
  Statement attach(*database_, "ATTACH ?1 AS source");
  const std::string uri = ReadOnlyUri(source_->path());
  attach.Bind(1, std::string_view(uri));
  attach.Run();
  database_->Execute("BEGIN");
}

void TraceCopy::NextSource(const Reader& source) {
  Written([&] { database_->Execute("COMMIT; DETACH source"); }, SourcePlace::Here());
  source_ = &source;
  Attach();
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
                         const std::map<std::string, std::string>& replaced, SourcePlace place) {
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
  Written([&] { database_->Execute(sql.c_str()); }, place);
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
  PayloadRows(*database_, "main.").Add(digest, data, bytes, {});
  return digest;
}

void TraceCopy::Close(SourcePlace place) {
  Written(
      [&] {
        database_->Execute("COMMIT");
        database_->Execute("DETACH source");
        AddUpCalls(*database_);
        AddUpSteps(*database_);
        CreateIndexes(*database_);
      },
      place);
  database_.reset();
}

void TraceCopy::Written(const std::function<void()>& write, SourcePlace place) {
  try {
    write();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTrace) throw;
    RefuseFaulty(*source_);
    BlameAcltape(error, place);
  }
}

std::unique_ptr<Reader> TraceCopy::ReadBack(const std::function<void(const Reader& trace)>& read,
                                            SourcePlace place) const {
  try {
    auto copy = std::make_unique<Reader>(partial_path(), source_->part());
    read(*copy);
    return copy;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTrace) throw;
    read(*source_);
    BlameAcltape(error, place);
  }
}

void TraceCopy::Accept() {
  file_.Accept();
  // Journals of a trace that had the name before do not belong to this one.
  RemoveSides(file_.path());
}

}  // namespace acltape::storage
