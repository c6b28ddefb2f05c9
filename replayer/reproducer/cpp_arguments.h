// Writes the arguments of an operator call as C++ expressions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "acl/invoke/operator_table.h"
#include "analyzer/lowering/lowering.h"

namespace acltape::replayer::reproducer {

// Returns the address of element 0 as a C++ expression.
using AddressText = std::function<std::string(const analyzer::lowering::LoweredTensor&)>;

// Returns one expression per argument, in the operator's order. The expressions use an object `a`
// of the preamble's class Arguments. Throws Error kUsage if the operator cannot take an argument.
std::vector<std::string> ArgumentTexts(const acl::OperatorInfo& info,
                                       const analyzer::lowering::Invocation& invocation,
                                       const AddressText& address);

// Return texts such as "ACL_FLOAT", "{2, 3}", "1.5" (nan and infinities as macros of <cmath>) and
// "\"text\"".
std::string DTypeText(storage::DType dtype);
std::string SizesText(const std::vector<int64_t>& sizes);
std::string RealText(double value, const char* suffix = "");
std::string QuotedText(const std::string& text);

}  // namespace acltape::replayer::reproducer
