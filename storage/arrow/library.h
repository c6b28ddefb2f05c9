// The library libacltape_columns: a trace opened as every command opens it, and its rows as a
// stream of Arrow. Its functions are C, for interpreters of other languages.
//
// Each function returns 0, or the exit code of the command that would meet the failure
// (storage/error.h); acltape_columns_error then gives the sentence. One thread at a time.
#pragma once

#include <cstdint>

#include "storage/arrow/arrow_abi.h"

extern "C" {

struct acltape_columns;  // an open trace

#define ACLTAPE_COLUMNS_API __attribute__((visibility("default")))

// The last failure of this thread.
ACLTAPE_COLUMNS_API const char* acltape_columns_error();
// Opens the trace, and begins to read it as it is now: rows that come later are not seen.
ACLTAPE_COLUMNS_API int acltape_columns_open(const char* path, acltape_columns** trace);
ACLTAPE_COLUMNS_API void acltape_columns_close(acltape_columns* trace);
// JSON (trace_facts.h). Valid until the next call with this trace.
ACLTAPE_COLUMNS_API int acltape_columns_facts(acltape_columns* trace, const char** json);
// The rows of a statement. `table` names them in sentences, and `types` has a letter for each
// column (column.h). The stream may outlive the trace.
ACLTAPE_COLUMNS_API int acltape_columns_rows(acltape_columns* trace, const char* sql,
                                             const char* table, const char* types,
                                             ArrowArrayStream* stream);
// Texts of all streams of this trace so far in which bytes that are no UTF-8 were replaced.
ACLTAPE_COLUMNS_API int64_t acltape_columns_replaced_texts(const acltape_columns* trace);
// Writes a trace of one rank of the trace, as `acltape record --per-rank` has them.
ACLTAPE_COLUMNS_API int acltape_columns_split(acltape_columns* trace, int64_t rank,
                                              const char* path);

}  // extern "C"
