// Copies: conversions, joins, and views made into memory of their own.
#include <ATen/CPUFunctions.h>

#include <functional>
#include <numeric>

#include "runtime/opapi/kernels/elementwise.h"
#include "runtime/opapi/kernels/unsigned_bits.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

int64_t Elements(at::IntArrayRef sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Copies `source`, which has or broadcasts to the output's shape; through a temporary where the two
// share bytes in another order.
std::unique_ptr<Kernel> BindCopy(const Tensor& out, const Tensor& source) {
  Target target(out, out.scalar_type(), Access::kElementwise, {});
  Target overlap(out, source.scalar_type(), Access::kElementwise, {&source});
  const bool shares = MayOverlap(out, source) && !overlap.direct();
  if (shares) return MakeKernel([=] { out.copy_(source.clone()); });
  return MakeKernel([=] { out.copy_(source); });
}

// The same for tensors of unsigned integers, which overlap where the two are one view.
std::unique_ptr<Kernel> BindConversion(const AnyNumbers& out, const AnyNumbers& source) {
  if (!out.unsigned_bits && !source.unsigned_bits) return BindCopy(out.tensor, source.tensor);
  return MakeKernel([=] { Convert(out, {source.tensor.clone(), source.unsigned_bits}); });
}

// (selfRef, src)
std::unique_ptr<Kernel> BindInplaceCopy(const Call& call) {
  const AnyNumbers to = WrittenNumbers(call, 0), from = ReadNumbers(call, 1);
  const Tensor &self = to.tensor, &source = from.tensor;
  if (call.Broadcast({source.sizes(), self.sizes()}) != self.sizes().vec()) {
    call.RejectArg(1, "has shape " + SizesText(source.sizes()) + ", which does not broadcast to " +
                          SizesText(self.sizes()));
  }
  return BindConversion(to, from);
}

// (srcTensor, dstTensor): the same elements in another format. What lies in blocks is a plain
// matrix here (engine/blocked.h).
std::unique_ptr<Kernel> BindFormatCast(const Call& call) {
  const Tensor source = call.View(0), out = call.Out(1);
  if (!source.is_contiguous()) call.RejectArg(0, "is not contiguous");
  if (!out.is_contiguous()) call.RejectArg(1, "is not contiguous");
  if (out.scalar_type() != source.scalar_type()) {
    call.RejectArg(1, "has another dtype than srcTensor");
  }
  call.ExpectSizes(1, out, source.sizes());
  return BindCopy(out, source);
}

// (self, dtype, out)
std::unique_ptr<Kernel> BindCast(const Call& call) {
  const AnyNumbers self = ReadNumbers(call, 0), out = WrittenNumbers(call, 2);
  if (call.Described(2).dtype != static_cast<aclDataType>(call.Int(1))) {
    call.RejectArg(2, "has another dtype than the dtype argument");
  }
  call.ExpectSizes(2, out.tensor, self.tensor.sizes());
  return BindConversion(out, self);
}

// (self, ..., out): copies `view(call, self)`.
template <typename View>
Binder CopyOf(View view, int out_index) {
  return [=](const Call& call) {
    const Tensor source = view(call, call.View(0));
    const Tensor out = call.Out(out_index);
    call.ExpectSizes(out_index, out, source.sizes());
    return BindCopy(out, source);
  };
}

Tensor Permuted(const Call& call, const Tensor& self) { return self.permute(call.Ints(1)); }

Tensor Expanded(const Call& call, const Tensor& self) { return self.expand(call.Ints(1)); }

// (self, dim, start, end, step, out)
Tensor Sliced(const Call& call, const Tensor& self) {
  return self.slice(call.Dim(1, self.dim()), call.Int(2), call.Int(3), call.Int(4));
}

// (self, starts, ends, axes, steps, out)
Tensor SlicedDims(const Call& call, const Tensor& self) {
  const std::vector<int64_t> starts = call.Ints(1), ends = call.Ints(2), axes = call.Ints(3);
  const std::vector<int64_t> steps = call.Ints(4);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    call.RejectCall("starts, ends, axes and steps differ in length");
  }
  Tensor view = self;
  for (size_t i = 0; i < axes.size(); ++i) view = view.slice(axes[i], starts[i], ends[i], steps[i]);
  return view;
}

