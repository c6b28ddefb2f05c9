// Keeps tensor contents of a leaf as the payload policy asks: inputs before the call, outputs
// after.
#pragma once

#include <ATen/core/stack.h>

#include "recorder/torch/allocator.h"
#include "recorder/torch/op_info.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

class LeafValues {
 public:
  LeafValues(ThreadState& state, const OpInfo& info, uint64_t call_id)
      : state_(state), info_(info), call_id_(call_id) {}

  // Policies inputs and all: keeps buffers whose content no recorded call made, and looks for
  // buffers that changed between recorded calls.
  void BeforeCall(const torch::jit::Stack& stack, size_t first_argument);
  // Policies digest and all: keeps the outputs. Outputs of random operators are kept by inputs too.
  void AfterCall(const torch::jit::Stack& stack, size_t first_return, size_t argument_slots);

 private:
  void KeepInput(const at::Tensor& tensor, const ArgumentInfo& argument);
  void CheckUnchanged(BufferHeader* header, const void* data);
  void KeepBuffer(BufferHeader* header, const void* data, bool changed);
  void KeepOutput(const at::Tensor& tensor, int position);

  ThreadState& state_;
  const OpInfo& info_;
  uint64_t call_id_;
  std::vector<std::pair<at::Tensor, int>> written_;  // arguments that the call writes
};

}  // namespace acltape::torch_plugin
