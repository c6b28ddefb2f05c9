#include "runtime/opapi/engine/target.h"

namespace acltape::opapi {
namespace {

struct Span {
  const char* first;
  const char* end;
};

Span SpanOf(const at::Tensor& tensor) {
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  const auto* first = static_cast<const char*>(tensor.data_ptr());
  return {first, first + (last + 1) * static_cast<int64_t>(tensor.element_size())};
}

bool SameView(const at::Tensor& a, const at::Tensor& b) {
  return a.data_ptr() == b.data_ptr() && a.scalar_type() == b.scalar_type() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace

bool MayOverlap(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  const Span x = SpanOf(a), y = SpanOf(b);
  return x.first < y.end && y.first < x.end;
}

Target::Target(at::Tensor out, at::ScalarType computed, Access access,
               std::initializer_list<const at::Tensor*> inputs)
    : out_(std::move(out)), computed_(computed), direct_(out_.scalar_type() == computed) {
  for (const at::Tensor* input : inputs) Read(*input, access);
}

void Target::Read(const at::Tensor& input, Access access) {
  if (!direct_ || !input.defined() || !MayOverlap(out_, input)) return;
  direct_ = access == Access::kElementwise && SameView(out_, input);
}

}  // namespace acltape::opapi
