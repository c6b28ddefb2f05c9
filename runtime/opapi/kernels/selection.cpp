// Operators whose number of results depends on the values. The caller brings an output of the
// greatest size; the results lie densely at its start, and when the task has run the output's
// handle reports their shape (aclGetViewShape).
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/elementwise.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

// An output that receives as many results as there are.
class CountedOut {
 public:
  CountedOut(const Call& call, int i, at::IntArrayRef greatest)
      : out_(call.Out(i)), shape_(call.Reported(i)) {
    call.ExpectSizes(i, out_, greatest);
    if (!out_.is_contiguous()) call.RejectArg(i, "must be dense, as its shape is not known yet");
  }

  void Write(const Tensor& result) const {
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
        call, 1,
        transposed ? std::vector<int64_t>{rank, count} : std::vector<int64_t>{count, rank});
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
    const auto result = at::_unique2(self, sorted, with_inverse, with_counts);
    values.Write(std::get<0>(result));
    if (with_inverse) inverse.copy_(std::get<1>(result));
    for (const CountedOut& out : counts) out.Write(std::get<2>(result));
  });
}

}  // namespace

KernelRows SelectionRows() {
  return {
      {"aclnnNonzero", Nonzero(false)},
      {"aclnnNonzeroV2", Nonzero(true)},
      {"aclnnMaskedSelect", BindMaskedSelect},
      {"aclnnUnique2", BindUnique, Widen::kNever, {5, 6}},
  };
}

}  // namespace acltape::opapi
