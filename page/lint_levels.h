// The findings of lint at both levels of a trace, as `acltape lint` gives them without options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/lint/lint.h"
#include "storage/reader.h"

namespace acltape::page {

// One level. The findings name its rules; their calls are of its work.
struct LevelFindings {
  std::unique_ptr<storage::Reader> reader;  // null: the trace that was given
  std::unique_ptr<analyzer::Work> work;
  std::vector<analyzer::lint::Finding> findings;
};

// The level at which captures are made comes first. Where that is the ACL interface's and the trace
// holds leaves of PyTorch too, these follow, without what the first level names at the same line.
// Where the program captures graphs itself, they are about what goes on between its graphs.
std::vector<LevelFindings> FindAtAllLevels(const storage::Reader& trace);

}  // namespace acltape::page
