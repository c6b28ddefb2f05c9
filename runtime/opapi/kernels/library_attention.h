// The library's own fused attention, which libtorch 2.x has for the CPU. Its bits are what a
// program on the CPU computed, so it is taken wherever it can say what the operator says.
#pragma once

#include <optional>

#include "runtime/opapi/kernels/attention.h"

namespace acltape::opapi {

// Like Attend. Gives nothing where the library has no such operator or cannot do what the terms ask
// for: it knows a bias that is added to scaled scores, or a causal mask counted from the first
// positions.
std::optional<AttentionResult> LibraryAttend(const at::Tensor& query, const at::Tensor& key,
                                             const at::Tensor& value, const AttentionTerms& terms);

// Like AttendBackward, without the bias's gradient. `out` is the forward pass's result.
std::optional<AttentionGradients> LibraryAttendBackward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& out, const at::Tensor& maximum,
    const at::Tensor& sum, const AttentionTerms& terms);

// A maximum near `maximum` and a sum for which maximum + log(sum) is exactly `logsumexp`, in its
// dtype; (logsumexp, 1) where there are none. Both of logsumexp's shape.
std::pair<at::Tensor, at::Tensor> SplitLogSumExp(const at::Tensor& logsumexp,
                                                 const at::Tensor& maximum);

}  // namespace acltape::opapi
