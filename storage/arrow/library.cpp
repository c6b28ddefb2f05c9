#include "storage/arrow/library.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "storage/arrow/row_stream.h"
#include "storage/arrow/step_of_call.h"
#include "storage/arrow/trace_facts.h"
#include "storage/database.h"
#include "storage/internal_error.h"
#include "storage/reader.h"
#include "storage/split.h"

using acltape::Error;
using acltape::ErrorKind;
using acltape::InternalError;
namespace arrow = acltape::storage::arrow;
namespace storage = acltape::storage;

struct acltape_columns {
  std::shared_ptr<storage::Reader> reader;
  std::shared_ptr<int64_t> replaced_texts = std::make_shared<int64_t>(0);
  std::string facts;
};

namespace {

thread_local std::string last_error;

// Nothing is thrown into a program of another language.
template <typename Work>
int Guard(const Work& work) {
  try {
    work();
    return 0;
  } catch (const Error& error) {
    last_error = error.what();
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";
    return static_cast<int>(ErrorKind::kDevice);
  } catch (const std::exception& error) {
    last_error = error.what();
    return static_cast<int>(ErrorKind::kInternal);
  }
}

arrow::RowQuery QueryOf(const char* sql, const char* table, std::string_view types) {
  arrow::RowQuery query{.sql = sql, .table = table, .types = {}};
  for (const char letter : types) {
    const auto type = static_cast<arrow::ColumnType>(letter);
    if (arrow::FormatOf(type) == nullptr) throw InternalError("a column of an unknown type");
    query.types.push_back(type);
  }
  return query;
}

}  // namespace

const char* acltape_columns_error() { return last_error.c_str(); }

int acltape_columns_open(const char* path, acltape_columns** trace) {
  return Guard([&] {
    auto opened = std::make_unique<acltape_columns>();
    opened->reader = std::make_shared<storage::Reader>(std::string(path));
    // A first statement after BEGIN settles which state of the file is read.
    opened->reader->database().Execute("BEGIN");
    arrow::AddStepOfCall(opened->reader->database());
    *trace = opened.release();
  });
}

void acltape_columns_close(acltape_columns* trace) { delete trace; }

int acltape_columns_facts(acltape_columns* trace, const char** json) {
  return Guard([&] {
    trace->facts = arrow::TraceFacts(*trace->reader);
    *json = trace->facts.c_str();
  });
}

int acltape_columns_rows(acltape_columns* trace, const char* sql, const char* table,
                         const char* types, ArrowArrayStream* stream) {
  return Guard([&] {
    arrow::OpenRowStream(trace->reader, QueryOf(sql, table, types), trace->replaced_texts, stream);
  });
}

int64_t acltape_columns_replaced_texts(const acltape_columns* trace) {
  return *trace->replaced_texts;
}

int acltape_columns_split(acltape_columns* trace, int64_t rank, const char* path) {
  return Guard([&] {
    for (const storage::RankProcesses& of : storage::ProcessesByRank(*trace->reader)) {
      if (of.rank != rank) continue;
      storage::CopyProcesses(*trace->reader, of, path, /*overwrite=*/true);
      return;
    }
    throw Error(ErrorKind::kUsage, fmt::format("'{}' has no rank {}", trace->reader->path(), rank));
  });
}