// fn(out, self) that moves elements without computing, into a known shape.
template <typename Fn>
std::unique_ptr<Kernel> BindMove(const Call& call, int out_index, at::IntArrayRef sizes, Fn fn) {
  const Operand self = call.In(0);
  const Tensor out = call.Out(out_index);
  call.ExpectSizes(out_index, out, sizes);
  Target target(out, self.dtype(), Access::kFree, {&self.view()});
  return MakeKernel([=] { target.Write([&](Tensor& result) { fn(result, self()); }); });
}

// Like BindMove, for a function of the library without an out form: fn(self).
template <typename Fn>
std::unique_ptr<Kernel> BindMoved(const Call& call, int out_index, at::IntArrayRef sizes, Fn fn) {
  const Operand self = call.In(0);
  const Tensor out = call.Out(out_index);
  call.ExpectSizes(out_index, out, sizes);
  return MakeKernel([=] { out.copy_(fn(self())); });
}

// (self, repeats, out)
std::unique_ptr<Kernel> BindRepeat(const Call& call) {
  const Tensor self = call.View(0);
  const std::vector<int64_t> repeats = call.Ints(1);
  const auto extra = static_cast<int64_t>(repeats.size()) - self.dim();
  if (extra < 0) call.RejectArg(1, "has fewer entries than self has dims");
  std::vector<int64_t> sizes = repeats;
  for (int64_t i = 0; i < self.dim(); ++i) sizes[extra + i] *= self.size(i);
  return BindMoved(call, 2, sizes,
                   [repeats](const Tensor& input) { return input.repeat(repeats); });
}

// (self, dims, out)
std::unique_ptr<Kernel> BindFlip(const Call& call) {
  const std::vector<int64_t> dims = call.Ints(1);
  return BindMoved(call, 2, call.View(0).sizes(),
                   [dims](const Tensor& input) { return at::flip(input, dims); });
}

// (x, shifts, dims, out)
std::unique_ptr<Kernel> BindRoll(const Call& call) {
  const std::vector<int64_t> shifts = call.Ints(1), dims = call.Ints(2);
  if (!dims.empty() && shifts.size() != dims.size()) {
    call.RejectCall("shifts and dims differ in length");
  }
  if (call.View(0).dim() == 0 && !dims.empty()) {
    call.RejectArg(2, "names a dim, and x has none");
  }
  return BindMoved(call, 3, call.View(0).sizes(),
                   [=](const Tensor& input) { return at::roll(input, shifts, dims); });
}

std::vector<int64_t> PaddedSizes(const Call& call, int i, const Tensor& self,
                                 const std::vector<int64_t>& pad) {
  if (pad.size() % 2 != 0 || static_cast<int64_t>(pad.size()) > 2 * self.dim()) {
    call.RejectArg(i, "needs pairs for at most all dims");
  }
  std::vector<int64_t> sizes = self.sizes().vec();
  for (size_t pair = 0; pair < pad.size() / 2; ++pair) {
    int64_t& size = sizes[sizes.size() - 1 - pair];
    size += pad[2 * pair] + pad[2 * pair + 1];
    if (size < 0) call.RejectArg(i, "crops more than there is");
  }
  return sizes;
}

// (self, pad, value, out)
std::unique_ptr<Kernel> BindConstantPad(const Call& call) {
  const Tensor self = call.View(0);
  const std::vector<int64_t> pad = call.Ints(1);
  const at::Scalar value = call.Number(2);
  return BindMoved(call, 3, PaddedSizes(call, 1, self, pad),
                   [=](const Tensor& input) { return at::constant_pad_nd(input, pad, value); });
}

// Says what the padding beyond the ends holds.
enum class PadMode { kMirrored, kHeld, kWrapped };

// The positions in a dim of `size` elements that its padded elements come from.
Tensor PaddedPositions(int64_t size, int64_t before, int64_t after, PadMode mode) {
  const int64_t last = size - 1;
  const Tensor place = at::arange(-before, size + after, at::TensorOptions(at::kLong));
  switch (mode) {
    case PadMode::kHeld:
      return place.clamp(0, last);
    case PadMode::kWrapped:
      return place.remainder(size);
    default:
      return last - (place.abs() - last).abs();
  }
}

// Pads elements of any dtype, by the positions that they come from.
Tensor PadByPosition(Tensor self, const std::vector<int64_t>& pad, PadMode mode) {
  for (size_t pair = 0; pair < pad.size() / 2; ++pair) {
    const int64_t dim = self.dim() - 1 - static_cast<int64_t>(pair);
    self = self.index_select(
        dim, PaddedPositions(self.size(dim), pad[2 * pair], pad[2 * pair + 1], mode));
  }
  return self;
}

