// Quantisation: integers of 8 bits that stand for real numbers by a scale and a zero point.
#include "runtime/opapi/kernels/quantize.h"

#include <ATen/ATen.h>

#include "runtime/opapi/kernels/optional.h"
#include "runtime/opapi/kernels/quantized_factors.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// One value for all, or one for each entry of dim `axis`, shaped to meet a tensor of rank `rank`.
Tensor AlongAxis(const Tensor& values, int64_t axis, int64_t rank) {
  if (values.numel() == 1) return values.reshape({});
  std::vector<int64_t> sizes(rank, 1);
  sizes[axis] = values.numel();
  return values.reshape(sizes);
}

void ExpectAlongAxis(const Call& call, int i, const Operand& values, int64_t entries) {
  if (!values.defined()) return;
  const int64_t count = values.view().numel();
  if (count != 1 && (values.dim() != 1 || count != entries)) {
    call.RejectArg(i, "needs one element, or one for each of " + std::to_string(entries));
  }
}

// (x, scales, zeroPoints?, dtype, axis, out): round(x / scale) + zeroPoint
std::unique_ptr<Kernel> BindQuantize(const Call& call) {
  const Operand x = call.In(0), scales = call.In(1), zeros = call.OptionalIn(2);
  ExpectFloats(call, 0, x.view());
  const int64_t axis = call.Dim(4, x.dim());
  const int64_t entries = x.dim() == 0 ? 1 : x.sizes()[axis];
  ExpectAlongAxis(call, 1, scales, entries);
  ExpectAlongAxis(call, 2, zeros, entries);
  const Tensor out = call.Out(5);
  call.ExpectSizes(5, out, x.sizes());
  const IntegerRange range = RangeOf(call, 5, out);
  return MakeKernel([=] {
    Tensor scaled = (x() / AlongAxis(scales(), axis, x.dim()).to(at::kFloat)).round();
    if (zeros.defined()) scaled = scaled + AlongAxis(zeros(), axis, x.dim()).to(at::kFloat);
    out.copy_(scaled.clamp(range.low, range.high));
  });
}

// (x, scale, offset?, sqrtMode, roundMode, dstType, [axis,] y): round(x * scale + offset); without
// an axis along the last dim
std::unique_ptr<Kernel> BindAscendQuant(const Call& call, bool has_axis) {
  const Operand x = call.In(0), scale = call.In(1), offset = call.OptionalIn(2);
  ExpectFloats(call, 0, x.view());
  const bool squared = call.Bool(3);
  const std::string mode = call.Text(4);
  if (mode != "round" && mode != "floor" && mode != "ceil" && mode != "trunc") {
    call.RejectArg(4, "must be \"round\", \"floor\", \"ceil\" or \"trunc\"");
  }
  const int64_t axis = has_axis ? call.Dim(6, x.dim()) : std::max<int64_t>(x.dim() - 1, 0);
  const int64_t entries = x.dim() == 0 ? 1 : x.sizes()[axis];
  ExpectAlongAxis(call, 1, scale, entries);
  ExpectAlongAxis(call, 2, offset, entries);
  const int out_index = has_axis ? 7 : 6;
  const QuantizedOut out = ReadQuantizedOut(call, out_index, x.sizes(), Bytes::kBoth);
  return MakeKernel([=] {
    Tensor factor = AlongAxis(scale(), axis, x.dim());
    if (squared) factor = factor * factor;
    Tensor scaled = x() * factor;
    if (offset.defined()) scaled = scaled + AlongAxis(offset(), axis, x.dim());
    const Tensor whole = mode == "round"   ? scaled.round()
                         : mode == "floor" ? scaled.floor()
                         : mode == "ceil"  ? scaled.ceil()
                                           : scaled.trunc();
    out.Write(whole.clamp(out.range.low, out.range.high));
  });
}

// (x, scale, offset?, dstType, sqrtMode, y): (x + offset) * scale, along the last dim
std::unique_ptr<Kernel> BindAscendAntiQuant(const Call& call) {
  const Operand scale = call.In(1), offset = call.OptionalIn(2);
  const IntegerMatrix x = ReadIntegers(call, 0);
  const std::vector<int64_t> sizes = x.sizes();
  const bool squared = call.Bool(4);
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t axis = std::max<int64_t>(rank - 1, 0);
  const int64_t entries = rank == 0 ? 1 : sizes[axis];
  ExpectAlongAxis(call, 1, scale, entries);
  ExpectAlongAxis(call, 2, offset, entries);
  ExpectFloats(call, 5, call.View(5));
  return BindWhole(call, 5, sizes, [=] {
    Tensor factor = AlongAxis(scale(), axis, rank);
    if (squared) factor = factor * factor;
    Tensor wide = x.Read();
    if (offset.defined()) wide = wide + AlongAxis(offset(), axis, rank);
    return wide * factor;
  });
}

