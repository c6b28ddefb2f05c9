// Quantised rows through the matrix of their expert and a gate, and quantised again
// (aclnnGroupedMatmulSwigluQuant and its versions). Products are summed in float64, so that those
// of integers are exact before they are scaled. Rows after the last group are zeros.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/expert_matrices.h"
#include "runtime/opapi/kernels/group_ends.h"
#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments in a version of the operator; -1: none.
struct GatedArguments {
  int assist, scale, x_scale, smooth, groups, mode, out;
  std::vector<int> absent;  // the page reserves them
  bool four_bit_rows;       // x may have integers of 4 bits, too
};
const GatedArguments kGated = {2, 4, 5, -1, 6, -1, 7, {3, 9}, false};
const GatedArguments kGatedV2 = {3, 2, 5, -1, 7, 8, 13, {4, 6, 12}, false};
const GatedArguments kGatedWeightNzV2 = {3, 2, 5, 6, 7, 8, 13, {4}, true};

struct GatedExperts {
  IntegerMatrix x;
  ExpertMatrices weights;
  std::vector<Tensor> scales, assists;  // one for each expert; there may be no assists
  Tensor x_scale, smooth, groups, out, out_scale;
  bool lengths = false;

  int64_t rows() const { return x.sizes()[0]; }
  // Rows of an expert before the gate. A device splits a row of int8 into two of 4 bits, the lower
  // one 8 too small, which the assisting matrix makes up for.
  Tensor Products(const Tensor& rows, const Tensor& of_rows, const ExpertMatrices& read,
                  int64_t expert) const {
    const Tensor factors = SpreadFactors(scales[expert], read.inner);
    const Tensor shifted = assists.empty() ? rows : rows - 8;
    Tensor sums = at::mm(shifted, read.Of(expert) * factors);
    if (!assists.empty()) sums = sums + assists[expert].to(at::kDouble);
    return (sums * of_rows.to(at::kDouble).unsqueeze(-1)).to(at::kFloat);
  }
  // The first half of the columns passes through the gate, the second half is multiplied with it.
  Tensor ThroughGate(const Tensor& products, int64_t expert) const {
    const int64_t width = products.size(1) / 2;
    const Tensor gate = products.narrow(1, 0, width);
    const Tensor values = gate * at::sigmoid(gate) * products.narrow(1, width, width);
    return smooth.defined() ? values * smooth[expert] : values;
  }
  void Run() const {
    const Tensor integers = x.Read().to(at::kDouble);
    const ExpertMatrices read = weights.Readable();
    int64_t begin = 0, expert = 0;
    for (const int64_t end : GroupEnds(groups, lengths, rows())) {
      if (end > begin) {
        const Tensor products =
            Products(integers.slice(0, begin, end), x_scale.slice(0, begin, end), read, expert);
        const ScaledRows scaled = ScaleRows(ThroughGate(products, expert));
        out.slice(0, begin, end).copy_(scaled.values);
        out_scale.slice(0, begin, end).copy_(scaled.scale);
      }
      begin = end;
      ++expert;
    }
    out.slice(0, begin).zero_();
    out_scale.slice(0, begin).zero_();
  }
};

// Checks the modes of the second version: whether factors are those of groups of rows, the dtypes
// that the device has for its intermediate results, and the kind of the list of groups.
void ReadGatedModes(const Call& call, const GatedArguments& at, bool of_groups,
                    GatedExperts* experts) {
  if (at.mode < 0) return;
  const int64_t mode = call.Int(at.mode), dtype = call.Int(at.mode + 1);
  if (mode != 0 && mode != 1) call.RejectArg(at.mode, "must be 0 (columns) or 1 (groups)");
  if (mode == 1 && !experts->weights.OfFourBits()) {
    call.RejectArg(at.mode, "must be 0 for a weight of int8");
  }
  if ((mode == 1) != of_groups) call.RejectArg(at.mode, "does not fit the dims of weightScale");
  constexpr int64_t kFloat = 0, kHalf = 1, kBfloat16 = 27, kUndefined = 28;
  if (dtype != kFloat && dtype != kHalf && dtype != kBfloat16 && dtype != kUndefined) {
    call.RejectArg(at.mode + 1, "must be 0, 1, 27 or 28");
  }
  if (call.Int(at.mode + 2) != 0) call.RejectArg(at.mode + 2, "must be 0 (a scale for each row)");
  const int64_t kind = call.Int(at.mode + 3);
  if (kind != 0 && kind != 1) {
    call.RejectArg(at.mode + 3, "must be 0 (ends of groups) or 1 (their lengths)");
  }
  experts->lengths = kind == 1;
}

void ExpectGatedFloat(const Call& call, int i, const Tensor& tensor) {
  ExpectDtypes(call, i, tensor, {at::kFloat});
}

void ReadGatedScales(const Call& call, const GatedArguments& at, GatedExperts* experts) {
  const ExpertMatrices& weights = experts->weights;
  experts->scales = ReadOfExperts(call, at.scale, weights.experts);
  for (const Tensor& scale : experts->scales) {
    if (weights.OfFourBits()) {
      ExpectDtypes(call, at.scale, scale, {at::kLong});
      ExpectFactors(call, at.scale, scale, weights.inner, weights.columns);
    } else {
      ExpectDtypes(call, at.scale, scale, {at::kFloat, at::kHalf, at::kBFloat16});
      call.ExpectSizes(at.scale, scale, {weights.columns});
    }
  }
}

