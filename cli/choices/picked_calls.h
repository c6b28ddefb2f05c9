// The calls that a query is about, as a table for its SQL.
#pragma once

#include <string>

#include "storage/reader.h"

namespace acltape::cli {

// Makes the temporary table `picked` (call_id INTEGER PRIMARY KEY) of the calls that the selection
// picks in the part of the trace at which the reader looks, enclosing and interface calls too.
// `in_steps`: those of the steps alone. Throws Error kUsage for a wrong selection, or one that asks
// for steps or lines that the trace lacks.
void MakePickedTable(const storage::Reader& reader, const std::string& selection, bool in_steps);

}  // namespace acltape::cli
