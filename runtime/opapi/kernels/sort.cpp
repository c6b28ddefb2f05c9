// Sorting and selection along a dim.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

// fn(values, indices, self) into the outputs at `values_index` and the position after it.
template <typename Fn>
std::unique_ptr<Kernel> BindSelection(const Call& call, const Operand& self, int values_index,
                                      at::IntArrayRef sizes, Fn fn) {
  const Tensor values = call.Out(values_index), indices = call.Out(values_index + 1);
  call.ExpectSizes(values_index, values, sizes);
  call.ExpectSizes(values_index + 1, indices, sizes);
  const std::array<Target, 2> targets{Target(values, self.dtype(), Access::kFree, {&self.view()}),
                                      Target(indices, at::kLong, Access::kFree, {&self.view()})};
  return MakeKernel(
      [=] { WriteAll(targets, [&](std::array<Tensor, 2>& out) { fn(out[0], out[1], self()); }); });
}

// (self, k, dim, largest, sorted, values, indices); always sorted.
std::unique_ptr<Kernel> BindTopk(const Call& call) {
  const Operand self = call.In(0);
  const int64_t k = call.Int(1), dim = call.Dim(2, self.dim());
  const bool largest = call.Bool(3);
  std::vector<int64_t> sizes = self.sizes().vec();
  const int64_t size = sizes.empty() ? 1 : sizes[dim];
  if (k < 0 || k > size) {
    call.RejectArg(
        1, "is " + std::to_string(k) + " but the dim has " + std::to_string(size) + " elements");
  }
  if (!sizes.empty()) sizes[dim] = k;
  return BindSelection(call, self, 5, sizes,
                       [=](Tensor& values, Tensor& indices, const Tensor& input) {
                         f::topk_out(values, indices, input, k, dim, largest, true);
                       });
}

// (self, stable, dim, descending, values, indices)
std::unique_ptr<Kernel> BindSort(const Call& call) {
  const Operand self = call.In(0);
  const bool stable = call.Bool(1), descending = call.Bool(3);
  const int64_t dim = call.Dim(2, self.dim());
  return BindSelection(
      call, self, 4, self.sizes(), [=](Tensor& values, Tensor& indices, const Tensor& input) {
        f::sort_out(values, indices, input, c10::optional<bool>(stable), dim, descending);
      });
}

// (self, dim, descending, out)
std::unique_ptr<Kernel> BindArgsort(const Call& call) {
  const Operand self = call.In(0);
  const int64_t dim = call.Dim(1, self.dim());
  const bool descending = call.Bool(2);
  const Tensor out = call.Out(3);
  call.ExpectSizes(3, out, self.sizes());
  return MakeKernel([=] {
    out.copy_(std::get<1>(f::sort(self(), c10::optional<bool>(false), dim, descending)));
  });
}

// (self, k, dim, keepdim, values, indices)
std::unique_ptr<Kernel> BindKthvalue(const Call& call) {
  const Operand self = call.In(0);
  const int64_t k = call.Int(1), dim = call.Dim(2, self.dim());
  const bool keep = call.Bool(3);
  std::vector<int64_t> sizes = self.sizes().vec();
  const int64_t size = sizes.empty() ? 1 : sizes[dim];
  if (k < 1 || k > size) call.RejectArg(1, "is outside of the dim");
  if (!sizes.empty()) {
    if (keep) {
      sizes[dim] = 1;
    } else {
      sizes.erase(sizes.begin() + dim);
    }
  }
  return BindSelection(call, self, 4, sizes,
                       [=](Tensor& values, Tensor& indices, const Tensor& input) {
                         f::kthvalue_out(values, indices, input, k, dim, keep);
                       });
}

// (self, boundaries, outInt32, right, out)
std::unique_ptr<Kernel> BindBucketize(const Call& call) {
  const Operand self = call.In(0), boundaries = call.In(1);
  const bool right = call.Bool(3);
  call.ExpectRank(1, boundaries.view(), 1);
  const Tensor out = call.Out(4);
  call.ExpectSizes(4, out, self.sizes());
  return MakeKernel([=] { out.copy_(at::bucketize(self(), boundaries(), false, right)); });
}

}  // namespace

KernelRows SortRows() {
  return {
      {"aclnnTopk", BindTopk, Widen::kHalf},
      {"aclnnSort", BindSort},
      {"aclnnArgsort", BindArgsort},
      {"aclnnBucketize", BindBucketize, Widen::kHalf},
      {"aclnnKthvalue", BindKthvalue, Widen::kHalf},
  };
}

}  // namespace acltape::opapi
