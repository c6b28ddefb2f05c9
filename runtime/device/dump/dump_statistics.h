// Numbers about tensors in place of their elements (DMP-06), as lines of a CSV file.
#pragma once

#include <string>
#include <vector>

#include "runtime/kernel_dump.h"

namespace acltape::device {

// One line of titles, then one for each tensor. `names` chooses the numbers; empty: the usual ones.
std::string StatisticsOf(const char* op, const std::vector<SoftTensor>& tensors,
                         const std::vector<std::string>& names);

}  // namespace acltape::device