// (x, smoothScales?, y, scale): a scale for each row, so that its greatest magnitude becomes the
// greatest value of y's dtype
std::unique_ptr<Kernel> BindDynamicQuant(const Call& call) {
  const Operand x = call.In(0), smooth = call.OptionalIn(1);
  ExpectFloats(call, 0, x.view());
  if (x.dim() == 0) call.RejectArg(0, "has no dims");
  if (smooth.defined()) call.ExpectSizes(1, smooth.view(), {x.sizes().back()});
  const QuantizedOut y = ReadQuantizedOut(call, 2, x.sizes());
  const Tensor scale = call.Out(3);
  call.ExpectSizes(3, scale, x.sizes().slice(0, x.dim() - 1));
  return MakeKernel([=] {
    const ScaledRows rows = ScaleRows(smooth.defined() ? x() * smooth() : x(), y.range.high);
    y.Write(rows.values);
    scale.copy_(rows.scale);
  });
}

// Factors of each row, from those of each group and the ends of the groups among the rows. Rows
// after the last group keep their values.
Tensor FactorsOfRows(const Tensor& factors, const Tensor& ends, int64_t rows) {
  Tensor each = at::ones({rows, factors.size(1)}, factors.options());
  int64_t begin = 0;
  for (int64_t group = 0; group < ends.numel(); ++group) {
    const int64_t end = ends[group].item<int64_t>();
    TORCH_CHECK(end >= begin && end <= rows, "group ", group, " ends at ", end,
                ", which lies outside of ", begin, " to ", rows);
    each.narrow(0, begin, end - begin).copy_(factors[group]);
    begin = end;
  }
  return each;
}

// (x, smoothScales?, groupIndex?, dstType, y, scale, offset?): as above; the rows of each group
// have factors of their own. With an offset the least and the greatest of a row become those of y's
// dtype.
std::unique_ptr<Kernel> BindDynamicQuantV2(const Call& call) {
  const Operand x = call.In(0), smooth = call.OptionalIn(1);
  ExpectFloats(call, 0, x.view());
  if (x.dim() == 0 || x.sizes().back() == 0) call.RejectArg(0, "has no rows");
  const int64_t width = x.sizes().back(), rows = x.view().numel() / width;
  Tensor ends;
  if (!call.IsAbsent(2)) {
    if (!smooth.defined()) call.RejectArg(2, "is given without smoothScales");
    ends = call.View(2);
    call.ExpectIndex(2, ends);
    call.ExpectSizes(1, smooth.view(), {ends.numel(), width});
  } else if (smooth.defined()) {
    call.ExpectSizes(1, smooth.view(), {width});
  }
  const QuantizedOut y = ReadQuantizedOut(call, 4, x.sizes());
  const Tensor scale = call.Out(5);
  call.ExpectSizes(5, scale, x.sizes().slice(0, x.dim() - 1));
  Tensor offset;
  if (!call.IsAbsent(6)) {
    offset = call.Out(6);
    call.ExpectSizes(6, offset, scale.sizes());
  }
  return MakeKernel([=] {
    Tensor input = x().to(at::kFloat).reshape({rows, width});
    if (ends.defined()) {
      input = input * FactorsOfRows(smooth().to(at::kFloat), ends, rows);
    } else if (smooth.defined()) {
      input = input * smooth().to(at::kFloat);
    }
    if (!offset.defined()) {
      const ScaledRows scaled = ScaleRows(input, y.range.high);
      y.Write(scaled.values.view(x.sizes()));
      scale.copy_(scaled.scale.view(scale.sizes()));
      return;
    }
    const Tensor most = input.amax(-1, /*keepdim=*/true);
    const Tensor step = (most - input.amin(-1, /*keepdim=*/true)) / (y.range.high - y.range.low);
    const Tensor used = step.masked_fill(step.eq(0), 1);
    const Tensor shift = y.range.high - most / used;
    y.Write((input / used + shift).round().clamp(y.range.low, y.range.high).view(x.sizes()));
    scale.copy_(step.view(scale.sizes()));
    offset.copy_(shift.view(scale.sizes()));
  });
}

// Floats of 32 bits with their lower 13 bits rounded off, halves to even, as a conversion to a
// shorter float does.
Tensor RoundedScale(const Tensor& bits) {
  const Tensor odd = bits.bitwise_right_shift(13).bitwise_and(at::Scalar(int64_t{1}));
  return bits + odd + int64_t{0xFFF};
}

