// Finds whether the program takes a time beside a line of its source. A wait there bounds that
// time, and no call of a trace shows it.
#pragma once

#include <cstdint>
#include <string>

#include "analyzer/program/source_lines.h"

namespace acltape::analyzer::waits {

enum class TimedSource : uint8_t {
  kNotRead,  // the source is not here, or was changed since
  kTimed,
  kNotTimed
};

// Looks at the three lines before and after it. `folder` is that in which the program ran, and
// `recorded_ns` when that was, by the clock of files. `line` may be null.
TimedSource LookForTimes(const SourceLine* line, const std::string& folder, int64_t recorded_ns);

}  // namespace acltape::analyzer::waits
