// Where the time of each step goes, as the named query step_breakdown tells.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "storage/reader.h"

namespace acltape::page {

// {"rows": [...], "why_none": text}. Steps that the trace does not store are put beside it for the
// query.
nlohmann::json BreakdownOf(const storage::Reader& trace, const std::vector<storage::Step>& steps);

}  // namespace acltape::page