// The matrix that goes with rows of int8 and weights of 4 bits, and with nothing else.
void ReadGatedAssists(const Call& call, const GatedArguments& at, GatedExperts* experts) {
  const bool wanted = experts->weights.OfFourBits() && !experts->x.OfFourBits();
  const bool given = !call.IsAbsent(at.assist);
  if (wanted && !given) {
    call.RejectArg(at.assist, "is absent, and x of int8 with a weight of 4 bits needs it");
  }
  if (given && !wanted) {
    call.RejectArg(at.assist, "is given, but only x of int8 with a weight of 4 bits has it");
  }
  if (!given) return;
  experts->assists = ReadOfExperts(call, at.assist, experts->weights.experts);
  for (const Tensor& assist : experts->assists) {
    ExpectGatedFloat(call, at.assist, assist);
    call.ExpectSizes(at.assist, assist, {experts->weights.columns});
  }
}

// Factors after the gate: one for each expert, or one for each of its columns.
void ReadGatedSmooth(const Call& call, const GatedArguments& at, GatedExperts* experts) {
  if (at.smooth < 0 || call.IsAbsent(at.smooth)) return;
  if (!experts->x.OfFourBits()) call.RejectArg(at.smooth, "is given, but x is not of 4 bits");
  experts->smooth = call.View(at.smooth);
  ExpectGatedFloat(call, at.smooth, experts->smooth);
  const int64_t count = experts->weights.experts;
  if (experts->smooth.dim() == 1) {
    call.ExpectSizes(at.smooth, experts->smooth, {count});
  } else {
    call.ExpectSizes(at.smooth, experts->smooth, {count, experts->weights.columns / 2});
  }
}

void ReadGatedTuning(const Call& call, const GatedArguments& at, const GatedExperts& experts) {
  constexpr int kTuning = 12;
  if (at.four_bit_rows && !call.IsAbsent(kTuning) && !experts.x.OfFourBits()) {
    call.RejectArg(kTuning, "is given, but x is not of 4 bits");
  }
}

// The bounds of the page.
void ExpectGatedBounds(const Call& call, const GatedExperts& experts) {
  constexpr int64_t kColumns = 10240, kInner = 65536, kInnerOfFourBits = 20000;
  const ExpertMatrices& weights = experts.weights;
  if (weights.columns % 2 != 0) call.RejectArg(1, "has no matrices with pairs of columns");
  if (weights.columns > kColumns) call.RejectArg(1, "has more than 10240 columns");
  if (weights.inner >= (weights.OfFourBits() ? kInnerOfFourBits : kInner)) {
    call.RejectArg(0, weights.OfFourBits()
                          ? "has 20000 columns or more, and the weight is of 4 bits"
                          : "has 65536 columns or more");
  }
}

// (x, weight, ..., weightScale, xScale, ..., groupList, ..., output, outputScale, ...)
std::unique_ptr<Kernel> BindGatedExperts(const Call& call, const GatedArguments& at) {
  call.ExpectAbsent(at.absent);
  GatedExperts experts{.x = ReadIntegers(call, 0)};
  if (experts.x.OfFourBits() && !at.four_bit_rows) ExpectInt8(call, 0, call.View(0));
  const std::vector<int64_t> sizes = experts.x.sizes();
  if (sizes.size() != 2) call.RejectArg(0, "has not 2 dims");
  if (at.mode >= 0 && sizes[0] == 0) call.RejectArg(0, "is empty");
  experts.weights = ReadExpertMatrices(call, 1, sizes[1]);
  if (experts.x.OfFourBits() && !experts.weights.OfFourBits()) {
    call.RejectArg(1, "must be of 4 bits like x");
  }
  ExpectGatedBounds(call, experts);
  ReadGatedScales(call, at, &experts);
  ReadGatedModes(call, at, experts.scales[0].dim() == 2, &experts);
  ReadGatedAssists(call, at, &experts);
  ReadGatedSmooth(call, at, &experts);
  ReadGatedTuning(call, at, experts);
  experts.x_scale = call.View(at.x_scale);
  ExpectGatedFloat(call, at.x_scale, experts.x_scale);
  call.ExpectSizes(at.x_scale, experts.x_scale, {sizes[0]});
  experts.groups = ReadExpertGroups(call, at.groups, experts.weights.experts);
  experts.out = call.Out(at.out);
  ExpectInt8(call, at.out, experts.out);
  call.ExpectSizes(at.out, experts.out, {sizes[0], experts.weights.columns / 2});
  experts.out_scale = call.Out(at.out + 1);
  ExpectGatedFloat(call, at.out + 1, experts.out_scale);
  call.ExpectSizes(at.out + 1, experts.out_scale, {sizes[0]});
  return MakeKernel([experts] { experts.Run(); });
}

}  // namespace

KernelRows GatedExpertRows() {
  const auto version = [](const GatedArguments& at) {
    return [&at](const Call& call) { return BindGatedExperts(call, at); };
  };
  return {
      {"aclnnGroupedMatmulSwigluQuant", version(kGated)},
      {"aclnnGroupedMatmulSwigluQuantWeightNZ", version(kGated)},
      {"aclnnGroupedMatmulSwigluQuantV2", version(kGatedV2)},
      {"aclnnGroupedMatmulSwigluQuantWeightNzV2", version(kGatedWeightNzV2)},
  };
}

}  // namespace acltape::opapi
