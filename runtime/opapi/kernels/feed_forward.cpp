// Two products with an activation between them (aclnnFFN and its versions), for all rows or for the
// rows of each expert. Floats are computed in float32, products of integers in float64, which holds
// them exactly. What the vendor's page calls gelu is the exact one, as in the tests of torch_npu;
// of a gate the second half of the columns passes the activation.
#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "runtime/opapi/kernels/group_ends.h"
#include "runtime/opapi/kernels/quantized_factors.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments that versions of the operator have at different ones; -1: none.
struct FfnArguments {
  int index_flag, out;
  bool tokens_on_host;
};
const FfnArguments kFfn = {-1, 16, true};
const FfnArguments kFfnV2 = {16, 17, true};
const FfnArguments kFfnV3 = {16, 17, false};
// The positions of the others. Where there are two of a kind, the second product has the next one.
constexpr int kFfnWeight = 1, kFfnTokens = 3, kFfnBias = 4, kFfnScale = 6, kFfnOffset = 7,
              kFfnDequant = 8, kFfnAntiScale = 10, kFfnAntiOffset = 12, kFfnActivation = 14,
              kFfnPrecise = 15;

enum class FfnKind : uint8_t { kFloats, kIntegers, kIntegerWeights };

struct FfnActivation {
  const char* name;
  Tensor (*apply)(const Tensor&);
  bool gate;
};
Tensor FfnGelu(const Tensor& x) { return at::gelu(x); }
Tensor FfnFastGelu(const Tensor& x) { return x * at::sigmoid(x * 1.702); }
Tensor FfnSilu(const Tensor& x) { return x * at::sigmoid(x); }
Tensor FfnRelu(const Tensor& x) { return at::relu(x); }
constexpr FfnActivation kFfnActivations[] = {
    {"fastgelu", FfnFastGelu, false}, {"gelu", FfnGelu, false}, {"relu", FfnRelu, false},
    {"silu", FfnSilu, false},         {"geglu", FfnGelu, true}, {"swiglu", FfnSilu, true},
    {"reglu", FfnRelu, true},
};

// One of the two products. All tensors have a first dim that counts the experts.
struct FfnProduct {
  IntegerMatrix weight;  // or a matrix of floats
  Tensor bias, dequant, anti_scale, anti_offset;
  std::vector<int64_t> sizes;  // those of the weight

  int64_t inner() const { return sizes[1]; }
  int64_t columns() const { return sizes[2]; }
  Tensor OfExpert(const Tensor& given, int64_t expert) const {
    return given.defined() ? given[expert] : Tensor();
  }
  Tensor Matrix(int64_t expert, FfnKind kind, at::ScalarType dtype) const {
    if (kind != FfnKind::kIntegerWeights) return weight.view[expert];
    const Tensor factors = anti_scale[expert];
    const bool of_groups = factors.dim() == 2;
    return Dequantized(weight.view[expert], OfExpert(anti_offset, expert), factors, inner(),
                       of_groups ? inner() / factors.size(0) : 0, dtype);
  }
  Tensor Of(const Tensor& rows, int64_t expert, FfnKind kind, at::ScalarType dtype) const {
    const at::ScalarType wide = kind == FfnKind::kIntegers ? at::kDouble : at::kFloat;
    Tensor product = at::mm(rows.to(wide), Matrix(expert, kind, dtype).to(wide));
    if (bias.defined()) product = product + bias[expert].to(wide);
    if (kind != FfnKind::kIntegers) return product;
    return product.to(at::kFloat) * ScaleOf(dequant[expert]);
  }
};

struct Ffn {
  FfnKind kind = FfnKind::kFloats;
  FfnActivation activation;
  Tensor x, scale, offset, tokens, out;
  std::vector<int64_t> ends;  // the experts' rows; empty where a tensor has them
  bool lengths = false, experts = false;
  int64_t rows = 0;
  FfnProduct first, second;

  Tensor Activated(const Tensor& product) const {
    if (!activation.gate) return activation.apply(product);
    const int64_t width = product.size(1) / 2;
    return product.narrow(1, 0, width) * activation.apply(product.narrow(1, width, width));
  }
  Tensor Of(const Tensor& input, int64_t expert) const {
    const at::ScalarType dtype = x.scalar_type();
    Tensor hidden = Activated(first.Of(input, expert, kind, dtype));
    if (kind == FfnKind::kIntegers) {
      hidden = hidden * scale[expert];
      if (offset.defined()) hidden = hidden + offset[expert];
      hidden = hidden.round().clamp(-128, 127);
    }
    return second.Of(hidden, expert, kind, dtype);
  }
  void Run() const {
    Ffn read = *this;
    for (FfnProduct* product : {&read.first, &read.second}) {
      if (product->weight.four_bits.defined()) {
        product->weight = {.view = product->weight.four_bits.Read().view(product->sizes)};
      }
    }
    const Tensor input = x.reshape({rows, first.inner()});
    const Tensor result = at::zeros({rows, second.columns()});
    int64_t begin = 0, expert = 0;
    for (const int64_t end : tokens.defined() ? GroupEnds(tokens, lengths, rows) : ends) {
      if (end > begin)
        result.slice(0, begin, end).copy_(read.Of(input.slice(0, begin, end), expert));
      begin = end;
      ++expert;
    }
    out.copy_(result.view(out.sizes()));
  }
};

