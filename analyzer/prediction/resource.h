// Which part of the device an operator keeps busy: a table of operator names.
#pragma once

#include <string_view>

#include "analyzer/streams/dag.h"

namespace acltape::analyzer {

// `op` is a name with or without its overload: "aten::addmm.out", "aclnnMm", "aclrtMemcpyAsync".
// Operators that no row names are vector work.
Resource ResourceOf(std::string_view op);

}  // namespace acltape::analyzer
