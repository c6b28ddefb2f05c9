// The table of the calls that failed in a recording, which several commands print, and what they
// say of them beside it.
#pragma once

#include <string>

#include "analyzer/lint/failures.h"
#include "cli/terminal/table.h"

namespace acltape::cli {

// First failures first, what follows from them below, teardown last. People get the first few.
Table FailuresTable(const analyzer::lint::Failures& failures, Format format);

// "; 3 calls failed and were handled (table failures)"; empty if no call was handled.
std::string HandledFailures(const analyzer::lint::Failures& failures);

}  // namespace acltape::cli