// A first dim for the experts where a call has none.
Tensor WithFfnExperts(const Ffn& ffn, const Tensor& tensor) {
  return ffn.experts ? tensor : tensor.unsqueeze(0);
}

void ReadFfnTokens(const Call& call, const FfnArguments& at, Ffn* ffn) {
  ffn->experts = !call.IsAbsent(kFfnTokens);
  if (!ffn->experts) {
    ffn->ends = {ffn->rows};
    return;
  }
  ffn->lengths = at.index_flag < 0 || !call.Bool(at.index_flag);
  constexpr int64_t kMost = 256;
  if (!at.tokens_on_host) {
    ffn->tokens = call.View(kFfnTokens);
    call.ExpectRank(kFfnTokens, ffn->tokens, 1);
    ExpectDtypes(call, kFfnTokens, ffn->tokens, {at::kLong});
    if (ffn->tokens.numel() > kMost) call.RejectArg(kFfnTokens, "has more than 256 entries");
    return;
  }
  ffn->ends = call.Ints(kFfnTokens);
  if (ffn->ends.size() > kMost) call.RejectArg(kFfnTokens, "has more than 256 entries");
  int64_t last = 0;
  for (int64_t& end : ffn->ends) {
    if (ffn->lengths) end = end < 0 || end > ffn->rows - last ? -1 : end + last;
    if (end < last || end > ffn->rows) {
      call.RejectArg(kFfnTokens, "does not cut the rows of x into groups");
    }
    last = end;
  }
  if (last != ffn->rows) call.RejectArg(kFfnTokens, "leaves rows of x without an expert");
}

// The weight of the product `which`, 0 or 1.
void ReadFfnWeight(const Call& call, int which, Ffn* ffn) {
  const int i = kFfnWeight + which;
  FfnProduct& product = which == 0 ? ffn->first : ffn->second;
  if (IsFourBits(call, i)) {
    product.weight.four_bits = FourBits(call, i);
    product.sizes = product.weight.four_bits.sizes().vec();
    if (!product.sizes.empty() && product.sizes.back() % 2 != 0) {
      call.RejectArg(i, "has a last dim of an odd size, which int4 cannot have");
    }
  } else {
    product.weight.view = call.View(i);
    product.sizes = product.weight.view.sizes().vec();
  }
  if (product.sizes.size() != (ffn->experts ? 3u : 2u)) {
    call.RejectArg(i, ffn->experts ? "has not 3 dims" : "has not 2 dims");
  }
  if (!ffn->experts) {
    product.sizes.insert(product.sizes.begin(), 1);
    if (product.weight.view.defined()) product.weight.view = product.weight.view.unsqueeze(0);
  }
  constexpr int64_t kMostInner = 65536;
  if (product.inner() >= kMostInner) call.RejectArg(i, "has 65536 rows or more");
  const auto count =
      static_cast<int64_t>(ffn->tokens.defined() ? ffn->tokens.numel() : ffn->ends.size());
  if (product.sizes[0] != count) call.RejectArg(i, "has not one matrix for each expert");
}

bool HasFfnIntegers(const FfnProduct& product) {
  return product.weight.four_bits.defined() || product.weight.view.scalar_type() == at::kChar;
}

void ReadFfnKind(const Call& call, Ffn* ffn) {
  const at::ScalarType dtype = ffn->x.scalar_type();
  ExpectDtypes(call, 0, ffn->x, {at::kHalf, at::kBFloat16, at::kChar});
  const bool integers = HasFfnIntegers(ffn->first);
  if (integers != HasFfnIntegers(ffn->second) ||
      ffn->first.weight.four_bits.defined() != ffn->second.weight.four_bits.defined()) {
    call.RejectArg(kFfnWeight + 1, "has another dtype than weight1");
  }
  ffn->kind = dtype == at::kChar ? FfnKind::kIntegers
              : integers         ? FfnKind::kIntegerWeights
                                 : FfnKind::kFloats;
  if (ffn->kind == FfnKind::kIntegerWeights) return;
  for (int which : {0, 1}) {
    const FfnProduct& product = which == 0 ? ffn->first : ffn->second;
    if (product.weight.four_bits.defined()) {
      call.RejectArg(kFfnWeight + which, "is of dtype int4, but x is of dtype int8");
    }
    ExpectDtypes(call, kFfnWeight + which, product.weight.view, {dtype});
  }
}