// (self, padding, out) of the library's reflection or replication padding, which lacks integers
template <typename Fn>
Binder Pad(Fn fn, PadMode mode) {
  return [=](const Call& call) {
    const Tensor given = call.View(0);
    const std::vector<int64_t> pad = call.Ints(1), sizes = PaddedSizes(call, 1, given, pad);
    for (size_t i = 0; mode == PadMode::kMirrored && i < pad.size(); ++i) {
      if (pad[i] > 0 && pad[i] >= given.size(given.dim() - 1 - static_cast<int64_t>(i / 2))) {
        call.RejectArg(1, "is not less than the size that it mirrors");
      }
    }
    const bool integers = at::isIntegralType(given.scalar_type(), /*includeBool=*/true);
    return BindMove(call, 2, sizes, IntoDense([=](Tensor& out, const Tensor& self) {
                      if (!integers) return fn(out, self, pad);
                      const Tensor padded = PadByPosition(self, pad, mode);
                      out.resize_(padded.sizes()).copy_(padded);
                    }));
  };
}

// (gradOutput, self, padding, gradInput) of the library's reflection or replication padding
template <typename Fn>
Binder PadBackward(Fn fn) {
  return [=](const Call& call) {
    const Operand gradient = call.In(0), self = call.In(1);
    ExpectFloats(call, 1, self.view());
    const std::vector<int64_t> pad = call.Ints(2);
    call.ExpectSizes(0, gradient.view(), PaddedSizes(call, 2, self.view(), pad));
    return BindWhole(call, 3, self.sizes(), [=] { return fn(gradient(), self(), pad); });
  };
}

// Reads the padding of the last `count` dims, each of which repeats itself on both sides.
std::vector<int64_t> CircularPadding(const Call& call, int i, const Tensor& self, int64_t count) {
  if (self.dim() != count + 1 && self.dim() != count + 2) {
    call.RejectArg(i - 1, "must have " + std::to_string(count + 1) + " or " +
                              std::to_string(count + 2) + " dims");
  }
  const std::vector<int64_t> pad = call.Ints(i);
  if (static_cast<int64_t>(pad.size()) != 2 * count) {
    call.RejectArg(i, "must have " + std::to_string(2 * count) + " entries");
  }
  for (size_t k = 0; k < pad.size(); ++k) {
    const int64_t size = self.size(self.dim() - 1 - static_cast<int64_t>(k / 2));
    if (pad[k] < 0 || pad[k] >= size) {
      call.RejectArg(i, "is negative or not less than the size that it repeats");
    }
  }
  return pad;
}

// (self, padding, out)
Binder CircularPad(int64_t count) {
  return [count](const Call& call) {
    const Tensor self = call.View(0);
    ExpectDtypes(call, 0, self, {at::kFloat, at::kHalf, at::kBFloat16, at::kChar, at::kInt});
    const std::vector<int64_t> pad = CircularPadding(call, 1, self, count);
    return BindMoved(call, 2, PaddedSizes(call, 1, self, pad), [pad](const Tensor& input) {
      return PadByPosition(input, pad, PadMode::kWrapped);
    });
  };
}

// (gradOutput, self, padding, gradInput): each element gets the sum over its copies.
Binder CircularPadBackward(int64_t count) {
  return [count](const Call& call) {
    const Operand gradient = call.In(0);
    const Tensor self = call.View(1);
    ExpectFloats(call, 1, self);
    ExpectDtypes(call, 0, gradient.view(), {self.scalar_type()});
    const std::vector<int64_t> pad = CircularPadding(call, 2, self, count);
    call.ExpectSizes(0, gradient.view(), PaddedSizes(call, 2, self, pad));
    const std::vector<int64_t> sizes = self.sizes().vec();
    return BindWhole(call, 3, sizes, [=] {
      Tensor result = gradient();
      for (size_t pair = 0; pair < pad.size() / 2; ++pair) {
        const int64_t dim = result.dim() - 1 - static_cast<int64_t>(pair);
        std::vector<int64_t> narrower = result.sizes().vec();
        narrower[dim] = sizes[dim];
        const Tensor place =
            PaddedPositions(sizes[dim], pad[2 * pair], pad[2 * pair + 1], PadMode::kWrapped);
        result = at::zeros(narrower, result.options()).index_add(dim, place, result);
      }
      return result;
    });
  };
}

