// Comparing within a tolerance, counting, searching in sorted sequences, running extremes, and
// repeating elements.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/optional.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// (self, other, rtol, atol, equalNan, out)
std::unique_ptr<Kernel> BindIsClose(const Call& call) {
  const Tensor self = call.View(0), other = call.View(1);
  if (self.scalar_type() != other.scalar_type()) call.RejectArg(1, "has another dtype than self");
  const double relative = call.Real(2), absolute = call.Real(3);
  if (!(relative >= 0)) call.RejectArg(2, "is negative");
  if (!(absolute >= 0)) call.RejectArg(3, "is negative");
  const bool equal_nan = call.Bool(4);
  return BindWhole(call, 5, call.Broadcast({self.sizes(), other.sizes()}),
                   [=] { return at::isclose(self, other, relative, absolute, equal_nan); });
}

// The elements that are the number, or with `invert` those that are not.
Tensor SameAs(const Tensor& elements, const at::Scalar& number, bool invert) {
  return invert ? elements.ne(number) : elements.eq(number);
}

// (element, testElement, assumeUnique, invert, out): of each element whether it is the number
std::unique_ptr<Kernel> BindIsInTensorScalar(const Call& call) {
  const Tensor elements = call.View(0);
  const at::Scalar number = call.Number(1);
  const bool invert = call.Bool(3);
  ExpectDtypes(call, 4, call.View(4), {at::kBool});
  return BindWhole(call, 4, elements.sizes(), [=] { return SameAs(elements, number, invert); });
}

// (element, testElements, assumeUnique, invert, out): whether one of the elements is the number
std::unique_ptr<Kernel> BindIsInScalarTensor(const Call& call) {
  const at::Scalar number = call.Number(0);
  const Tensor elements = call.View(1);
  const bool invert = call.Bool(3);
  ExpectDtypes(call, 4, call.View(4), {at::kBool});
  return BindWhole(call, 4, {}, [=] {
    const Tensor found = SameAs(elements, number, /*invert=*/false).any();
    return invert ? found.logical_not() : found;
  });
}

// (self, bins, min, max, out): the library counts floats only; integers are exact in double.
std::unique_ptr<Kernel> BindHistc(const Call& call) {
  const Tensor self = call.View(0);
  const int64_t bins = call.Int(1);
  const at::Scalar low = call.Number(2), high = call.Number(3);
  if (bins < 1) call.RejectArg(1, "must be at least 1");
  if (low.toDouble() > high.toDouble()) call.RejectArg(2, "is greater than max");
  if (self.scalar_type() == at::kBool || at::isComplexType(self.scalar_type())) {
    call.RejectArg(0, "is neither of a floating nor of an integer dtype");
  }
  const bool integers = at::isIntegralType(self.scalar_type(), /*includeBool=*/false);
  const at::ScalarType computed =
      integers || self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return BindWhole(call, 4, {bins}, [=] { return at::histc(self.to(computed), bins, low, high); });
}

// (self, weights?, minlength, out): the caller has looked at the values and brings an output of the
// size that they need.
std::unique_ptr<Kernel> BindBincount(const Call& call) {
  const Tensor self = call.View(0);
  const Operand weights = call.OptionalIn(1);
  const int64_t least = call.Int(2);
  call.ExpectRank(0, self, 1);
  if (!at::isIntegralType(self.scalar_type(), /*includeBool=*/false)) {
    call.RejectArg(0, "is of no integer dtype");
  }
  if (least < 0) call.RejectArg(2, "is negative");
  if (weights.defined()) call.ExpectSizes(1, weights.view(), self.sizes());
  const Tensor out = call.Out(3);
  call.ExpectRank(3, out, 1);
  if (out.size(0) < least) call.RejectArg(3, "is shorter than minlength");
  return MakeKernel([=] {
    const Tensor counts = at::bincount(self, Maybe(weights), out.size(0));
    TORCH_CHECK(counts.sizes() == out.sizes(), "aclnnBincount: out has ", out.size(0),
                " elements but self needs ", counts.size(0));
    out.copy_(counts);
  });
}

