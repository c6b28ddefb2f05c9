// The facts of a call that a dump needs (runtime/kernel_dump.h). The first phase keeps it, because
// the program may destroy its tensors before the task runs.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "acl/invoke/operator_table.h"
#include "runtime/kernel_dump.h"

struct aclTensor;

namespace acltape::opapi {

class DumpedCall {
 public:
  // `what` is what SoftDumps() gave.
  DumpedCall(const acl::OperatorInfo& op, const acl::ArgValue* args, uint32_t what);

  // Called around the run of the kernel.
  void Before() const;
  void After() const;

 private:
  void AddTensor(const aclTensor* tensor, acl::Direction direction);

  const acl::OperatorInfo& op_;
  std::deque<std::vector<int64_t>> shapes_;  // stay where they are
  std::vector<SoftTensor> tensors_;
  std::string arguments_;
};

}  // namespace acltape::opapi