// (self, diagonal, out): the matrix with this diagonal, or the diagonal of a matrix
std::unique_ptr<Kernel> BindDiag(const Call& call) {
  const Tensor self = call.View(0), out = call.Out(2);
  const int64_t diagonal = call.Int(1);
  if (self.dim() == 1) {
    const int64_t size = self.size(0) + std::abs(diagonal);
    return BindMoved(call, 2, {size, size},
                     [diagonal](const Tensor& input) { return input.diag_embed(diagonal); });
  }
  if (self.dim() != 2) call.RejectArg(0, "must have 1 or 2 dims");
  if (diagonal <= -self.size(0) || diagonal >= self.size(1)) {
    call.RejectArg(1, "lies outside of the matrix");
  }
  const Tensor source = self.diagonal(diagonal);
  call.ExpectSizes(2, out, source.sizes());
  return BindCopy(out, source);
}

// (self, diagonal, out): the matrix whose diagonal holds all elements
std::unique_ptr<Kernel> BindDiagFlat(const Call& call) {
  const int64_t diagonal = call.Int(1), size = call.View(0).numel() + std::abs(diagonal);
  return BindMoved(call, 2, {size, size}, [diagonal](const Tensor& input) {
    return input.reshape({-1}).diag_embed(diagonal);
  });
}

// (self, axis, out): a matrix with the dims in front of the axis as rows
std::unique_ptr<Kernel> BindFlatten(const Call& call) {
  const Tensor self = call.View(0);
  const int64_t axis = call.Dim(1, self.dim());
  const std::vector<int64_t> sizes = {Elements(self.sizes().slice(0, axis)),
                                      Elements(self.sizes().slice(axis))};
  return BindMoved(call, 2, sizes, [sizes](const Tensor& input) { return input.reshape(sizes); });
}

// (varRef, inputValue, begin, end, strides, axes?): the slice of varRef becomes inputValue.
// Positions below 0 count from the end. Without axes the entries are those of the first dims.
std::unique_ptr<Kernel> BindStridedSliceAssign(const Call& call) {
  const Tensor target = call.Out(0), value = call.View(1);
  ExpectDtypes(call, 0, target,
               {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kDouble, at::kChar});
  ExpectDtypes(call, 1, value, {target.scalar_type()});
  const std::vector<int64_t> begin = call.Ints(2), end = call.Ints(3), steps = call.Ints(4);
  std::vector<int64_t> axes = call.Ints(5);
  if (call.IsNull(5)) {
    axes.resize(begin.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (end.size() != begin.size() || steps.size() != begin.size() || axes.size() != begin.size()) {
    call.RejectCall("begin, end, strides and axes differ in length");
  }
  Tensor slice = target;
  std::vector<bool> seen(target.dim());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + target.dim() : axes[i];
    if (axis < 0 || axis >= target.dim() || seen[axis]) {
      call.RejectArg(5, "holds an axis twice or one that varRef lacks");
    }
    seen[axis] = true;
    if (steps[i] < 1) call.RejectArg(4, "must be positive");
    if (axis == target.dim() - 1 && steps[i] != 1) call.RejectArg(4, "must be 1 for the last dim");
    slice = slice.slice(axis, begin[i], end[i], steps[i]);
  }
  call.ExpectSizes(1, value, slice.sizes());
  return BindCopy(slice, value);
}

// (self, repeats, dim, outputSize, out)
std::unique_ptr<Kernel> BindRepeatInterleave(const Call& call) {
  const Tensor self = call.View(0);
  const int64_t repeats = call.Int(1), dim = call.Dim(2, self.dim());
  if (repeats < 0) call.RejectArg(1, "is negative");
  std::vector<int64_t> sizes = self.sizes().vec();
  if (sizes.empty()) call.RejectArg(0, "has no dims");
  sizes[dim] *= repeats;
  if (call.Int(3) != sizes[dim]) call.RejectArg(3, "is not the size times repeats");
  return BindMoved(call, 4, sizes,
                   [=](const Tensor& input) { return at::repeat_interleave(input, repeats, dim); });
}

// (self, diagonal, out)
template <typename Fn>
Binder Triangle(Fn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    if (self.dim() < 2) call.RejectArg(0, "has less than 2 dims");
    const int64_t diagonal = call.Int(1);
    const Tensor out = call.Out(2);
    call.ExpectSizes(2, out, self.sizes());
    Target target(out, self.dtype(), Access::kElementwise, {&self.view()});
    return MakeKernel(
        [=] { target.Write([&](Tensor& result) { IntoDense(fn)(result, self(), diagonal); }); });
  };
}

