// The part of the device that an operator keeps busy, from the tables of operators
// (meaning/torch_operators.h, meaning/acl_operators.h).
#pragma once

#include <string_view>

#include "analyzer/streams/dag.h"

namespace acltape::analyzer::prediction {

// `op` is a name with or without its overload: "aten::addmm.out", "aclnnMm", "aclrtMemcpyAsync". An
// operator that no row names is vector work.
streams::Resource ResourceOf(std::string_view op);

}  // namespace acltape::analyzer::prediction