// (sortedSequence, self tensor or scalar, outInt32, right, sorter?, out)
std::unique_ptr<Kernel> BindSearchSorted(const Call& call, bool scalar) {
  const Operand sorted = call.In(0);
  const Operand self = scalar ? Operand() : call.In(1);
  const at::Scalar number = scalar ? call.Number(1) : at::Scalar();
  const bool right = call.Bool(3);
  const Tensor sorter = call.IsAbsent(4) ? Tensor() : call.View(4);
  if (sorted.dim() == 0) call.RejectArg(0, "has no dims");
  if (sorter.defined()) {
    call.ExpectSizes(4, sorter, sorted.sizes());
    if (sorter.scalar_type() != at::kLong) call.RejectArg(4, "is not of dtype int64");
  }
  const auto sorter_or_none = [=] {
    return sorter.defined() ? OptionalTensor(sorter) : at::nullopt;
  };
  if (scalar) {
    call.ExpectRank(0, sorted.view(), 1);
    return BindWhole(call, 5, {}, [=] {
      return at::searchsorted(sorted(), number, false, right, c10::nullopt, sorter_or_none());
    });
  }
  const bool rows = sorted.dim() > 1;
  if (rows && (self.dim() != sorted.dim() || self.sizes().slice(0, self.dim() - 1) !=
                                                 sorted.sizes().slice(0, sorted.dim() - 1))) {
    call.RejectArg(1, "differs from sortedSequence before the last dim");
  }
  if (self.dtype() != sorted.dtype()) call.RejectArg(1, "has another dtype than sortedSequence");
  return BindWhole(call, 5, self.sizes(), [=] {
    return at::searchsorted(sorted(), self(), false, right, c10::nullopt, sorter_or_none());
  });
}

// (self, dim, values, indices)
template <typename Fn>
Binder RunningExtreme(Fn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    const int64_t dim = call.Dim(1, self.dim());
    const Tensor values = call.Out(2), indices = call.Out(3);
    call.ExpectSizes(2, values, self.sizes());
    call.ExpectSizes(3, indices, self.sizes());
    return MakeKernel([=] {
      const std::tuple<Tensor, Tensor> result = fn(self(), dim);
      values.copy_(std::get<0>(result));
      indices.copy_(std::get<1>(result));
    });
  };
}

// Least and greatest over dims (none: all), into two outputs from `out_index`.
std::unique_ptr<Kernel> BindExtremes(const Call& call, std::vector<int64_t> dims, bool keep,
                                     int out_index) {
  const Operand self = call.In(0);
  if (dims.empty()) {
    for (int64_t dim = 0; dim < self.dim(); ++dim) dims.push_back(dim);
  }
  std::vector<int64_t> sizes;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    const bool reduced = std::count(dims.begin(), dims.end(), dim) > 0;
    if (reduced && self.sizes()[dim] == 0) call.RejectArg(0, "has no elements to choose from");
    if (!reduced) {
      sizes.push_back(self.sizes()[dim]);
    } else if (keep) {
      sizes.push_back(1);
    }
  }
  const Tensor least = call.Out(out_index), greatest = call.Out(out_index + 1);
  call.ExpectSizes(out_index, least, sizes);
  call.ExpectSizes(out_index + 1, greatest, sizes);
  return MakeKernel([=] {
    const Tensor input = self();
    least.copy_(at::amin(input, dims, keep));
    greatest.copy_(at::amax(input, dims, keep));
  });
}

// The sizes of `self` with each entry of `dim` repeated so that there are `total`.
std::vector<int64_t> RepeatedSizes(const Call& call, const Tensor& self, int64_t dim,
                                   int size_index) {
  std::vector<int64_t> sizes = self.sizes().vec();
  const int64_t total = call.Int(size_index);
  if (total < 0) call.RejectArg(size_index, "is negative");
  sizes[dim] = total;
  return sizes;
}

// `repeats` times each entry of `dim`. The caller has looked at the values.
Tensor RepeatEach(const Tensor& self, const Tensor& repeats, int64_t dim, int64_t total) {
  const Tensor counts =
      repeats.numel() == 1 ? repeats.reshape({1}).expand({self.size(dim)}) : repeats;
  const Tensor index = at::repeat_interleave(counts.contiguous());
  TORCH_CHECK(index.size(0) == total, "repeats ask for ", index.size(0),
              " entries but outputSize is ", total);
  return at::index_select(self, dim, index);
}

void ExpectRepeats(const Call& call, int i, const Tensor& repeats, int64_t entries) {
  call.ExpectIndex(i, repeats);
  if (repeats.dim() > 1 || (repeats.numel() != 1 && repeats.numel() != entries)) {
    call.RejectArg(i, "needs one entry or " + std::to_string(entries));
  }
}

// (self, repeats, outputSize, out) of the elements of self
std::unique_ptr<Kernel> BindRepeatFlat(const Call& call) {
  const Tensor self = call.View(0), repeats = call.View(1);
  ExpectRepeats(call, 1, repeats, self.numel());
  const int64_t total = call.Int(2);
  if (total < 0) call.RejectArg(2, "is negative");
  return BindWhole(call, 3, {total}, [=] { return RepeatEach(self.flatten(), repeats, 0, total); });
}