// (scale, offset?, out) and (scale, offset?, roundMode, out): the parameters of a quantised product
// in the device's 64 bits. The upper 19 bits of the scale stay where they are, cut off or, in mode
// 1, rounded; bit 46 is set, and bits 37 to 45 hold the offset as an integer.
std::unique_ptr<Kernel> BindTransQuantParam(const Call& call, int mode_index, int out_index) {
  constexpr int64_t kScaleBits = 0xFFFFE000, kFlag = int64_t{1} << 46;
  constexpr int64_t kOffsetBits = 0x1FF, kOffsetShift = int64_t{1} << 37;
  const Operand scale = call.In(0), offset = call.OptionalIn(1);
  for (int i : {0, 1}) {
    if (!call.IsAbsent(i) && call.View(i).scalar_type() != at::kFloat) {
      call.RejectArg(i, "is not of dtype float32");
    }
  }
  const int64_t mode = mode_index < 0 ? 0 : call.Int(mode_index);
  if (mode != 0 && mode != 1) call.RejectArg(mode_index, "must be 0 (cut off) or 1 (round)");
  const Tensor out = call.BitsOut(out_index);
  call.ExpectSizes(
      out_index, out,
      offset.defined() ? call.Broadcast({scale.sizes(), offset.sizes()}) : scale.sizes().vec());
  if (out.scalar_type() != at::kLong) call.RejectArg(out_index, "is neither int64 nor uint64");
  return MakeKernel([=] {
    Tensor bits = scale().contiguous().view(at::kInt).to(at::kLong);
    if (mode == 1) bits = RoundedScale(bits);
    Tensor param = bits.bitwise_and(at::Scalar(kScaleBits)).bitwise_or(at::Scalar(kFlag));
    if (offset.defined()) {
      const Tensor whole = offset().round().clamp(-256, 255).to(at::kLong);
      param = param + whole.bitwise_and(at::Scalar(kOffsetBits)) * kOffsetShift;
    }
    out.copy_(param);
  });
}

}  // namespace

IntegerRange RangeOf(const Call& call, int i, const Tensor& out) {
  switch (out.scalar_type()) {
    case at::kChar:
      return {-128, 127};
    case at::kByte:
      return {0, 255};
    case at::kInt:
      return {-2147483648.0, 2147483647.0};
    default:
      call.RejectArg(i, std::string("has dtype ") + at::toString(out.scalar_type()) +
                            ", expected int8, uint8 or int32");
  }
}

void ExpectInt8(const Call& call, int i, const Tensor& tensor) {
  if (tensor.scalar_type() != at::kChar) call.RejectArg(i, "is not of dtype int8");
}

ScaledRows ScaleRows(const Tensor& input, double most) {
  const Tensor each = input.abs().amax(-1, /*keepdim=*/true) / most;
  return {(input / each.masked_fill(each.eq(0), 1)).round().clamp(-most - 1, most),
          each.squeeze(-1)};
}

void QuantizedOut::Write(const Tensor& values) const {
  if (four_bits.defined()) return four_bits.Write(values);
  view.copy_(packed ? PackInt4(values) : values);
}

QuantizedOut ReadQuantizedOut(const Call& call, int i, at::IntArrayRef sizes, Bytes bytes) {
  constexpr IntegerRange kFourBits = {-8, 7};
  if (IsFourBits(call, i)) {
    QuantizedOut out{kFourBits, {}, FourBits(call, i, /*written=*/true)};
    if (out.four_bits.sizes() != sizes) {
      call.RejectArg(
          i, "has shape " + SizesText(out.four_bits.sizes()) + ", expected " + SizesText(sizes));
    }
    if (!sizes.empty() && sizes.back() % 2 != 0) {
      call.RejectArg(i, "has a last dim of an odd size, which int4 cannot have");
    }
    return out;
  }
  QuantizedOut out{{}, call.Out(i), {}};
  out.packed = out.view.scalar_type() == at::kInt;
  if (!out.packed) {
    if (bytes == Bytes::kSigned) ExpectInt8(call, i, out.view);
    call.ExpectSizes(i, out.view, sizes);
    out.range = RangeOf(call, i, out.view);
    return out;
  }
  std::vector<int64_t> packed = sizes.vec();
  if (packed.empty() || packed.back() % 8 != 0) {
    call.RejectArg(i,
                   "is int32, which packs eight integers of 4 bits, but the last dim of the "
                   "result is no multiple of 8");
  }
  packed.back() /= 8;
  call.ExpectSizes(i, out.view, packed);
  out.range = kFourBits;
  return out;
}

KernelRows QuantizeRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnQuantize", BindQuantize, kBoth},
      {"aclnnAscendQuant", [](const Call& call) { return BindAscendQuant(call, false); }, kBoth},
      {"aclnnAscendQuantV3", [](const Call& call) { return BindAscendQuant(call, true); }, kBoth},
      {"aclnnAscendAntiQuant", BindAscendAntiQuant, kBoth, {2}},
      {"aclnnDynamicQuant", BindDynamicQuant, kBoth},
      {"aclnnDynamicQuantV2", BindDynamicQuantV2, kBoth, {6}},
      {"aclnnTransQuantParamV2", [](const Call& call) { return BindTransQuantParam(call, -1, 2); }},
      {"aclnnTransQuantParamV3", [](const Call& call) { return BindTransQuantParam(call, 2, 3); }},
  };
}

}  // namespace acltape::opapi
