// Results on a stream that saturates (rule OVF-03): what a kernel has written as inf becomes the
// greatest number of its type, with its sign, and NaN becomes 0.
//
// All floating results are looked at when the kernel has run, also those of operators that only
// move elements. The numbers within a kernel are those of libtorch, where inf may have become
// something else before it is seen here.
#pragma once

#include <vector>

#include "acl/invoke/operator_table.h"
#include "runtime/kernel_launch.h"

struct aclTensor;

namespace acltape::opapi {

class SaturatedOutputs {
 public:
  // Notes where the results lie, because the program may destroy its tensors before the task runs.
  SaturatedOutputs(const acl::OperatorInfo& op, const acl::ArgValue* args);

  // False when results on the stream do not saturate.
  bool BeginOn(aclrtStream stream);

  // Called when the kernel has run.
  void Saturate() const;

 private:
  struct Results {
    char* first;
    aclDataType dtype;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;  // bytes
  };

  void Add(const aclTensor& tensor);

  std::vector<Results> results_;
  uint32_t* overflowed_ = nullptr;
};

}  // namespace acltape::opapi
