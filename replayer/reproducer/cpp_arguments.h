// The arguments of an operator call as C++ expressions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "acl/invoke/operator_table.h"
#include "analyzer/lowering/lowering.h"

namespace acltape::replayer {

// The address of element 0, as an expression.
using AddressText = std::function<std::string(const analyzer::LoweredTensor&)>;

// One expression per argument, in the operator's order, over an object `a` of the preamble's class
// Arguments. Throws Error kUsage when the operator cannot take an argument.
std::vector<std::string> ArgumentTexts(const acl::OperatorInfo& info,
                                       const analyzer::Invocation& invocation,
                                       const AddressText& address);

// "ACL_FLOAT", "{2, 3}", "1.5" (nan and infinities as macros of <cmath>), "\"text\"".
std::string DTypeText(storage::DType dtype);
std::string SizesText(const std::vector<int64_t>& sizes);
std::string RealText(double value, const char* suffix = "");
std::string QuotedText(const std::string& text);

}  // namespace acltape::replayer