at::ScalarType PromotedList(const std::vector<Tensor>& tensors) {
  at::ScalarType dtype = tensors[0].scalar_type();
  for (const Tensor& tensor : tensors) dtype = at::promote_types(dtype, tensor.scalar_type());
  return dtype;
}

// (tensors, dim, out)
std::unique_ptr<Kernel> BindCat(const Call& call) {
  const std::vector<Tensor> tensors = call.Views(0);
  if (tensors.empty()) call.RejectArg(0, "is empty");
  const auto skipped = [](const Tensor& tensor) {
    return tensor.dim() == 1 && tensor.numel() == 0;
  };
  const auto shown = std::find_if_not(tensors.begin(), tensors.end(), skipped);
  const Tensor& model = shown == tensors.end() ? tensors[0] : *shown;
  if (model.dim() == 0) call.RejectArg(0, "holds a 0-dim tensor");
  const int64_t dim = call.Dim(1, model.dim());
  std::vector<int64_t> sizes = model.sizes().vec();
  sizes[dim] = 0;
  for (const Tensor& tensor : tensors) {
    if (skipped(tensor)) continue;
    std::vector<int64_t> other = tensor.sizes().vec();
    if (other.size() != sizes.size()) call.RejectArg(0, "holds tensors of different ranks");
    const int64_t joined = sizes[dim] + other[dim];
    other[dim] = sizes[dim];
    if (other != sizes) call.RejectArg(0, "holds tensors that differ outside of the joined dim");
    sizes[dim] = joined;
  }
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, sizes);
  Target target(out, PromotedList(tensors), Access::kFree, {});
  for (const Tensor& tensor : tensors) target.Read(tensor, Access::kFree);
  return MakeKernel([=] {
    target.Write([&](Tensor& result) { f::cat_out(result, at::TensorList(tensors), dim); });
  });
}

// (tensors, dim, out)
std::unique_ptr<Kernel> BindStack(const Call& call) {
  const std::vector<Tensor> tensors = call.Views(0);
  if (tensors.empty()) call.RejectArg(0, "is empty");
  const int64_t dim = call.Dim(1, tensors[0].dim() + 1);
  for (const Tensor& tensor : tensors) {
    if (tensor.sizes() != tensors[0].sizes()) {
      call.RejectArg(0, "holds tensors of different shapes");
    }
  }
  std::vector<int64_t> sizes = tensors[0].sizes().vec();
  sizes.insert(sizes.begin() + dim, static_cast<int64_t>(tensors.size()));
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, sizes);
  Target target(out, PromotedList(tensors), Access::kFree, {});
  for (const Tensor& tensor : tensors) target.Read(tensor, Access::kFree);
  return MakeKernel(
      [=] { target.Write([&](Tensor& result) { at::stack_out(result, tensors, dim); }); });
}

// (tensors, dim, numChunks, out): each tensor is cut into equal chunks along dim, the last of which
// is filled up with zeros. Chunk i of the result has chunk i of each tensor, one after the other,
// with the dims from dim on as one.
std::unique_ptr<Kernel> BindChunkCat(const Call& call) {
  const std::vector<Tensor> tensors = call.Views(0);
  if (tensors.empty()) call.RejectArg(0, "is empty");
  const int64_t dim = call.Dim(1, tensors[0].dim());
  const int64_t chunks = call.Int(2);
  if (chunks < 1) call.RejectArg(2, "is less than 1");
  std::vector<int64_t> sizes(tensors[0].sizes().begin(), tensors[0].sizes().begin() + dim);
  int64_t joined = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() <= dim || tensor.sizes().slice(0, dim) != at::IntArrayRef(sizes)) {
      call.RejectArg(0, "holds tensors that differ in front of dim");
    }
    if (tensor.scalar_type() != tensors[0].scalar_type()) {
      call.RejectArg(0, "holds tensors of different dtypes");
    }
    const int64_t each = (tensor.size(dim) + chunks - 1) / chunks;
    joined += each * Elements(tensor.sizes().slice(dim + 1));
  }
  sizes.push_back(chunks);
  sizes.push_back(joined);
  const Tensor out = call.Out(3);
  call.ExpectSizes(3, out, sizes);
  Target target(out, tensors[0].scalar_type(), Access::kFree, {});
  for (const Tensor& tensor : tensors) target.Read(tensor, Access::kFree);
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      if (!target.direct()) result.resize_(sizes);
      result.zero_();
      int64_t place = 0;
      for (const Tensor& tensor : tensors) {
        const int64_t length = tensor.size(dim), each = (length + chunks - 1) / chunks;
        const int64_t rest = Elements(tensor.sizes().slice(dim + 1));
        for (int64_t chunk = 0; chunk * each < length; ++chunk) {
          const int64_t first = chunk * each, count = std::min(each, length - first);
          result.select(dim, chunk)
              .narrow(dim, place, count * rest)
              .copy_(tensor.narrow(dim, first, count).flatten(dim));
        }
        place += each * rest;
      }
    });
  });
}