void ReadFfnActivation(const Call& call, Ffn* ffn) {
  const std::string name = call.Text(kFfnActivation);
  const auto* found = std::find_if(std::begin(kFfnActivations), std::end(kFfnActivations),
                                   [&](const FfnActivation& each) { return name == each.name; });
  if (found == std::end(kFfnActivations)) {
    call.RejectArg(kFfnActivation,
                   "must be fastgelu, gelu, relu, silu, geglu, swiglu or reglu, not " + name);
  }
  ffn->activation = *found;
  const int64_t precise = call.Int(kFfnPrecise);
  if (precise != 0 && precise != 1) call.RejectArg(kFfnPrecise, "must be 0 or 1");
  const bool floats = ffn->kind == FfnKind::kFloats;
  if (floats && ffn->x.scalar_type() == at::kBFloat16 && precise != 0) {
    call.RejectArg(kFfnPrecise, "must be 0 for bfloat16");
  }
  const bool halves = floats && ffn->x.scalar_type() == at::kHalf;
  if (found->gate && (!halves || ffn->experts || precise != 1)) {
    call.RejectArg(kFfnActivation,
                   "is " + name + ", which needs float16, no experts and innerPrecise 1");
  }
}

void ExpectFfnSizes(const Call& call, const Ffn& ffn) {
  if (ffn.first.inner() != ffn.x.size(-1)) {
    call.RejectArg(kFfnWeight, "has another number of rows than x has columns");
  }
  const int64_t halves = ffn.activation.gate ? 2 : 1;
  if (ffn.first.columns() != ffn.second.inner() * halves) {
    call.RejectArg(kFfnWeight + 1, "has not the number of rows that the activation leaves columns");
  }
  if (ffn.second.columns() != ffn.first.inner()) {
    call.RejectArg(kFfnWeight + 1, "has another number of columns than x");
  }
}

// An optional argument of one row for each expert, or of one entry where there is no width.
Tensor ReadFfnOfExpert(const Call& call, int i, const Ffn& ffn, int64_t width,
                       std::initializer_list<at::ScalarType> dtypes) {
  if (call.IsAbsent(i)) return {};
  const bool parameters = i == kFfnDequant || i == kFfnDequant + 1;
  const Tensor given = parameters ? call.Bits(i) : call.View(i);
  ExpectDtypes(call, i, given, dtypes);
  std::vector<int64_t> sizes;
  if (ffn.experts || width == 0) sizes.push_back(ffn.first.sizes[0]);
  if (width > 0) sizes.push_back(width);
  call.ExpectSizes(i, given, sizes);
  return width > 0 ? WithFfnExperts(ffn, given) : given;
}

Tensor RequiredFactor(const Call& call, int i, const Tensor& given) {
  if (!given.defined()) call.RejectArg(i, "is absent, and this kind of quantisation needs it");
  return given;
}

// Rows of int8: factors of both products, and what makes the activation whole numbers.
void ReadFfnIntegers(const Call& call, at::ScalarType out, Ffn* ffn) {
  for (int which : {0, 1}) {
    FfnProduct& product = which == 0 ? ffn->first : ffn->second;
    const int i = kFfnDequant + which;
    const int64_t width = product.columns();
    product.dequant = RequiredFactor(
        call, i,
        out == at::kHalf ? ReadFfnOfExpert(call, i, *ffn, width, {at::kLong, at::kFloat})
                         : ReadFfnOfExpert(call, i, *ffn, width, {at::kBFloat16}));
  }
  if (ffn->first.dequant.scalar_type() != ffn->second.dequant.scalar_type()) {
    call.RejectArg(kFfnDequant + 1, "has another dtype than the first one");
  }
  ffn->offset = ReadFfnOfExpert(call, kFfnOffset, *ffn, 0, {at::kFloat});
  if (call.IsAbsent(kFfnScale)) RequiredFactor(call, kFfnScale, {});
  const bool of_columns =
      ffn->experts ? call.View(kFfnScale).dim() > 1 : call.View(kFfnScale).numel() != 1;
  ffn->scale =
      ReadFfnOfExpert(call, kFfnScale, *ffn, of_columns ? ffn->first.columns() : 0, {at::kFloat});
  if (of_columns && ffn->first.dequant.scalar_type() == at::kFloat) {
    call.RejectArg(kFfnDequant, "must not be float32 where scale is of columns");
  }
}

