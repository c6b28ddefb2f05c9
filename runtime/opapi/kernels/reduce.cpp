// Reductions and scans.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/elementwise.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

// A bare integer would be taken for the library's flag `unbiased`. Releases of the library differ
// in the type of the correction.
struct Correction {
  int64_t value;
  operator c10::optional<at::Scalar>() const { return at::Scalar(value); }  // NOLINT: see above
  operator c10::optional<int64_t>() const { return value; }                 // NOLINT
};

std::vector<int64_t> ReducedSizes(at::IntArrayRef sizes, const std::vector<int64_t>& dims,
                                  bool keep) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) {
    const bool reduced = dims.empty() || std::count(dims.begin(), dims.end(), i) > 0;
    if (!reduced) {
      result.push_back(sizes[i]);
    } else if (keep) {
      result.push_back(1);
    }
  }
  return result;
}

bool IsFloat(at::ScalarType dtype) { return at::isFloatingType(dtype) || at::isComplexType(dtype); }

// fn(out, self, dims, keep) over a dims argument (empty: all), computed in `computed`.
template <typename Fn>
std::unique_ptr<Kernel> BindDims(const Call& call, int dims_index, int keep_index, int out_index,
                                 at::ScalarType computed, Fn fn) {
  const Operand self = call.In(0);
  const std::vector<int64_t> dims = call.ReductionDims(dims_index, self.dim());
  const bool keep = call.Bool(keep_index);
  const Tensor out = call.Out(out_index);
  call.ExpectSizes(out_index, out, ReducedSizes(self.sizes(), dims, keep));
  Target target(out, computed, Access::kFree, {&self.view()});
  return MakeKernel([=] { target.Write([&](Tensor& result) { fn(result, self(), dims, keep); }); });
}

std::unique_ptr<Kernel> BindReduceSum(const Call& call) {
  const at::ScalarType dtype = call.Computed(call.Dtype(3));
  return BindDims(call, 1, 2, 4, dtype,
                  [dtype](Tensor& out, const Tensor& self, const std::vector<int64_t>& dims,
                          bool keep) { f::sum_out(out, self, dims, keep, dtype); });
}

std::unique_ptr<Kernel> BindMean(const Call& call) {
  const at::ScalarType dtype = call.Computed(call.Dtype(3));
  if (!IsFloat(dtype)) call.RejectArg(3, "is no floating dtype");
  return BindDims(call, 1, 2, 4, dtype,
                  [dtype](Tensor& out, const Tensor& self, const std::vector<int64_t>& dims,
                          bool keep) { f::mean_out(out, self, dims, keep, dtype); });
}

// (self, dims, keepDims, noop, out): without dims, all of them count, or none if noop is set.
template <typename Fn>
Binder OverDimsOrNone(Fn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    if (!call.Bool(3) || !call.Ints(1).empty()) {
      return BindDims(call, 1, 2, 4, self.dtype(), fn);
    }
    const Tensor out = call.Out(4);
    call.ExpectSizes(4, out, self.sizes());
    Target target(out, self.dtype(), Access::kElementwise, {&self.view()});
    return MakeKernel(
        [=] { target.Write([&](Tensor& result) { result.resize_(self.sizes()).copy_(self()); }); });
  };
}

Binder FloatsOnly(const Binder& bind) {
  return [bind](const Call& call) {
    if (!IsFloat(call.In(0).dtype())) call.RejectArg(0, "has no floating dtype");
    return bind(call);
  };
}

void LogOfSum(Tensor& out, const Tensor& self, const std::vector<int64_t>& dims, bool keep) {
  const Tensor result = at::log(at::sum(self, dims, keep));
  out.resize_(result.sizes()).copy_(result);
}

