// The rows of a statement over a trace as a stream of columns, in the C interface of Arrow. Another
// library of the same process takes them in batches, so that the rows of any trace fit in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/arrow/arrow_abi.h"
#include "storage/arrow/column.h"
#include "storage/reader.h"

namespace acltape::storage::arrow {

// A batch ends after so many rows, or after so many bytes of text in one of its columns.
constexpr int64_t kBatchRows = 65536;
constexpr int64_t kBatchTextBytes = int64_t{64} << 20;

// Rows that are read from a trace: what they are called in sentences, and the type of each column.
struct RowQuery {
  std::string sql;
  std::string table;
  std::vector<ColumnType> types;
};

// Starts to read. Throws Error kTrace if the statement cannot be prepared, kInternal if it has
// another number of columns. `stream` holds the reader until it is released, and belongs to one
// thread at a time, as the reader does. A value of another type than its column ends the stream
// with EINVAL and one sentence.
void OpenRowStream(std::shared_ptr<const Reader> reader, const RowQuery& query,
                   std::shared_ptr<int64_t> replaced_texts, ArrowArrayStream* stream);

}  // namespace acltape::storage::arrow
