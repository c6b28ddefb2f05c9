// Counts which options the calls of a test program gave: for each argument of each operator,
// whether it was given and left out, and its values where it is a number, a truth value or a text.
// Only calls that succeeded count.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {

struct OptionUse {
  bool given = false, left_out = false;
  std::set<std::string> values;  // the first ones
};

struct OperatorUse {
  std::vector<OptionUse> arguments;  // in the operator table's order
  Args last_call;
};
using OptionsCensus = std::map<std::string, OperatorUse>;  // by operator

OptionsCensus& Census();

// An observer of calls that succeeded.
void CountOptions(const char* name, const Args& args);

}  // namespace acltape::opapi