// (self, out): fn over all dims after the first two, which stay as dims of size 1
template <typename Fn>
Binder OverPixels(Fn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    if (!at::isFloatingType(self.dtype())) call.RejectArg(0, "has no floating dtype");
    if (self.dim() < 4) call.RejectArg(0, "has less than 4 dims");
    std::vector<int64_t> dims;
    for (int64_t i = 2; i < self.dim(); ++i) dims.push_back(i);
    const Tensor out = call.Out(1);
    call.ExpectSizes(1, out, ReducedSizes(self.sizes(), dims, /*keep=*/true));
    Target target(out, self.dtype(), Access::kFree, {&self.view()});
    return MakeKernel(
        [=] { target.Write([&](Tensor& result) { fn(result, self(), dims, true); }); });
  };
}

template <typename Fn>
Binder Extreme(Fn fn) {
  return [=](const Call& call) { return BindDims(call, 1, 2, 3, call.In(0).dtype(), fn); };
}

// (self, out) over all elements, by an operator without an out form.
template <typename Fn>
Binder Full(Fn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    const Tensor out = call.Out(1);
    call.ExpectSizes(1, out, {});
    return MakeKernel([=] { out.copy_(fn(self())); });
  };
}

// any and all: the library reduces one dim or all of them.
template <typename Fn>
Binder Truth(Fn fn) {
  return [=](const Call& call) {
    const auto reduce = [fn](Tensor& out, const Tensor& self, std::vector<int64_t> dims,
                             bool keep) {
      const Tensor bools = self.scalar_type() == at::kBool ? self : self.ne(0);
      if (dims.empty()) {
        Tensor result = fn(bools, c10::nullopt);
        out.resize_(keep ? std::vector<int64_t>(self.dim(), 1) : std::vector<int64_t>());
        out.copy_(result.expand(out.sizes()));
        return;
      }
      Tensor result = bools;
      std::sort(dims.begin(), dims.end(), std::greater<>());
      for (int64_t dim : dims) result = fn(result, dim);
      if (!keep) {
        for (int64_t dim : dims) {
          if (result.dim() > 0) result = result.squeeze(dim);
        }
      }
      out.resize_(result.sizes()).copy_(result);
    };
    return BindDims(call, 1, 2, 3, at::kBool, reduce);
  };
}

Tensor AnyOf(const Tensor& self, c10::optional<int64_t> dim) {
  return dim ? f::any(self, *dim, true) : f::any(self);
}

Tensor AllOf(const Tensor& self, c10::optional<int64_t> dim) {
  return dim ? f::all(self, *dim, true) : f::all(self);
}

// (self, dim, keepdim, out): the position of the extreme.
template <typename Fn>
Binder Position(Fn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    const int64_t dim = call.Dim(1, self.dim());
    const bool keep = call.Bool(2);
    const Tensor out = call.Out(3);
    call.ExpectSizes(3, out, ReducedSizes(self.sizes(), {dim}, keep));
    Target target(out, at::kLong, Access::kFree, {&self.view()});
    return MakeKernel(
        [=] { target.Write([&](Tensor& result) { fn(result, self(), dim, keep); }); });
  };
}

// (self, dim, keepdim, out, indices)
template <typename Fn>
Binder ExtremeAndPosition(Fn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    const int64_t dim = call.Dim(1, self.dim());
    const bool keep = call.Bool(2);
    const Tensor values = call.Out(3), indices = call.Out(4);
    const std::vector<int64_t> sizes = ReducedSizes(self.sizes(), {dim}, keep);
    call.ExpectSizes(3, values, sizes);
    call.ExpectSizes(4, indices, sizes);
    const std::array<Target, 2> targets{Target(values, self.dtype(), Access::kFree, {&self.view()}),
                                        Target(indices, at::kLong, Access::kFree, {&self.view()})};
    return MakeKernel([=] {
      WriteAll(targets, [&](std::array<Tensor, 2>& out) { fn(out[0], out[1], self(), dim, keep); });
    });
  };
}

// (self, dim, dtype, out)
std::unique_ptr<Kernel> BindCumsum(const Call& call) {
  const Operand self = call.In(0);
  const int64_t dim = call.Dim(1, self.dim());
  const at::ScalarType dtype = call.Computed(call.Dtype(2));
  const Tensor out = call.Out(3);
  call.ExpectSizes(3, out, self.sizes());
  Target target(out, dtype, Access::kFree, {&self.view()});
  return MakeKernel(
      [=] { target.Write([&](Tensor& result) { f::cumsum_out(result, self(), dim, dtype); }); });
}

