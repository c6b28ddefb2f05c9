// One aclnn call with its arguments bound to device addresses. Eager execution launches it; a
// capture stores it.
//
// Run does the same work for each call as an eager framework: it makes the descriptors, asks for
// the workspace size, launches, and destroys the descriptors.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "acl/invoke/operator_table.h"
#include "analyzer/lowering/lowering.h"
#include "replayer/device/device.h"
#include "replayer/device/scalar_value.h"

namespace acltape::replayer {

// The device cannot run an operator with these arguments. The text says why.
class UnsupportedOperator : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the address of element 0 of a tensor.
using AddressOf = std::function<uint8_t*(const analyzer::lowering::LoweredTensor&)>;

// Workspace for the calls of one stream. The calls run one after the other, so one block is enough
// for all. Captured graphs keep its address, so it must not grow after a capture (see Freeze).
class Workspace {
 public:
  explicit Workspace(Device& device) : device_(device) {}
  // Returns at least `bytes` of workspace. If the block must grow, the old one is freed after the
  // stream has drained.
  void* Reserve(uint64_t bytes);
  // From now on Reserve throws Error instead of growing.
  void Freeze(bool frozen) { frozen_ = frozen; }
  uint64_t bytes() const { return block_.bytes(); }

 private:
  Device& device_;
  Block block_;
  bool frozen_ = false;
};

class BoundCall {
 public:
  // Throws UnsupportedOperator if the library lacks the operator or an argument does not fit its
  // signature.
  BoundCall(const Device& device, const analyzer::lowering::Invocation& invocation,
            const AddressOf& address_of);

  // Runs only the first phase and drops its executor. Returns the bytes of workspace that the
  // operator asks for. Throws UnsupportedOperator if the first phase refuses.
  uint64_t Probe(const Device& device) const;

  // Runs both phases. `reserve` gives the requested bytes of workspace. Throws UnsupportedOperator
  // if the first phase refuses, Error if the launch fails.
  using Reserve = std::function<void*(uint64_t bytes)>;
  void Run(const Device& device, aclrtStream stream, const Reserve& reserve) const;

  const acl::OperatorInfo& info() const { return *info_; }

 private:
  struct Tensor {
    bool present = false;
    aclDataType dtype = ACL_FLOAT;
    aclFormat format = ACL_FORMAT_ND;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    std::vector<int64_t> storage;  // dims
    int64_t offset = 0;            // integers of 4 bits in front of the first one in its byte
    uint8_t* address = nullptr;
  };
  struct Argument {
    acl::ArgKind kind = acl::ArgKind::kInt64;
    bool absent = false;  // passed as null
    std::vector<Tensor> tensors;
    acl::ArgValue plain{};  // numbers
    std::vector<ScalarValue> scalars;
    std::string text;
    std::vector<int64_t> integers;
    std::vector<float> floats;
    std::vector<uint8_t> flags;
  };
  class Objects;

  static void AddScalar(const acl::ArgInfo& info, const analyzer::lowering::LoweredValue& value,
                        const ScalarValue& scalar, Argument& argument);
  aclOpExecutor* Prepare(const Device& device, const Objects& objects,
                         uint64_t* workspace_bytes) const;
  Argument Convert(const acl::ArgInfo& info, const analyzer::lowering::LoweredValue& value,
                   const AddressOf& address_of) const;

  const acl::OperatorInfo* info_ = nullptr;
  acl::OperatorFunctions functions_;
  std::vector<Argument> arguments_;
};

}  // namespace acltape::replayer
