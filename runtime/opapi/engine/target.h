// Brings a kernel's result to its output. The output decides dtype and strides, and may be an
// input.
#pragma once

#include <array>
#include <initializer_list>

#include "runtime/opapi/engine/call.h"

namespace acltape::opapi {

// The order in which an operator reads its inputs while it writes its output. It decides whether an
// output may lie over an input.
enum class Access : uint8_t {
  kElementwise,  // element i of the output needs element i of the inputs only
  kFree,         // any order: an output that shares bytes with an input goes through a temporary
};

// An output with the decision, taken once when the call is bound, whether the operator writes into
// it directly or into a temporary in the computed dtype that is then converted and copied.
class Target {
 public:
  Target(at::Tensor out, at::ScalarType computed, Access access,
         std::initializer_list<const at::Tensor*> inputs);

  // Calls `fill(at::Tensor&)`, which must write the tensor it is given, resizing it when it is
  // empty; it must not let it refer to another tensor.
  template <typename Fill>
  void Write(const Fill& fill) const {
    if (direct_) {
      fill(const_cast<at::Tensor&>(out_));
    } else {
      at::Tensor result = at::empty({0}, at::TensorOptions(computed_));
      fill(result);
      out_.copy_(result);
    }
  }

  // Adds an input that the operator reads with `access`.
  void Read(const at::Tensor& input, Access access);

  bool direct() const { return direct_; }
  const at::Tensor& out() const { return out_; }
  at::ScalarType computed() const { return computed_; }

 private:
  at::Tensor out_;
  at::ScalarType computed_;
  bool direct_;
};

// Write for operators with several outputs: `fill(std::array<at::Tensor, N>&)`. All are written
// directly or none.
template <size_t N, typename Fill>
void WriteAll(const std::array<Target, N>& targets, const Fill& fill) {
  bool direct = true;
  for (const Target& target : targets) direct = direct && target.direct();
  std::array<at::Tensor, N> results;
  for (size_t i = 0; i < N; ++i) {
    results[i] =
        direct ? targets[i].out() : at::empty({0}, at::TensorOptions(targets[i].computed()));
  }
  fill(results);
  if (direct) return;
  for (size_t i = 0; i < N; ++i) targets[i].out().copy_(results[i]);
}

// Copies the results of an operator that has no out form into its outputs, skipping absent ones.
// The shapes may differ in dims of size 1.
inline void CopyResult(const at::Tensor& out, const at::Tensor& result) {
  if (!out.defined() || !result.defined()) return;
  out.copy_(out.sizes() == result.sizes() ? result : result.reshape(out.sizes()));
}

// True when the two views may share a byte (compares the ranges that they span).
bool MayOverlap(const at::Tensor& a, const at::Tensor& b);

}  // namespace acltape::opapi
