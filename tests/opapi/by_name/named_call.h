// Calls an operator by its name (aclop) on tensors of libtorch, as an adapter does: tensors in
// device memory, numbers in host memory, and attributes.
#pragma once

#include <string>
#include <vector>

#include "acl/acl_op_compiler.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {

class NamedCall {
 public:
  explicit NamedCall(const char* name);
  NamedCall(const NamedCall&) = delete;
  NamedCall& operator=(const NamedCall&) = delete;
  ~NamedCall();

  // An input in device memory.
  NamedCall& In(const at::Tensor& tensor, aclFormat format = ACL_FORMAT_ND) {
    return Add(inputs_, tensor, ACL_MEMTYPE_DEVICE, format);
  }
  // A matrix in FRACTAL_NZ, whose blocks are the tensor.
  NamedCall& InBlocks(const at::Tensor& blocks, const std::vector<int64_t>& shape);
  // An input in host memory.
  NamedCall& Host(const at::Tensor& tensor) {
    return Add(inputs_, tensor, ACL_MEMTYPE_HOST, ACL_FORMAT_ND);
  }
  NamedCall& Host(const std::vector<int64_t>& numbers);
  // An input that is given by aclSetTensorConst, without memory.
  NamedCall& Constant(const std::vector<int64_t>& numbers);
  // An optional input that is left out.
  NamedCall& None();
  NamedCall& Out(const at::Tensor& tensor, aclFormat format = ACL_FORMAT_ND) {
    return Add(outputs_, tensor, ACL_MEMTYPE_DEVICE, format);
  }
  NamedCall& OutInBlocks(const at::Tensor& blocks, const std::vector<int64_t>& shape);
  // The buffer of the last input or output ends after so many bytes.
  NamedCall& InputOf(size_t bytes);
  NamedCall& OutputOf(size_t bytes);

  NamedCall& Set(const char* name, bool value);
  NamedCall& Set(const char* name, int64_t value);
  NamedCall& Set(const char* name, float value);
  NamedCall& Set(const char* name, const char* value);
  NamedCall& Set(const char* name, const std::vector<int64_t>& values);
  NamedCall& Set(const char* name, const std::vector<float>& values);
  NamedCall& Set(const char* name, const std::vector<bool>& values);

  // The shape that the description of an output has now.
  std::vector<int64_t> OutputShape(size_t i) const;

  // Calls the operator; the call itself fails where arguments do not fit.
  aclError Launch(aclrtStream stream);
  // Calls the operator and waits for it. The message of a failure is in TakeMessage().
  aclError Run(aclrtStream stream = TestStream());
  // The same by the function that takes descriptions which nobody may change.
  aclError RunOlder(aclrtStream stream = TestStream());

 private:
  struct Side {
    std::vector<aclTensorDesc*> descs;
    std::vector<aclDataBuffer*> buffers;
    std::vector<at::Tensor> tensors;  // keeps their memory
  };
  NamedCall& Add(Side& side, const at::Tensor& tensor, aclMemType memory, aclFormat format);

  std::string name_;
  Side inputs_, outputs_;
  aclopAttr* attributes_;
};

}  // namespace acltape::opapi
