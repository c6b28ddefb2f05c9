// Calls of operators with many arguments, by the names of their arguments.
#pragma once

#include <map>
#include <string>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {

using Named = std::map<std::string, Arg>;

inline bool HasArgument(const std::string& op, const std::string& name) {
  const acl::OperatorInfo& info = *acl::FindOperator(op);
  for (uint32_t i = 0; i < info.arg_count; ++i) {
    if (info.args[i].name == name) return true;
  }
  return false;
}

// The arguments of a call in the operator table's order. Those that are not named are absent, 0 or,
// where they are real, 1.
inline Args InOrder(const std::string& op, const Named& named) {
  const acl::OperatorInfo& info = *acl::FindOperator(op);
  Args args;
  size_t found = 0;
  for (uint32_t i = 0; i < info.arg_count; ++i) {
    const auto given = named.find(std::string(info.args[i].name));
    if (given != named.end()) {
      args.push_back(given->second);
      ++found;
    } else if (info.args[i].kind == acl::ArgKind::kInt64) {
      args.emplace_back(int64_t{0});
    } else if (info.args[i].kind == acl::ArgKind::kDouble) {
      args.emplace_back(1.0);
    } else {
      args.emplace_back(Null{});
    }
  }
  EXPECT_EQ(found, named.size()) << op << " lacks an argument of the call";
  return args;
}

inline int RunNamed(const std::string& op, const Named& named) {
  return RunOperator(op.c_str(), InOrder(op, named));
}

// The first phase refuses the call with this sentence about an argument when `changes` are made to
// it, and takes it as it is.
struct RefusedChange {
  Named changes;
  std::string message;
};
inline void ExpectChangesRefused(const std::string& op, const Named& valid,
                                 const std::vector<RefusedChange>& refused) {
  EXPECT_EQ(RunNamed(op, valid), 0) << op << ": " << LastMessage();
  for (const RefusedChange& one : refused) {
    Named changed = valid;
    for (const auto& [name, arg] : one.changes) changed[name] = arg;
    EXPECT_EQ(RunNamed(op, changed), kReject) << op << ": " << one.message;
    EXPECT_EQ(LastMessage(), op + ": " + one.message);
  }
}

}  // namespace acltape::opapi
