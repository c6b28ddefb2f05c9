// Tensors in FRACTAL_NZ (acl/invoke/blocked_layout.h). Kernels see matrices in plain order: a call
// with such a tensor is bound to a stand-in with memory of its own, which is filled from the blocks
// before the kernel runs, and written back to them after it. So every operator takes such tensors.
#pragma once

#include <memory>
#include <vector>

#include "acl/invoke/blocked_layout.h"
#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/engine/kernel.h"

namespace acltape::opapi {

struct BlockedStandIn;

class BlockedArguments {
 public:
  // Finds the tensors that lie in blocks among the arguments of a call, also in lists. Throws
  // RejectedCall when one has strides that no matrix in blocks can have.
  BlockedArguments(const acl::OperatorInfo& op, const acl::ArgValue* args);
  BlockedArguments(const BlockedArguments&) = delete;
  BlockedArguments& operator=(const BlockedArguments&) = delete;
  ~BlockedArguments();

  bool any() const;
  // The call's arguments with stand-ins for those tensors.
  const acl::ArgValue* values() const;
  // The kernel, which was bound to values(), with the moves between blocks and stand-ins around it.
  std::unique_ptr<Kernel> Around(std::unique_ptr<Kernel> kernel);

 private:
  struct Found;
  std::unique_ptr<Found> found_;
};

// Writes the elements of a plain matrix into the blocks at `storage`, and zeros into their padding;
// or reads them. `dense` has the dims [batch, rows, columns] of the layout.
void WriteBlocks(void* storage, const acl::BlockedLayout& layout, const at::Tensor& dense);
void ReadBlocks(const void* storage, const acl::BlockedLayout& layout, const at::Tensor& dense);

}  // namespace acltape::opapi