// (self, repeats, dim, outputSize, out)
std::unique_ptr<Kernel> BindRepeatAlongDim(const Call& call) {
  const Tensor self = call.View(0), repeats = call.View(1);
  if (self.dim() == 0) call.RejectArg(0, "has no dims");
  const int64_t dim = call.Dim(2, self.dim());
  ExpectRepeats(call, 1, repeats, self.size(dim));
  const std::vector<int64_t> sizes = RepeatedSizes(call, self, dim, 3);
  return BindWhole(call, 4, sizes, [=] { return RepeatEach(self, repeats, dim, sizes[dim]); });
}

// (self, repeats, outputSize, out) with a number of repeats
std::unique_ptr<Kernel> BindRepeatNumber(const Call& call) {
  const Tensor self = call.View(0);
  const int64_t repeats = call.Int(1);
  if (repeats < 0) call.RejectArg(1, "is negative");
  if (call.Int(2) != self.numel() * repeats) call.RejectArg(2, "is not the size times repeats");
  return BindWhole(call, 3, {self.numel() * repeats},
                   [=] { return at::repeat_interleave(self, repeats, c10::nullopt); });
}

// (repeats, outputSize, out): each position as often as its entry says
std::unique_ptr<Kernel> BindRepeatPositions(const Call& call) {
  const Tensor repeats = call.View(0);
  call.ExpectRank(0, repeats, 1);
  call.ExpectIndex(0, repeats);
  const int64_t total = call.Int(1);
  if (total < 0) call.RejectArg(1, "is negative");
  return BindWhole(call, 2, {total}, [=] {
    return RepeatEach(at::arange(repeats.size(0), at::kLong), repeats, 0, total);
  });
}

// (yGrad, repeats, axis, out): the sum over the copies of each entry
std::unique_ptr<Kernel> BindRepeatGrad(const Call& call) {
  const Operand gradient = call.In(0);
  const Tensor repeats = call.View(1), out = call.Out(3);
  ExpectFloats(call, 0, gradient.view());
  if (gradient.dim() == 0) call.RejectArg(0, "has no dims");
  const int64_t dim = call.Dim(2, gradient.dim());
  std::vector<int64_t> sizes = gradient.sizes().vec();
  if (out.dim() != gradient.dim()) call.RejectArg(3, "has another rank than yGrad");
  sizes[dim] = out.size(dim);
  call.ExpectSizes(3, out, sizes);
  ExpectRepeats(call, 1, repeats, sizes[dim]);
  return MakeKernel([=] {
    const Tensor given = gradient();
    const Tensor index = RepeatEach(at::arange(sizes[dim], at::kLong), repeats, 0, given.size(dim));
    out.copy_(at::zeros(sizes, given.options()).index_add(dim, index, given));
  });
}

}  // namespace

KernelRows SearchRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  const auto cummax = [](const Tensor& self, int64_t dim) { return at::cummax(self, dim); };
  const auto cummin = [](const Tensor& self, int64_t dim) { return at::cummin(self, dim); };
  return {
      {"aclnnIsInScalarTensor", BindIsInScalarTensor},
      {"aclnnIsInTensorScalar", BindIsInTensorScalar},
      {"aclnnIsClose", BindIsClose},
      {"aclnnHistc", BindHistc},
      {"aclnnBincount", BindBincount},
      {"aclnnSearchSorted",
       [](const Call& call) { return BindSearchSorted(call, false); },
       kBoth,
       {4}},
      {"aclnnSearchSorteds",
       [](const Call& call) { return BindSearchSorted(call, true); },
       kBoth,
       {4}},
      {"aclnnCummax", RunningExtreme(cummax), kBoth},
      {"aclnnCummin", RunningExtreme(cummin), kBoth},
      {"aclnnAminmax",
       [](const Call& call) {
         return BindExtremes(call, call.ReductionDims(1, call.View(0).dim()), call.Bool(2), 3);
       }},
      {"aclnnAminmaxAll", [](const Call& call) { return BindExtremes(call, {}, false, 1); }},
      {"aclnnAminmaxDim",
       [](const Call& call) {
         return BindExtremes(call, {call.Dim(1, call.View(0).dim())}, call.Bool(2), 3);
       }},
      {"aclnnRepeatInterleave", BindRepeatFlat},
      {"aclnnRepeatInterleaveWithDim", BindRepeatAlongDim},
      {"aclnnRepeatInterleaveInt", BindRepeatNumber},
      {"aclnnRepeatInterleaveTensor", BindRepeatPositions},
      {"aclnnRepeatInterleaveGrad", BindRepeatGrad, kBoth},
  };
}

}  // namespace acltape::opapi
