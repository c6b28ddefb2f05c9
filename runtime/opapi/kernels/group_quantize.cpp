// Quantisation to int8 with scales of groups of rows or of blocks, and the way back from the
// integers of a quantised product. The rules are those of the vendor's pages aclnnGroupQuant,
// aclnnDynamicBlockQuant, aclnnDynamicBlockQuantV2 and aclnnDequantBias.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The numbers of ACL's dtypes that these operators name.
constexpr int64_t kToHalf = 1, kToInt8 = 2, kToBfloat16 = 27;

// (x, scale, groupIndex, offset?, dstType, y): round(x * scale + offset). Entry g of groupIndex is
// the row at which group g ends. Rows after the last group, which callers must not have, become 0.
std::unique_ptr<Kernel> BindGroupQuant(const Call& call) {
  const Operand x = call.In(0), scale = call.In(1), offset = call.OptionalIn(3);
  const Tensor ends = call.View(2);
  for (int i : {0, 1}) {
    ExpectDtypes(call, i, call.View(i), {at::kFloat, at::kHalf, at::kBFloat16});
    call.ExpectRank(i, call.View(i), 2);
  }
  call.ExpectIndex(2, ends);
  call.ExpectRank(2, ends, 1);
  const int64_t rows = x.sizes()[0], width = x.sizes()[1];
  call.ExpectSizes(1, scale.view(), {ends.size(0), width});
  if (ends.size(0) == 0) call.RejectArg(2, "has no groups");
  if (offset.defined()) {
    ExpectDtypes(call, 3, offset.view(), {scale.view().scalar_type()});
    if (offset.view().numel() != 1) call.RejectArg(3, "must have one element");
  }
  if (call.Int(4) != kToInt8) call.RejectArg(4, "is not int8, which the soft device quantises to");
  ExpectInt8(call, 5, call.View(5));
  return BindWhole(call, 5, x.sizes(), [=] {
    const Tensor row = at::arange(rows, at::TensorOptions(at::kLong)).unsqueeze(1);
    const Tensor group = row.ge(ends.to(at::kLong).unsqueeze(0)).sum(1);
    const Tensor after = group.ge(ends.size(0));
    Tensor scaled = x() * scale().index_select(0, group.clamp_max(ends.size(0) - 1));
    if (offset.defined()) scaled = scaled + offset().reshape({});
    return scaled.round().clamp(-128, 127).masked_fill(after.unsqueeze(1), 0);
  });
}

// The sizes of blocks along a dim that the page lists.
void ExpectBlockSize(const Call& call, int i, std::initializer_list<int64_t> sizes) {
  if (std::count(sizes.begin(), sizes.end(), call.Int(i)) == 0) {
    call.RejectArg(i, "is not a size of blocks that the operator takes");
  }
}

// [rows, columns] cut in blocks: [blocks of rows, rows of a block, blocks of columns, columns of a
// block], filled up with zeros.
Tensor CutInBlocks(const Tensor& x, int64_t rows, int64_t columns) {
  const auto lacking = [](int64_t size, int64_t block) { return (block - size % block) % block; };
  const Tensor whole =
      at::constant_pad_nd(x, {0, lacking(x.size(1), columns), 0, lacking(x.size(0), rows)}, 0);
  return whole.view({whole.size(0) / rows, rows, whole.size(1) / columns, columns});
}

