// Calls of kernels that the dispatcher does not see: PyTorch generated and compiled them. They are
// recorded like leaves, as operators of the dialect inductor, with what they read and write. What
// they compute is not known, so their results are kept like those of random operators.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "recorder/torch/leaf.h"

namespace acltape::torch_plugin {

// The open call of a thread. Its tensors live until its end: the kernel may hold the last
// reference.
struct OpaqueCall {
  std::vector<at::Tensor> tensors;
  std::optional<LeafScope> leaf;
};

}  // namespace acltape::torch_plugin

extern "C" {

// A kernel of this name begins on the calling thread; `version` tells kernels of one name apart.
// `tensors` are addresses of TensorImpl: first those that it reads, then those that it reads and
// writes, then those that it writes alone. 0: it is part of a leaf or the thread is not recorded,
// and acltape_torch_opaque_end must not be called.
int acltape_torch_opaque_begin(const char* name, const char* version, const uint64_t* tensors,
                               int read, int updated, int written);
void acltape_torch_opaque_end(int failed);

}  // extern "C"
