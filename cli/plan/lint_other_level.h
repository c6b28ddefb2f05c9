// Lint tells what it finds at the level that it was not asked for. A trace over an adapter holds
// two levels, and the finding that names the cause may lie at the other one.
#pragma once

#include <functional>
#include <string>

#include "analyzer/lint/lint.h"
#include "storage/reader.h"

namespace acltape::cli {

using WantedStretches =
    std::function<std::function<bool(const analyzer::lint::Stretch&)>(const analyzer::Work& work)>;

// One line; empty if nobody asked for a level, or the trace holds one alone. A large trace is not
// looked at a second time. Findings that `counts` refuses are left out, and so are failures of the
// recording, which belong to no level. `again` is the command at the other level.
std::string FoundAtTheOtherLevel(const storage::Reader& trace, analyzer::lint::LintOptions options,
                                 const WantedStretches& wanted,
                                 const std::function<bool(const analyzer::lint::Finding&)>& counts,
                                 const std::function<std::string(std::string_view level)>& again);

}  // namespace acltape::cli