// (x, minScale, roundMode?, dstType, rowBlockSize, colBlockSize, [dstTypeMax,] y, scale): the
// greatest magnitude of each block becomes 127. `minScale` bounds the scale from above, by 1 over
// it, as the page says.
Binder DynamicBlockQuant(bool has_most) {
  return [has_most](const Call& call) {
    const Operand x = call.In(0);
    ExpectDtypes(call, 0, x.view(), {at::kFloat, at::kHalf, at::kBFloat16});
    call.ExpectRank(0, x.view(), 2);
    const double least = call.Real(1);
    if (!(least >= 0)) call.RejectArg(1, "is negative");
    if (!call.IsNull(2) && !call.Text(2).empty() && call.Text(2) != "rint") {
      call.RejectArg(2, "must be \"rint\"");
    }
    if (call.Int(3) != kToInt8)
      call.RejectArg(3, "is not int8, which the soft device quantises to");
    ExpectBlockSize(call, 4, {1, 64, 128, 256, 512});
    ExpectBlockSize(call, 5, {64, 128, 192, 256});
    if (has_most && call.Real(6) != 0) call.RejectArg(6, "must be 0 for int8");
    const int first = has_most ? 7 : 6;
    const int64_t block_rows = call.Int(4), block_columns = call.Int(5);
    const int64_t rows = x.sizes()[0], columns = x.sizes()[1];
    const Tensor y = call.Out(first), scale = call.Out(first + 1);
    call.ExpectSizes(first, y, x.sizes());
    ExpectInt8(call, first, y);
    call.ExpectSizes(
        first + 1, scale,
        {(rows + block_rows - 1) / block_rows, (columns + block_columns - 1) / block_columns});
    ExpectDtypes(call, first + 1, scale, {at::kFloat});
    return MakeKernel([=] {
      if (x.view().numel() == 0) return;
      const Tensor blocks = CutInBlocks(x().contiguous(), block_rows, block_columns);
      Tensor each = blocks.abs().amax({1, 3}, /*keepdim=*/true) / 127;
      if (least > 0) each = each.clamp_max(1 / least);
      const Tensor whole = (blocks / each.masked_fill(each.eq(0), 1)).round().clamp(-128, 127);
      const Tensor laid_out = whole.view({whole.size(0) * block_rows, -1});
      y.copy_(laid_out.narrow(0, 0, rows).narrow(1, 0, columns));
      scale.copy_(each.view(scale.sizes()));
    });
  };
}

// (x, weightScale, activateScale?, bias?, outputDtype, out): integers times the scales of their
// column and row. A bias of integers is added before, any other after.
std::unique_ptr<Kernel> BindDequantBias(const Call& call) {
  const Tensor x = call.View(0);
  const Operand weight = call.In(1), activation = call.OptionalIn(2);
  ExpectDtypes(call, 0, x, {at::kInt});
  call.ExpectRank(0, x, 2);
  ExpectDtypes(call, 1, weight.view(), {at::kFloat, at::kBFloat16});
  call.ExpectSizes(1, weight.view(), {x.size(1)});
  if (activation.defined()) {
    ExpectDtypes(call, 2, activation.view(), {at::kFloat});
    call.ExpectSizes(2, activation.view(), {x.size(0)});
  }
  Tensor bias;
  if (!call.IsAbsent(3)) {
    bias = call.View(3);
    ExpectDtypes(call, 3, bias, {at::kFloat, at::kHalf, at::kBFloat16, at::kInt});
    call.ExpectSizes(3, bias, {x.size(1)});
  }
  const int64_t dtype = call.Int(4);
  if (dtype != kToHalf && dtype != kToBfloat16) call.RejectArg(4, "must be 1 or 27");
  ExpectDtypes(call, 5, call.View(5), {dtype == kToHalf ? at::kHalf : at::kBFloat16});
  return BindWhole(call, 5, x.sizes(), [=] {
    const bool before = bias.defined() && bias.scalar_type() == at::kInt;
    Tensor result = before ? (x.to(at::kLong) + bias).to(at::kFloat) : x.to(at::kFloat);
    result = result * weight().to(at::kFloat);
    if (activation.defined()) result = result * activation().unsqueeze(1);
    return bias.defined() && !before ? result + bias.to(at::kFloat) : result;
  });
}

}  // namespace

KernelRows GroupQuantizeRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnGroupQuant", BindGroupQuant, kBoth},
      {"aclnnDynamicBlockQuant", DynamicBlockQuant(false), kBoth, {2}},
      {"aclnnDynamicBlockQuantV2", DynamicBlockQuant(true), kBoth, {2}},
      {"aclnnDequantBias", BindDequantBias, kBoth},
  };
}

}  // namespace acltape::opapi