// (input, dim scalar, dtype, out)
std::unique_ptr<Kernel> BindCumprod(const Call& call) {
  const Operand self = call.In(0);
  const int64_t dim = call.Number(1).toLong();
  if (dim < -std::max<int64_t>(self.dim(), 1) || dim >= std::max<int64_t>(self.dim(), 1)) {
    call.RejectArg(1, "is outside of the tensor");
  }
  const at::ScalarType dtype = call.Computed(call.Dtype(2));
  const Tensor out = call.Out(3);
  call.ExpectSizes(3, out, self.sizes());
  Target target(out, dtype, Access::kFree, {&self.view()});
  return MakeKernel(
      [=] { target.Write([&](Tensor& result) { f::cumprod_out(result, self(), dim, dtype); }); });
}

// (inputRef, dim scalar)
std::unique_ptr<Kernel> BindInplaceCumprod(const Call& call) {
  const Tensor out = call.Out(0);
  const Operand self = call.In(0);
  const int64_t dim = call.Number(1).toLong(), bound = std::max<int64_t>(self.dim(), 1);
  if (dim < -bound || dim >= bound) call.RejectArg(1, "is outside of the tensor");
  return MakeKernel([=] { out.copy_(at::cumprod(self(), dim)); });
}

// The sums of all elements up to each one along the dim, or of those in front of it if `exclusive`;
// from the end on if `reverse`.
Tensor Scan(const Tensor& self, int64_t dim, bool exclusive, bool reverse) {
  Tensor x = self.dim() == 0 ? self.reshape({1}) : self;
  if (reverse) x = x.flip(dim);
  if (exclusive && x.size(dim) > 0) {
    const Tensor none = at::zeros_like(x.narrow(dim, 0, 1));
    x = at::cat({none, x.narrow(dim, 0, x.size(dim) - 1)}, dim);
  }
  x = at::cumsum(x, dim, x.scalar_type());
  if (reverse) x = x.flip(dim);
  return x.reshape(self.sizes());
}

// (self, dim, exclusive, reverse, out)
std::unique_ptr<Kernel> BindScan(const Call& call) {
  const Operand self = call.In(0);
  if (self.dtype() == at::kBool) call.RejectArg(0, "is a bool tensor");
  const int64_t dim = call.Dim(1, self.dim());
  const bool exclusive = call.Bool(2), reverse = call.Bool(3);
  const Tensor out = call.Out(4);
  call.ExpectSizes(4, out, self.sizes());
  if (out.scalar_type() != self.view().scalar_type()) {
    call.RejectArg(4, "has another dtype than self");
  }
  return MakeKernel([=] { out.copy_(Scan(self(), dim, exclusive, reverse)); });
}

std::unique_ptr<Kernel> BindProd(const Call& call) {
  const Operand self = call.In(0);
  const at::ScalarType dtype = call.Computed(call.Dtype(1));
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, {});
  return MakeKernel([=] { out.copy_(at::prod(self(), dtype)); });
}

std::unique_ptr<Kernel> BindProdDim(const Call& call) {
  const Operand self = call.In(0);
  const int64_t dim = call.Dim(1, self.dim());
  const bool keep = call.Bool(2);
  const at::ScalarType dtype = call.Computed(call.Dtype(3));
  const Tensor out = call.Out(4);
  call.ExpectSizes(4, out, ReducedSizes(self.sizes(), {dim}, keep));
  Target target(out, dtype, Access::kFree, {&self.view()});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) { f::prod_out(result, self(), dim, keep, dtype); });
  });
}

// Variance and its root: `correction` is subtracted from the number of elements.
template <typename Fn>
Binder Spread(Fn fn, bool boolean) {
  return [=](const Call& call) {
    const int64_t correction = boolean ? (call.Bool(2) ? 1 : 0) : call.Int(2);
    if (!IsFloat(call.In(0).dtype())) call.RejectArg(0, "has no floating dtype");
    return BindDims(call, 1, 3, 4, call.In(0).dtype(),
                    [=](Tensor& out, const Tensor& self, const std::vector<int64_t>& dims,
                        bool keep) { fn(out, self, dims, correction, keep); });
  };
}

