// Operators whose number of results depends on the values. The caller brings an output of the
// greatest size; the results lie densely at its start, and when the task has run the output's
// handle reports their shape (aclGetViewShape).
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/elementwise.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

// An output that receives as many results as there are. It has the greatest size, or less along
// dim `counted`, where a caller knows how many there are; or, where `any_shape` is set, any shape
// of as many elements as the greatest.
class CountedOut {
 public:
  CountedOut(const Call& call, int i, at::IntArrayRef greatest, int64_t counted = 0,
             bool any_shape = false)
      : out_(call.Out(i)), shape_(call.Reported(i)) {
    const bool fewer = out_.dim() == static_cast<int64_t>(greatest.size()) && out_.dim() > 0 &&
                       out_.size(counted) < greatest[counted];
    std::vector<int64_t> sizes = greatest.vec();
    if (fewer) sizes[counted] = out_.size(counted);
    if (!any_shape || out_.numel() != c10::multiply_integers(greatest)) {
      call.ExpectSizes(i, out_, sizes);
    }
    if (!out_.is_contiguous()) call.RejectArg(i, "must be dense, as its shape is not known yet");
  }

  void Write(const Tensor& result) const {
    TORCH_CHECK(result.numel() <= out_.numel(), "the output has room for ", out_.numel(),
                " numbers, but there are ", result.numel());
    const Tensor dense = at::from_blob(out_.data_ptr(), result.sizes(), out_.options());
    dense.copy_(result);
    shape_->Set(result.sizes().vec());
  }

 private:
  Tensor out_;
  std::shared_ptr<ReportedShape> shape_;
};

// (self, out): one row per element found, or, transposed, one row per dim
Binder Nonzero(bool transposed) {
  return [transposed](const Call& call) {
    const Tensor self = call.View(0);
    const int64_t count = self.numel(), rank = self.dim();
    const CountedOut out(
        call, 1, transposed ? std::vector<int64_t>{rank, count} : std::vector<int64_t>{count, rank},
        transposed ? 1 : 0);
    return MakeKernel([=] {
      const Tensor found = f::nonzero(self);
      out.Write(transposed ? found.t() : found);
    });
  };
}

// (self, mask, out)
std::unique_ptr<Kernel> BindMaskedSelect(const Call& call) {
  const Tensor self = call.View(0), mask = call.View(1);
  if (mask.scalar_type() != at::kBool && mask.scalar_type() != at::kByte) {
    call.RejectArg(1, "is neither bool nor uint8");
  }
  int64_t count = 1;
  for (int64_t size : call.Broadcast({self.sizes(), mask.sizes()})) count *= size;
  const CountedOut out(call, 2, {count});
  return MakeKernel([=] { out.Write(f::masked_select(self, mask.to(at::kBool))); });
}

// The library compares no halves; float32 holds each of them.
Tensor Comparable(const Tensor& self) {
  const bool half = self.scalar_type() == at::kHalf || self.scalar_type() == at::kBFloat16;
  return half ? self.to(at::kFloat) : self;
}

// (self, sorted, returnInverse, returnCounts, values, inverse, counts)
std::unique_ptr<Kernel> BindUnique(const Call& call) {
  const Tensor self = call.View(0);
  const bool sorted = call.Bool(1), with_inverse = call.Bool(2), with_counts = call.Bool(3);
  const CountedOut values(call, 4, {self.numel()});
  Tensor inverse;
  if (with_inverse || with_counts) {
    inverse = call.Out(5);
    call.ExpectSizes(5, inverse, self.sizes());
  }
  std::vector<CountedOut> counts;
  if (with_counts) counts.emplace_back(call, 6, at::IntArrayRef({self.numel()}));
  return MakeKernel([=] {
    const auto result = at::_unique2(Comparable(self), sorted, with_inverse, with_counts);
    values.Write(std::get<0>(result));
    if (with_inverse) inverse.copy_(std::get<1>(result));
    for (const CountedOut& out : counts) out.Write(std::get<2>(result));
  });
}

// Distinct values, the position of each element's value among them, and how often each comes.
using Distinct = std::tuple<Tensor, Tensor, Tensor>;

