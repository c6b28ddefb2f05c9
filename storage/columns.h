// Says which tables, views and columns a trace has. Traces of earlier versions lack some.
#pragma once

#include <string_view>

#include "storage/reader.h"

namespace acltape::storage {

// True if the trace has a table or a view of this name with all of these columns ("a,b").
bool HasColumns(const Reader& trace, std::string_view table, std::string_view columns);

}  // namespace acltape::storage