void Median(Tensor& values, Tensor& indices, const Tensor& self, int64_t dim, bool keep) {
  at::median_out(values, indices, self, dim, keep);
}

void NanMedian(Tensor& values, Tensor& indices, const Tensor& self, int64_t dim, bool keep) {
  at::nanmedian_out(values, indices, self, dim, keep);
}

// (self, dims, correction, keepdim, spread, mean)
template <typename Fn>
Binder SpreadAndMean(Fn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    if (!IsFloat(self.dtype())) call.RejectArg(0, "has no floating dtype");
    const std::vector<int64_t> dims = call.ReductionDims(1, self.dim());
    const int64_t correction = call.Int(2);
    const bool keep = call.Bool(3);
    const Tensor spread = call.Out(4), mean = call.Out(5);
    const std::vector<int64_t> sizes = ReducedSizes(self.sizes(), dims, keep);
    call.ExpectSizes(4, spread, sizes);
    call.ExpectSizes(5, mean, sizes);
    return MakeKernel([=] {
      const auto result = fn(self(), dims, correction, keep);
      spread.copy_(std::get<0>(result));
      mean.copy_(std::get<1>(result));
    });
  };
}

// (self, dims, keepDim, dtype, out)
std::unique_ptr<Kernel> BindNansum(const Call& call) {
  const at::ScalarType dtype = call.Computed(call.Dtype(3));
  return BindDims(call, 1, 2, 4, dtype,
                  [dtype](Tensor& out, const Tensor& self, const std::vector<int64_t>& dims,
                          bool keep) { at::nansum_out(out, self, dims, keep, dtype); });
}

// (self, p, dims, keepdim, out)
std::unique_ptr<Kernel> BindNorm(const Call& call) {
  const at::Scalar p = call.Number(1);
  return BindDims(
      call, 2, 3, 4, call.In(0).dtype(),
      [p](Tensor& out, const Tensor& self, const std::vector<int64_t>& dims, bool keep) {
        f::norm_out(out, self, c10::optional<at::Scalar>(p), dims, keep);
      });
}

// (self, ord, dims, keepDims, dtype, out)
std::unique_ptr<Kernel> BindVectorNorm(const Call& call) {
  const at::Scalar order = call.Number(1);
  const at::ScalarType dtype = call.Computed(call.Dtype(4));
  if (!IsFloat(dtype)) call.RejectArg(4, "is no floating dtype");
  return BindDims(
      call, 2, 3, 5, dtype,
      [=](Tensor& out, const Tensor& self, const std::vector<int64_t>& dims, bool keep) {
        f::linalg_vector_norm_out(
            out, self, order,
            dims.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dims), keep, dtype);
      });
}

void LogSumExp(Tensor& out, const Tensor& self, std::vector<int64_t> dims, bool keep) {
  if (dims.empty()) {
    for (int64_t i = 0; i < self.dim(); ++i) dims.push_back(i);
  }
  at::logsumexp_out(out, self, dims, keep);
}

void Amax(Tensor& out, const Tensor& self, const std::vector<int64_t>& dims, bool keep) {
  f::amax_out(out, self, dims, keep);
}

void Amin(Tensor& out, const Tensor& self, const std::vector<int64_t>& dims, bool keep) {
  f::amin_out(out, self, dims, keep);
}

}  // namespace

