// Finds memory that nothing wrote and whose content reaches the host: an empty tensor of which only
// a part is filled, and that is then used whole. Fresh memory often looks right, so that such a
// value is wrong at times.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

struct UndefinedRead {
  uint32_t allocation = 0;  // the entry that made the memory
  uint32_t reader = 0;      // the first entry that reads bytes of it which nothing wrote
  uint32_t host_read = 0;   // the entry that brings a value made of them to the host
  int64_t elements = 0;     // how many of the elements that `reader` reads
  int64_t of_elements = 0;
};

// Follows undefined elements through copies, element-wise work, reductions and products of
// matrices. What any other operator makes of them is not known, and counts as defined: attention
// over a padded cache, or work that reads by index or mask, need not read them. So does memory that
// calls without leaves write; a program that launches kernels past the table of operators has no
// rows. Only memory of a device counts. There is at most one row for each line that allocates.
std::vector<UndefinedRead> FindUndefinedReads(const OwnGraphs& graphs);

}  // namespace acltape::analyzer::executions
