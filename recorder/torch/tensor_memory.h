// The memory of tensors that the recorder has no way to: of a device that is neither the host nor
// that of an ACL adapter, or in a form of its own. Such a tensor has no buffer in the trace, and
// its values are not kept; its layout names the memory instead.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

// The device that the tensor's object names. Asking the tensor could run Python.
c10::Device DeviceOfTensor(const at::TensorImpl& tensor);

// The name of the memory: "cuda:0", "mkldnn", "nested", "sparse", "opaque". Empty when the recorder
// knows it: the tensor has a buffer, or no elements and so no memory.
std::string UnknownMemory(const at::TensorImpl& tensor, bool has_buffer, bool opaque);

// Takes note that the leaf at hand ran on this device, unless it is the host.
void NoteDevice(ThreadState& state, c10::Device device);
// Does this for the device of one of its tensors. Unknown memory is named in the ledger once.
void NotePlace(ThreadState& state, const at::TensorImpl& tensor, const std::string& memory);

}  // namespace acltape::torch_plugin