std::unique_ptr<Kernel> BindSplit(const Call& call, const std::vector<Tensor>& parts,
                                  int out_index) {
  const std::vector<Tensor> outs = call.Outs(out_index);
  if (outs.size() != parts.size()) {
    call.RejectArg(out_index, "has " + std::to_string(outs.size()) + " tensors, expected " +
                                  std::to_string(parts.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) call.ExpectSizes(out_index, outs[i], parts[i].sizes());
  return MakeKernel([=] {
    for (size_t i = 0; i < parts.size(); ++i) outs[i].copy_(parts[i]);
  });
}

// (self, splitSections, dim, out)
std::unique_ptr<Kernel> BindSplitTensor(const Call& call) {
  const Tensor self = call.View(0);
  return BindSplit(call, self.split(call.Int(1), call.Dim(2, self.dim())), 3);
}

// (self, splitSize, dim, out)
std::unique_ptr<Kernel> BindSplitWithSize(const Call& call) {
  const Tensor self = call.View(0);
  return BindSplit(call, self.split_with_sizes(call.Ints(1), call.Dim(2, self.dim())), 3);
}

// (self, kernel, dilation, padding, stride, out)
std::unique_ptr<Kernel> BindIm2col(const Call& call) {
  const Operand self = call.In(0);
  const std::vector<int64_t> kernel = call.Ints(1), dilation = call.Ints(2), padding = call.Ints(3);
  const std::vector<int64_t> stride = call.Ints(4);
  for (int i = 1; i <= 4; ++i) {
    if (call.Ints(i).size() != 2) call.RejectArg(i, "must have 2 entries");
  }
  if (self.dim() != 3 && self.dim() != 4) call.RejectArg(0, "must have 3 or 4 dims");
  std::vector<int64_t> sizes(self.sizes().begin(), self.sizes().end() - 2);
  sizes.back() *= kernel[0] * kernel[1];
  int64_t windows = 1;
  for (int i = 0; i < 2; ++i) {
    if (kernel[i] < 1 || dilation[i] < 1 || stride[i] < 1) {
      call.RejectCall("kernel, dilation and stride must be positive");
    }
    const int64_t room =
        self.sizes()[self.dim() - 2 + i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
    if (room < 0) call.RejectArg(1, "is larger than the padded image");
    windows *= room / stride[i] + 1;
  }
  sizes.push_back(windows);
  const Tensor out = call.Out(5);
  call.ExpectSizes(5, out, sizes);
  if (!at::isIntegralType(self.dtype(), /*includeBool=*/true)) {
    return MakeKernel([=] { out.copy_(f::im2col(self(), kernel, dilation, padding, stride)); });
  }
  // The library's operator lacks integers: the windows are views of the padded image.
  return MakeKernel([=] {
    const Tensor image =
        at::constant_pad_nd(self(), {padding[1], padding[1], padding[0], padding[0]}, 0)
            .contiguous();
    std::vector<int64_t> window(image.sizes().begin(), image.sizes().end() - 2);
    std::vector<int64_t> steps(image.strides().begin(), image.strides().end() - 2);
    window.insert(window.end(), kernel.begin(), kernel.end());
    const int64_t row = image.size(-1);
    steps.insert(steps.end(), {dilation[0] * row, dilation[1], stride[0] * row, stride[1]});
    for (int i = 0; i < 2; ++i) {
      window.push_back((image.size(i - 2) - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1);
    }
    out.copy_(image.as_strided(window, steps).reshape(out.sizes()));
  });
}

// (self, groups, out)
std::unique_ptr<Kernel> BindChannelShuffle(const Call& call) {
  const Tensor self = call.View(0), out = call.Out(2);
  const int64_t groups = call.Int(1);
  if (self.dim() < 3) call.RejectArg(0, "has less than 3 dims");
  if (groups < 1 || self.size(1) % groups != 0) call.RejectArg(1, "does not divide the channels");
  call.ExpectSizes(2, out, self.sizes());
  return MakeKernel([=] { out.copy_(at::channel_shuffle(self, groups)); });
}

// (gradOut, inputSizes, dim, size, step, gradIn): each element gets the sum over the windows that
// hold it.
std::unique_ptr<Kernel> BindUnfoldGrad(const Call& call) {
  const Operand gradient = call.In(0);
  const std::vector<int64_t> sizes = call.Ints(1);
  const int64_t dim = call.Dim(2, static_cast<int64_t>(sizes.size()));
  const int64_t size = call.Int(3), step = call.Int(4);
  const Tensor out = call.Out(5);
  call.ExpectSizes(5, out, sizes);
  if (sizes.empty()) call.RejectArg(1, "has no entries");
  if (size < 1 || size > sizes[dim]) call.RejectArg(3, "must be between 1 and the dim's size");
  if (step < 1) call.RejectArg(4, "must be positive");
  std::vector<int64_t> windows = sizes;
  windows[dim] = (sizes[dim] - size) / step + 1;
  windows.push_back(size);
  call.ExpectSizes(0, gradient.view(), windows);
  return MakeKernel([=] { out.copy_(at::unfold_backward(gradient(), sizes, dim, size, step)); });
}

// (gradOutput, inputSize, kernel, dilation, padding, stride, out): the sum of what lies on a pixel
std::unique_ptr<Kernel> BindCol2im(const Call& call) {
  const Operand columns = call.In(0);
  for (int i = 1; i <= 5; ++i) {
    if (call.Ints(i).size() != 2) call.RejectArg(i, "must have 2 entries");
  }
  const std::vector<int64_t> image = call.Ints(1), kernel = call.Ints(2), dilation = call.Ints(3);
  const std::vector<int64_t> padding = call.Ints(4), stride = call.Ints(5);
  if (columns.dim() != 2 && columns.dim() != 3) call.RejectArg(0, "must have 2 or 3 dims");
  int64_t windows = 1;
  for (int i = 0; i < 2; ++i) {
    if (kernel[i] < 1 || dilation[i] < 1 || stride[i] < 1) {
      call.RejectCall("kernel, dilation and stride must be positive");
    }
    const int64_t room = image[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
    if (room < 0) call.RejectArg(2, "is larger than the padded image");
    windows *= room / stride[i] + 1;
  }
  const int64_t depth = columns.sizes()[columns.dim() - 2], window = kernel[0] * kernel[1];
  if (columns.sizes().back() != windows || depth % window != 0) {
    call.RejectArg(0, "has shape " + SizesText(columns.sizes()) + ", expected " +
                          std::to_string(windows) + " columns of a multiple of " +
                          std::to_string(window) + " rows");
  }
  std::vector<int64_t> sizes(columns.sizes().begin(), columns.sizes().end() - 1);
  sizes.back() = depth / window;
  sizes.insert(sizes.end(), image.begin(), image.end());
  const Tensor out = call.Out(6);
  call.ExpectSizes(6, out, sizes);
  return MakeKernel(
      [=] { out.copy_(f::col2im(columns(), image, kernel, dilation, padding, stride)); });
}

}  // namespace

KernelRows ShapeRows() {
  const auto reflection_1d = [](Tensor& out, const Tensor& self, at::IntArrayRef pad) {
    f::reflection_pad1d_out(out, self, pad);
  };
  const auto reflection_2d = [](Tensor& out, const Tensor& self, at::IntArrayRef pad) {
    f::reflection_pad2d_out(out, self, pad);
  };
  const auto reflection_3d = [](Tensor& out, const Tensor& self, at::IntArrayRef pad) {
    f::reflection_pad3d_out(out, self, pad);
  };
  const auto replication_1d = [](Tensor& out, const Tensor& self, at::IntArrayRef pad) {
    f::replication_pad1d_out(out, self, pad);
  };
  const auto replication_2d = [](Tensor& out, const Tensor& self, at::IntArrayRef pad) {
    f::replication_pad2d_out(out, self, pad);
  };
  const auto replication_3d = [](Tensor& out, const Tensor& self, at::IntArrayRef pad) {
    f::replication_pad3d_out(out, self, pad);
  };
  const auto reflection_1d_grad = [](const Tensor& g, const Tensor& self, at::IntArrayRef pad) {
    return at::reflection_pad1d_backward(g, self, pad);
  };
  const auto reflection_2d_grad = [](const Tensor& g, const Tensor& self, at::IntArrayRef pad) {
    return at::reflection_pad2d_backward(g, self, pad);
  };
  const auto reflection_3d_grad = [](const Tensor& g, const Tensor& self, at::IntArrayRef pad) {
    return at::reflection_pad3d_backward(g, self, pad);
  };
  const auto replication_1d_grad = [](const Tensor& g, const Tensor& self, at::IntArrayRef pad) {
    return at::replication_pad1d_backward(g, self, pad);
  };
  const auto replication_2d_grad = [](const Tensor& g, const Tensor& self, at::IntArrayRef pad) {
    return at::replication_pad2d_backward(g, self, pad);
  };
  const auto replication_3d_grad = [](const Tensor& g, const Tensor& self, at::IntArrayRef pad) {
    return at::replication_pad3d_backward(g, self, pad);
  };
  return {
      {"aclnnInplaceCopy", BindInplaceCopy},
      {"aclnnNpuFormatCast", BindFormatCast},
      {"aclnnCast", BindCast},
      {"aclnnPermute", CopyOf(Permuted, 2)},
      {"aclnnExpand", CopyOf(Expanded, 2)},
      {"aclnnSlice", CopyOf(Sliced, 5)},
      {"aclnnSliceV2", CopyOf(SlicedDims, 5)},
      {"aclnnCat", BindCat},
      {"aclnnStack", BindStack},
      {"aclnnChunkCat", BindChunkCat},
      {"aclnnSplitTensor", BindSplitTensor},
      {"aclnnSplitWithSize", BindSplitWithSize},
      {"aclnnRepeat", BindRepeat},
      {"aclnnRepeatInterleaveIntWithDim", BindRepeatInterleave},
      {"aclnnFlip", BindFlip},
      {"aclnnRoll", BindRoll},
      {"aclnnConstantPadNd", BindConstantPad},
      {"aclnnReflectionPad1d", Pad(reflection_1d, PadMode::kMirrored), Widen::kHalfAndBfloat16},
      {"aclnnReflectionPad2d", Pad(reflection_2d, PadMode::kMirrored), Widen::kHalfAndBfloat16},
      {"aclnnReflectionPad3d", Pad(reflection_3d, PadMode::kMirrored), Widen::kHalfAndBfloat16},
      {"aclnnReplicationPad1d", Pad(replication_1d, PadMode::kHeld), Widen::kHalfAndBfloat16},
      {"aclnnReplicationPad2d", Pad(replication_2d, PadMode::kHeld), Widen::kHalfAndBfloat16},
      {"aclnnReplicationPad3d", Pad(replication_3d, PadMode::kHeld), Widen::kHalfAndBfloat16},
      {"aclnnReflectionPad1dBackward", PadBackward(reflection_1d_grad), Widen::kHalfAndBfloat16},
      {"aclnnReflectionPad2dBackward", PadBackward(reflection_2d_grad), Widen::kHalfAndBfloat16},
      {"aclnnReflectionPad3dBackward", PadBackward(reflection_3d_grad), Widen::kHalfAndBfloat16},
      {"aclnnReplicationPad1dBackward", PadBackward(replication_1d_grad), Widen::kHalfAndBfloat16},
      {"aclnnReplicationPad2dBackward", PadBackward(replication_2d_grad), Widen::kHalfAndBfloat16},
      {"aclnnReplicationPad3dBackward", PadBackward(replication_3d_grad), Widen::kHalfAndBfloat16},
      {"aclnnCircularPad2d", CircularPad(2)},
      {"aclnnCircularPad3d", CircularPad(3)},
      {"aclnnCircularPad2dBackward", CircularPadBackward(2), Widen::kHalfAndBfloat16},
      {"aclnnCircularPad3dBackward", CircularPadBackward(3), Widen::kHalfAndBfloat16},
      {"aclnnDiag", BindDiag},
      {"aclnnDiagFlat", BindDiagFlat},
      {"aclnnFlatten", BindFlatten},
      {"aclnnStridedSliceAssignV2", BindStridedSliceAssign},
      {"aclnnTriu", kAlsoInPlace, Triangle(f::triu_out)},
      {"aclnnTril", kAlsoInPlace, Triangle(f::tril_out)},
      {"aclnnIm2col", BindIm2col},
      {"aclnnChannelShuffle", BindChannelShuffle},
      {"aclnnUnfoldGrad", BindUnfoldGrad},
      {"aclnnIm2colBackward", BindCol2im, Widen::kHalfAndBfloat16},
  };
}

}  // namespace acltape::opapi
