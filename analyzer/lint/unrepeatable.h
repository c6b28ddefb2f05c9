// Findings that tell why a recording holds values that no replay gives again: they came about by
// chance, as when the host fills a buffer while a copy still reads it, or when a call overtakes
// work that waits in a queue.
#pragma once

#include <vector>

#include "analyzer/lint/finding.h"
#include "storage/reader.h"

namespace acltape::analyzer::lint {

// Lints the trace at all levels that it has, whichever one is chosen, and returns what the rules of
// LINT-19, LINT-43, LINT-45, LINT-47 and LINT-48 find, in order of calls.
std::vector<Finding> FindUnrepeatableValues(const storage::Reader& trace);

}  // namespace acltape::analyzer::lint
