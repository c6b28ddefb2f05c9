// Writes every view of a trace as a parquet file. The Python package acltape does it, with pyarrow.
#pragma once

#include <string>

#include "cli/terminal/table.h"

namespace acltape::cli {

// One row for each file. Throws Error kUsage if the folder cannot be used, kDevice if no
// interpreter with pyarrow is there: its sentence says what to install.
Table ExportParquet(const std::string& trace, const std::string& folder, bool overwrite);

}  // namespace acltape::cli