struct DistinctOuts {
  int values, inverse, counts;  // positions of the outputs; -1: the operator has none
  bool with_inverse, with_counts;
  bool values_of_any_shape = false;
};

// fn(self) gives Distinct, along `dim` or of all elements when there is none.
template <typename Fn>
std::unique_ptr<Kernel> BindDistinct(const Call& call, c10::optional<int64_t> dim,
                                     const DistinctOuts& at, Fn fn) {
  const Tensor self = call.View(0);
  const int64_t entries = dim ? self.size(*dim) : self.numel();
  const CountedOut values(call, at.values, dim ? self.sizes() : at::IntArrayRef({entries}),
                          dim.value_or(0), at.values_of_any_shape);
  std::vector<Tensor> inverse;
  if (at.with_inverse) {
    inverse.push_back(call.Out(at.inverse));
    call.ExpectSizes(at.inverse, inverse[0], dim ? at::IntArrayRef({entries}) : self.sizes());
  }
  std::vector<CountedOut> counts;
  if (at.with_counts) counts.emplace_back(call, at.counts, at::IntArrayRef({entries}));
  return MakeKernel([=] {
    const Distinct result = fn(Comparable(self));
    values.Write(std::get<0>(result));
    for (const Tensor& out : inverse) out.copy_(std::get<1>(result));
    for (const CountedOut& out : counts) out.Write(std::get<2>(result));
  });
}

// (self, sorted, returnInverse, values, inverse)
std::unique_ptr<Kernel> BindUniqueValues(const Call& call) {
  const bool sorted = call.Bool(1), with_inverse = call.Bool(2);
  return BindDistinct(call, c10::nullopt, {3, 4, -1, with_inverse, false}, [=](const Tensor& self) {
    return Distinct(at::_unique2(self, sorted, with_inverse, false));
  });
}

// (self, returnInverse, returnCounts, dim, values, inverse, counts)
std::unique_ptr<Kernel> BindUniqueConsecutive(const Call& call) {
  constexpr int64_t kNoDim = 1000;  // callers pass it for "of all elements"
  const bool with_inverse = call.Bool(1), with_counts = call.Bool(2);
  const c10::optional<int64_t> dim =
      call.Int(3) == kNoDim ? c10::optional<int64_t>() : call.Dim(3, call.View(0).dim());
  if (dim && call.View(0).dim() == 0) call.RejectArg(0, "has no dims");
  // The vendor's page asks nothing of the shape of the values.
  const DistinctOuts outs = {4, 5, 6, with_inverse, with_counts, /*values_of_any_shape=*/true};
  return BindDistinct(call, dim, outs, [=](const Tensor& self) {
    return Distinct(at::unique_consecutive(self, with_inverse, with_counts, dim));
  });
}

// (self, sorted, returnInverse, dim, values, inverse, counts)
std::unique_ptr<Kernel> BindUniqueDim(const Call& call) {
  const bool sorted = call.Bool(1);
  const int64_t dim = call.Dim(3, call.View(0).dim());
  if (call.View(0).dim() == 0) call.RejectArg(0, "has no dims");
  // An inverse that is not asked for may have any shape.
  const bool with_inverse = call.Bool(2) || call.View(5).numel() == call.View(0).size(dim);
  return BindDistinct(call, dim, {4, 5, 6, with_inverse, true}, [=](const Tensor& self) {
    return Distinct(at::unique_dim(self, dim, sorted, true, true));
  });
}

}  // namespace

KernelRows SelectionRows() {
  return {
      {"aclnnNonzero", Nonzero(false)},
      {"aclnnNonzeroV2", Nonzero(true)},
      {"aclnnMaskedSelect", BindMaskedSelect},
      {"aclnnUnique2", BindUnique, Widen::kNever, {5, 6}},
      {"aclnnUnique", BindUniqueValues, Widen::kNever, {4}},
      {"aclnnUniqueConsecutive", BindUniqueConsecutive, Widen::kNever, {5, 6}},
      {"aclnnUniqueDim", BindUniqueDim},
  };
}

}  // namespace acltape::opapi
