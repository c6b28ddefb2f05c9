// Rows that several writers of a trace share: recordings, results of tools, copies.
#pragma once

#include "storage/tables.h"
#include "storage/trace.h"

namespace acltape::storage {

// Adds a row. `statistics` may be null.
void AddRow(RowInsert<tables::kSnapshot>& row, const Snapshot& snapshot,
            const Statistics* statistics);
void AddRow(TableBatch<tables::kSnapshot>& row, const Snapshot& snapshot,
            const Statistics* statistics);
void AddRow(RowInsert<tables::kStep>& row, const Step& step);
void AddRow(RowInsert<tables::kLedger>& row, const LedgerEntry& entry);
// The layout's own id is not looked at.
void AddRow(RowInsert<tables::kLayout>& row, int64_t layout_id, const Layout& layout);

}  // namespace acltape::storage
