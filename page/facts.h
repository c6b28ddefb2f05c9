// Facts about the recording: the program, its processes, threads, streams and steps, and the totals
// of the whole trace.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "storage/reader.h"

namespace acltape::page {

// `steps` are those of the trace, or those that were found in it. The environment of the recorded
// program stays out: it may hold secrets, and nothing on the page needs it.
nlohmann::json FactsOf(const storage::Reader& trace, const std::vector<storage::Step>& steps);

// Leaves by operator, most time first, and the figures of a trace that stands beside another one.
nlohmann::json TotalsOf(const storage::Reader& trace);

}  // namespace acltape::page
