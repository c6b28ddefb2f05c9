// Keeps tensor contents of a leaf as the payload policy asks: inputs before the call, outputs
// after.
#pragma once

#include "recorder/torch/allocator.h"
#include "recorder/torch/digest.h"
#include "recorder/torch/op_info.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

class LeafValues {
 public:
  explicit LeafValues(ThreadState& state) : state_(state) {}

  // Called first, for each leaf.
  void Start(const OpInfo& info);

  // Policies inputs and all: keeps buffers whose content no recorded call made, and looks for
  // buffers that changed between recorded calls. The state's tensors are those of the arguments.
  void BeforeCall(uint64_t call_id);
  // Policies digest and all: keeps the outputs. Outputs of random operators are kept by inputs too.
  // Outputs on a device are left to the ACL level: Note [Values on a device].
  // The state's tensors are those of the returns.
  void AfterCall();
  // Called last, also for a leaf that failed: lets go of the tensors.
  void Finish() {
    written_.clear();
    exchanged_.clear();
  }

 private:
  void KeepInput(const at::Tensor& tensor, const ArgumentInfo& argument);
  void KeepDeviceBuffer(BufferHeader* header, const void* data);
  void CheckUnchanged(BufferHeader* header, const void* data);
  void KeepBuffer(BufferHeader* header, const void* data, bool changed);
  // `whole`: the digest of the tensor's buffer, if the tensor is all of it; else null.
  void KeepOutput(const at::Tensor& tensor, int position, const Digest* whole);

  // Marks the content of the tensor's memory as unknown, so that its next reader has it as an
  // input.
  static void Forget(const at::Tensor& tensor);

  ThreadState& state_;
  const OpInfo* info_ = nullptr;
  uint64_t call_id_ = 0;
  bool arrives_later_ = false;  // the device may still be writing the leaf's results on the host
  size_t argument_slots_ = 0;   // the state's first slots, those of the arguments
  std::vector<std::pair<at::Tensor, int>> written_;  // arguments that the call writes
  std::vector<at::Tensor> exchanged_;                // arguments that it may write, now or later
};

}  // namespace acltape::torch_plugin