KernelRows ReduceRows() {
  constexpr Widen kHalf = Widen::kHalf, kBoth = Widen::kHalfAndBfloat16;
  const auto max_out = [](Tensor& values, Tensor& indices, const Tensor& self, int64_t dim,
                          bool keep) { f::max_out(values, indices, self, dim, keep); };
  const auto min_out = [](Tensor& values, Tensor& indices, const Tensor& self, int64_t dim,
                          bool keep) { f::min_out(values, indices, self, dim, keep); };
  const auto mean_out = [](Tensor& out, const Tensor& self, const std::vector<int64_t>& dims,
                           bool keep) { f::mean_out(out, self, dims, keep, self.scalar_type()); };
  const auto argmax = [](Tensor& out, const Tensor& self, int64_t dim, bool keep) {
    f::argmax_out(out, self, dim, keep);
  };
  const auto argmin = [](Tensor& out, const Tensor& self, int64_t dim, bool keep) {
    f::argmin_out(out, self, dim, keep);
  };
  const auto var = [](Tensor& out, const Tensor& self, const std::vector<int64_t>& dims,
                      int64_t correction,
                      bool keep) { f::var_out(out, self, dims, correction, keep); };
  const auto std_dev = [](Tensor& out, const Tensor& self, const std::vector<int64_t>& dims,
                          int64_t correction,
                          bool keep) { f::std_out(out, self, dims, correction, keep); };
  const auto var_mean = [](const Tensor& self, const std::vector<int64_t>& dims, int64_t correction,
                           bool keep) {
    return at::var_mean(self, dims, Correction{correction}, keep);
  };
  const auto std_mean = [](const Tensor& self, const std::vector<int64_t>& dims, int64_t correction,
                           bool keep) {
    return at::std_mean(self, dims, Correction{correction}, keep);
  };
  return {
      {"aclnnReduceSum", BindReduceSum},
      {"aclnnReduceNansum", BindNansum, kHalf},
      {"aclnnMean", BindMean},
      {"aclnnMeanV2", FloatsOnly(OverDimsOrNone(mean_out)), kBoth},
      {"aclnnMaxV2", OverDimsOrNone(Amax)},
      {"aclnnReduceLogSum", FloatsOnly(OverDimsOrNone(LogOfSum)), kBoth},
      {"aclnnGlobalAveragePool", OverPixels(mean_out), kBoth},
      {"aclnnGlobalMaxPool", OverPixels(Amax)},
      {"aclnnAmax", Extreme(Amax)},
      {"aclnnAmin", Extreme(Amin)},
      {"aclnnMax", Full([](const Tensor& self) { return f::max(self); })},
      {"aclnnMin", Full([](const Tensor& self) { return f::min(self); })},
      {"aclnnMedian", Full([](const Tensor& self) { return f::median(self); }), kHalf},
      {"aclnnMedianDim", ExtremeAndPosition(Median), kHalf},
      {"aclnnNanMedian", Full([](const Tensor& self) { return at::nanmedian(self); }), kHalf},
      {"aclnnNanMedianDim", ExtremeAndPosition(NanMedian), kHalf},
      {"aclnnMaxDim", ExtremeAndPosition(max_out)},
      {"aclnnMinDim", ExtremeAndPosition(min_out)},
      {"aclnnArgMax", Position(argmax)},
      {"aclnnArgMin", Position(argmin)},
      {"aclnnAny", Truth(AnyOf)},
      {"aclnnAll", Truth(AllOf)},
      {"aclnnCumsum", BindCumsum, kHalf},
      {"aclnnCumsumV2", BindScan, kBoth},
      {"aclnnCumprod", BindCumprod, kHalf},
      {"aclnnInplaceCumprod", BindInplaceCumprod, kBoth},
      {"aclnnProd", BindProd, kBoth},
      {"aclnnProdDim", BindProdDim, kBoth},
      {"aclnnVar", Spread(var, true)},
      {"aclnnVarCorrection", Spread(var, false)},
      {"aclnnStd", Spread(std_dev, false)},
      {"aclnnVarMean", SpreadAndMean(var_mean)},
      {"aclnnStdMeanCorrection", SpreadAndMean(std_mean)},
      {"aclnnNorm", BindNorm},
      {"aclnnLinalgVectorNorm", BindVectorNorm},
      {"aclnnLogSumExp",
       [](const Call& call) { return BindDims(call, 1, 2, 3, call.In(0).dtype(), LogSumExp); },
       kHalf},
  };
}

}  // namespace acltape::opapi
