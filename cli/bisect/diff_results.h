// Keeps the findings of a diff in the trace that is the reference.
#pragma once

#include <string>

#include "analyzer/diff/diff.h"
#include "storage/results.h"

namespace acltape::cli {

// A run of mode "diff" and a row of `comparison` for each aligned call whose results are not equal:
// step, call and position of A, the metrics with what the diff says of it. `b`: path of the other
// trace. Commits.
void KeepDiff(const storage::Reader& a, const std::string& b,
              const analyzer::diff::DiffReport& report, storage::Results& results);

}  // namespace acltape::cli
