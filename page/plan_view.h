// The plan that a page shows: where it comes from, its regions and figures, the step as a graph of
// calls, and the memory of its captured graphs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyzer/calls/work.h"
#include "storage/reader.h"

namespace acltape::page {

// `work` is one of leaves (LoadLeaves), with steps where the program has them. `plan_file` is a
// plan to show; empty: the newest plan that the trace holds, else one is made in memory. Throws
// Error kUsage, one sentence, when a given file is not fit for the trace.
nlohmann::json PlanView(const storage::Reader& trace, const analyzer::Work& work,
                        const std::string& plan_file);

}  // namespace acltape::page
