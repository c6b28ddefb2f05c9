// Encodes the arguments and returns of a leaf as signature bytes and slots
// (recorder/wire/records.h).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "recorder/torch/op_info.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

// Appends one value; tensors take the next slots.
void EncodeValue(ThreadState& state, const c10::IValue& value, NumberMeaning meaning);

// Writes the encoding of a tensor, kTensor tag included, to `out`; returns its end. `out` has room
// for TensorEncodingBytes.
std::byte* EncodeTensor(const at::Tensor& tensor, uint16_t slot, std::byte* out);
inline size_t TensorEncodingBytes(int64_t rank) { return 14 + 16 * static_cast<size_t>(rank); }

}  // namespace acltape::torch_plugin