// Factors or offsets of a weight of integers: of columns, or of columns and groups of rows.
Tensor ReadFfnAnti(const Call& call, int i, const Ffn& ffn, const FfnProduct& product) {
  if (call.IsAbsent(i)) return {};
  const Tensor given = call.View(i);
  ExpectDtypes(call, i, given, {ffn.x.scalar_type()});
  const Tensor wide = WithFfnExperts(ffn, given);
  if (wide.dim() == 2) {
    call.ExpectSizes(i, wide, {ffn.first.sizes[0], product.columns()});
    return wide;
  }
  call.ExpectRank(i, wide, 3);
  const int64_t groups = wide.size(1);
  if (groups == 0 || product.inner() % groups != 0) {
    call.RejectArg(i, "has groups that do not divide the weight's rows");
  }
  call.ExpectSizes(i, wide, {ffn.first.sizes[0], groups, product.columns()});
  return wide;
}

void ReadFfnAntiFactors(const Call& call, Ffn* ffn) {
  for (int which : {0, 1}) {
    FfnProduct& product = which == 0 ? ffn->first : ffn->second;
    const int i = kFfnAntiScale + which, offset = kFfnAntiOffset + which;
    product.anti_scale = RequiredFactor(call, i, ReadFfnAnti(call, i, *ffn, product));
    product.anti_offset = ReadFfnAnti(call, offset, *ffn, product);
    if (product.anti_offset.defined() &&
        product.anti_offset.sizes() != product.anti_scale.sizes()) {
      call.RejectArg(offset, "has another shape than the scale");
    }
  }
}

void ExpectFfnAbsent(const Call& call, int first, int last, const char* why) {
  for (int i = first; i <= last; ++i) {
    if (!call.IsAbsent(i)) call.RejectArg(i, std::string("is given, but ") + why);
  }
}

void ReadFfnFactors(const Call& call, const FfnArguments& at, Ffn* ffn) {
  if (ffn->kind != FfnKind::kIntegers) {
    ExpectFfnAbsent(call, kFfnScale, kFfnDequant + 1, "x is not of dtype int8");
  }
  if (ffn->kind != FfnKind::kIntegerWeights) {
    ExpectFfnAbsent(call, kFfnAntiScale, kFfnAntiOffset + 1,
                    "not the weights alone are of integers");
  }
  const at::ScalarType dtype = ffn->x.scalar_type();
  const at::ScalarType bias = ffn->kind == FfnKind::kIntegers ? at::kInt
                              : dtype == at::kHalf            ? at::kHalf
                                                              : at::kFloat;
  for (int which : {0, 1}) {
    FfnProduct& product = which == 0 ? ffn->first : ffn->second;
    product.bias = ReadFfnOfExpert(call, kFfnBias + which, *ffn, product.columns(), {bias});
  }
  ffn->out = call.Out(at.out);
  call.ExpectSizes(at.out, ffn->out, ffn->x.sizes());
  if (ffn->kind != FfnKind::kIntegers) return ExpectDtypes(call, at.out, ffn->out, {dtype});
  ExpectDtypes(call, at.out, ffn->out, {at::kHalf, at::kBFloat16});
}

// (x, weight1, weight2, expertTokens?, bias1?, bias2?, scale?, offset?, deqScale1?, deqScale2?,
// antiquantScale1?, antiquantScale2?, antiquantOffset1?, antiquantOffset2?, activation,
// innerPrecise, [tokensIndexFlag,] y)
std::unique_ptr<Kernel> BindFfn(const Call& call, const FfnArguments& at) {
  Ffn ffn;
  ffn.x = call.View(0);
  constexpr int64_t kMostDims = 8;
  if (ffn.x.dim() < 2 || ffn.x.dim() > kMostDims) call.RejectArg(0, "has not 2 to 8 dims");
  if (ffn.x.size(-1) == 0) call.RejectArg(0, "has no columns");
  ffn.rows = ffn.x.numel() / ffn.x.size(-1);
  ReadFfnTokens(call, at, &ffn);
  for (int which : {0, 1}) ReadFfnWeight(call, which, &ffn);
  ReadFfnKind(call, &ffn);
  ReadFfnActivation(call, &ffn);
  ExpectFfnSizes(call, ffn);
  ReadFfnFactors(call, at, &ffn);
  if (ffn.kind == FfnKind::kIntegers) ReadFfnIntegers(call, ffn.out.scalar_type(), &ffn);
  if (ffn.kind == FfnKind::kIntegerWeights) ReadFfnAntiFactors(call, &ffn);
  return MakeKernel([ffn] { ffn.Run(); });
}

}  // namespace

KernelRows FeedForwardRows() {
  const auto version = [](const FfnArguments& at) {
    return [&at](const Call& call) { return BindFfn(call, at); };
  };
  return {
      {"aclnnFFN", version(kFfn)},
      {"aclnnFFNV2", version(kFfnV2)},
      {"aclnnFFNV3", version(kFfnV3)},
  };
}

}  // namespace acltape::opapi
