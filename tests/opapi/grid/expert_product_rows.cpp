// Products of experts on quantised rows, through a gate or summed for each token, and feed-forward
// layers. References go row by row from the formulas of the vendor's pages, in double precision.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "tests/opapi/grid/quantized.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kExpertSums = {4, 1e-4, false,
                               "float32 and one rounding, against double precision"};
const Dtypes kScaleDtypes = {at::kFloat, at::kHalf, at::kBFloat16};

// --- Integers of 4 bits, eight in an int32, and factors as the device's parameters of 64 bits.

Tensor RandomNibbles(Source& source, at::IntArrayRef sizes) {
  return source.Random(sizes, at::kFloat, -8.49, 7.49).round().to(at::kChar);
}

Tensor InWords(const Tensor& integers) {
  Ints sizes = integers.sizes().vec();
  sizes.back() /= 8;
  const Tensor words = at::zeros(sizes, at::kInt), dense = integers.contiguous();
  auto* word = words.data_ptr<int32_t>();
  for (int64_t i = 0; i < dense.numel(); ++i) {
    const auto bits = static_cast<uint32_t>(dense.data_ptr<int8_t>()[i] & 15) << (4 * (i % 8));
    word[i / 8] = static_cast<int32_t>(static_cast<uint32_t>(word[i / 8]) | bits);
  }
  return words;
}

// The integers in double, whether they are packed or not.
Tensor OutOfWords(const Tensor& words) {
  if (words.scalar_type() != at::kInt) return Wide(words);
  Ints sizes = words.sizes().vec();
  sizes.back() *= 8;
  const Tensor result = at::zeros(sizes, at::kDouble), dense = words.contiguous();
  for (int64_t i = 0; i < result.numel(); ++i) {
    const int bits = dense.data_ptr<int32_t>()[i / 8] >> (4 * (i % 8)) & 15;
    result.data_ptr<double>()[i] = bits < 8 ? bits : bits - 16;
  }
  return result;
}

// Bit 46 is the device's flag; the lower 13 bits of the floats are zeros.
Tensor AsParameters(const Tensor& factors) {
  const Tensor bits = factors.to(at::kBFloat16).to(at::kFloat).contiguous().view(at::kInt);
  return bits.to(at::kLong) + (int64_t{1} << 46);
}

// The factors in double.
Tensor FromParameters(const Tensor& factors) {
  if (factors.scalar_type() != at::kLong) return Wide(factors);
  const Tensor result = at::zeros(factors.sizes(), at::kDouble), dense = factors.contiguous();
  for (int64_t i = 0; i < result.numel(); ++i) {
    const auto bits = static_cast<uint32_t>(dense.data_ptr<int64_t>()[i]);
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    result.data_ptr<double>()[i] = value;
  }
  return result;
}

int64_t EntryAt(const Tensor& tensor, int64_t i) { return tensor[i].item().toLong(); }

// The expert of a row, -1 after the last group.
int64_t ExpertOf(const Tensor& groups, bool lengths, int64_t row) {
  int64_t end = 0;
  for (int64_t expert = 0; expert < groups.size(0); ++expert) {
    end = lengths ? end + EntryAt(groups, expert) : EntryAt(groups, expert);
    if (row < end) return expert;
  }
  return -1;
}

// A row of int8 times a matrix of 4 bits as a device does it: the upper and the lower 4 bits apart,
// the lower ones 8 too small. `factors` has a row for each group of the matrix's rows.
Tensor InTwoParts(const Tensor& row, const Tensor& matrix, const Tensor& factors) {
  const int64_t inner = row.size(0), groups = factors.size(0);
  Tensor high = at::zeros({matrix.size(1)}, at::kDouble), low = high.clone();
  for (int64_t k = 0; k < inner; ++k) {
    const int64_t x = row[k].item().toLong();
    const Tensor scaled = matrix[k] * factors[k / (inner / groups)];
    high += scaled * std::floor(static_cast<double>(x) / 16);
    low += scaled * static_cast<double>((x & 15) - 8);
  }
  return high * 16 + low;
}

Tensor PlainProduct(const Tensor& row, const Tensor& matrix, const Tensor& factors) {
  const int64_t inner = row.size(0), groups = factors.size(0);
  Tensor sum = at::zeros({matrix.size(1)}, at::kDouble);
  for (int64_t k = 0; k < inner; ++k) {
    sum += matrix[k] * factors[k / (inner / groups)] * row[k].item().toDouble();
  }
  return sum;
}

// The part of an expert of a tensor, or of a list with one tensor or a tensor for each.
Tensor OfExpert(const In& in, int i, int64_t expert) {
  const auto* list = std::get_if<Tensors>(&in.arg(i));
  if (list == nullptr) return in[i][expert];
  return list->size() == 1 && (*list)[0].dim() > 1 ? (*list)[0][expert] : (*list)[expert];
}
Tensor WeightOf(const In& in, int i, int64_t expert) {
  const auto* list = std::get_if<Tensors>(&in.arg(i));
  if (list == nullptr) return OutOfWords(in[i])[expert];
  return list->size() == 1 ? OutOfWords((*list)[0])[expert] : OutOfWords((*list)[expert]);
}
bool HasPart(const In& in, int i) {
  const auto* list = std::get_if<Tensors>(&in.arg(i));
  return list == nullptr ? !std::holds_alternative<Null>(in.arg(i)) : !list->empty();
}

// Factors as rows: one for all rows of the matrix, or one for each group of them.
Tensor FactorRows(const Tensor& given) {
  const Tensor factors = FromParameters(given);
  return factors.dim() == 1 ? factors.unsqueeze(0) : factors;
}

// --- aclnnGroupedMatmulSwigluQuant and its versions

// The positions of the arguments; -1: none.
struct GatedPlaces {
  int assist, scale, x_scale, smooth, groups, list_type;
};
const GatedPlaces kGatedPlaces = {2, 4, 5, -1, 6, -1};
const GatedPlaces kGatedPlacesV2 = {3, 2, 5, 6, 7, 11};

Args GatedRowByRow(const In& in, const GatedPlaces& at, bool has_offset) {
  const Tensor x = OutOfWords(in[0]);
  const int64_t rows = x.size(0), columns = WeightOf(in, 1, 0).size(1), width = columns / 2;
  const bool lengths = at.list_type >= 0 && in.integer(at.list_type) == 1;
  const Tensor out = at::zeros({rows, width}, at::kDouble), scale = at::zeros({rows}, at::kDouble);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t expert = ExpertOf(in[at.groups], lengths, row);
    if (expert < 0) continue;
    const Tensor matrix = WeightOf(in, 1, expert);
    const Tensor factors = FactorRows(OfExpert(in, at.scale, expert));
    const bool parts = HasPart(in, at.assist);
    Tensor product = parts ? InTwoParts(x[row], matrix, factors) + OfExpert(in, at.assist, expert)
                           : PlainProduct(x[row], matrix, factors);
    product = product * in[at.x_scale][row].item().toDouble();
    double greatest = 0;
    std::vector<double> values;
    for (int64_t i = 0; i < width; ++i) {
      const double gate = product[i].item<double>();
      double value = gate / (1 + std::exp(-gate)) * product[width + i].item<double>();
      if (at.smooth >= 0 && HasPart(in, at.smooth)) {
        const Tensor smooth = in[at.smooth][expert];
        value *= (smooth.dim() == 0 ? smooth : smooth[i]).item().toDouble();
      }
      values.push_back(value);
      greatest = std::max(greatest, std::abs(value));
    }
    scale[row].fill_(greatest / 127);
    for (int64_t i = 0; i < width && greatest > 0; ++i) {
      out[row][i].fill_(std::nearbyint(values[i] * 127 / greatest));
    }
  }
  Args results = {out.to(at::kChar), scale.to(at::kFloat)};
  if (has_offset) results.push_back(Tensor());
  return results;
}

std::vector<Args> GatedInputs(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto add = [&](int64_t rows, const Tensor& weight, Arg assist, const Tensor& scale,
                       const Ints& ends) {
    inputs.push_back({source.Random({rows, weight.size(1)}, at::kChar, -100, 100), weight,
                      std::move(assist), Null{}, scale,
                      source.Random({rows}, at::kFloat, 0.001, 0.03), at::tensor(ends, at::kLong)});
  };
  const auto bytes = [&](at::IntArrayRef sizes) {
    return source.Random(sizes, at::kChar, -100, 100);
  };
  const auto factors = [&](at::IntArrayRef sizes) {
    return source.Random(sizes, dtype, 0.001, 0.01);
  };
  add(7, bytes({3, 6, 10}), Null{}, factors({3, 10}), {3, 3, 6});  // a row after the last group
  add(5, bytes({2, 32, 16}).transpose(1, 2), Null{}, factors({2, 32}), {0, 5});
  add(1, bytes({1, 1, 2}), Null{}, factors({1, 2}), {1});
  if (dtype != at::kFloat) return inputs;
  const auto floats = [&](at::IntArrayRef sizes, double most) {
    return source.Random(sizes, at::kFloat, -most, most);
  };
  const auto parameters = [&](at::IntArrayRef sizes) {
    return AsParameters(source.Random(sizes, at::kFloat, 0.01, 0.1));
  };
  add(6, InWords(RandomNibbles(source, {3, 12, 16})), floats({3, 16}, 5), parameters({3, 16}),
      {2, 2, 5});
  add(4, InWords(RandomNibbles(source, {2, 12, 8})), floats({2, 8}, 5), parameters({2, 3, 8}),
      {1, 4});
  return inputs;
}

// (x, weight, weightScale, weightAssistMatrix?, bias?, xScale, smoothScale?, groupList,
// dequantMode, dequantDtype, quantMode, groupListType, tuningConfig?)
std::vector<Args> GatedInputsV2(Source& source, at::ScalarType dtype, bool blocks) {
  std::vector<Args> inputs;
  const auto add = [&](const Tensor& x, Tensors weights, Tensors scales, Arg assist, Arg smooth,
                       const Ints& groups, int64_t mode, int64_t kind, Arg tuning = Null{}) {
    inputs.push_back({x, std::move(weights), std::move(scales), std::move(assist), Null{},
                      source.Random({x.size(0)}, at::kFloat, 0.001, 0.03), std::move(smooth),
                      at::tensor(groups, at::kLong), mode, int64_t{kind == 0 ? 28 : 0}, int64_t{0},
                      kind, std::move(tuning)});
  };
  const auto bytes = [&](at::IntArrayRef sizes) {
    return source.Random(sizes, at::kChar, -100, 100);
  };
  const auto factors = [&](at::IntArrayRef sizes) {
    return source.Random(sizes, dtype, 0.001, 0.01);
  };
  add(bytes({7, 6}), {bytes({3, 6, 10})}, {factors({3, 10})}, Null{}, Null{}, {3, 3, 6}, 0, 0);
  add(bytes({7, 6}), {bytes({3, 6, 10})}, {factors({3, 10})}, Tensors{}, Null{}, {3, 0, 4}, 0, 1);
  add(bytes({5, 6}), {bytes({6, 8}), bytes({6, 8})}, {factors({8}), factors({8})}, Null{}, Null{},
      {2, 3}, 0, 1);
  if (dtype != at::kFloat) return inputs;
  const auto nibbles = [&](at::IntArrayRef sizes) { return InWords(RandomNibbles(source, sizes)); };
  const auto floats = [&](at::IntArrayRef sizes) {
    return source.Random(sizes, at::kFloat, -5, 5);
  };
  const auto parameters = [&](at::IntArrayRef sizes) {
    return AsParameters(source.Random(sizes, at::kFloat, 0.01, 0.1));
  };
  add(bytes({6, 12}), {nibbles({3, 12, 16})}, {parameters({3, 16})}, Tensors{floats({3, 16})},
      Null{}, {2, 2, 5}, 0, 0);
  add(bytes({4, 12}), {nibbles({2, 12, 8})}, {parameters({2, 3, 8})}, Tensors{floats({2, 8})},
      Null{}, {1, 3}, 1, 1);
  add(bytes({3, 4}), {nibbles({4, 16}), nibbles({4, 16})},
      {parameters({2, 16}), parameters({2, 16})}, Tensors{floats({16}), floats({16})}, Null{},
      {1, 3}, 1, 0);
  if (!blocks) return inputs;
  const auto smooth = [&](at::IntArrayRef sizes) {
    return source.Random(sizes, at::kFloat, 0.5, 2);
  };
  add(nibbles({5, 16}), {nibbles({2, 16, 8})}, {parameters({2, 8})}, Null{}, Null{}, {2, 5}, 0, 0);
  add(nibbles({5, 16}), {nibbles({2, 16, 8})}, {parameters({2, 4, 8})}, Null{}, smooth({2}), {2, 2},
      1, 1, Ints{4});
  add(nibbles({5, 16}), {nibbles({2, 16, 8})}, {parameters({2, 8})}, Null{}, smooth({2, 4}), {2, 5},
      0, 0);
  return inputs;
}

// --- aclnnGroupedMatmulFinalizeRouting and its versions

// (x, w, scale, bias?, [offset?, antiquantScale?, antiquantOffset?,] pertokenScale, groupList,
// sharedInput?, logit?, rowIndex, dtype, sharedInputWeight, sharedInputOffset, transposeX,
// transposeW, groupListType[, tuningConfig?]); the rows of the sum come from the output
struct FinalizedKind {
  bool offset, tuning, four_bits, bytes;
};

std::vector<Args> FinalizedInputs(Source& source, const FinalizedKind& kind) {
  std::vector<Args> inputs;
  const auto add = [&](int64_t rows, const Tensor& weight, const Tensor& scale, Arg bias,
                       Arg offset, Arg shared, Arg logit, const Ints& groups, int64_t list_type,
                       int64_t shared_offset, at::ScalarType index) {
    const int64_t inner = weight.size(1);
    Args args = {source.Random({rows, inner}, at::kChar, -100, 100), weight, scale,
                 std::move(bias)};
    if (kind.offset) args.insert(args.end(), {std::move(offset), Null{}, Null{}});
    args.insert(args.end(),
                {source.Random({rows}, at::kFloat, 0.001, 0.03), at::tensor(groups, at::kLong),
                 std::move(shared), std::move(logit), source.Indices({rows}, 4, index), int64_t{0},
                 0.5, shared_offset, false, false, list_type});
    if (kind.tuning) {
      args.emplace_back(list_type == 0 ? Arg(Null{}) : Arg(Ints{8}));
    }
    inputs.push_back(std::move(args));
  };
  const auto logit = [&](int64_t rows) { return source.Random({rows}, at::kFloat, 0, 1); };
  const auto shared = [&](int64_t rows, int64_t columns) {
    return source.Random({rows, columns}, at::kBFloat16);
  };
  const auto floats = [&](at::IntArrayRef sizes) {
    return source.Random(sizes, at::kFloat, -5, 5);
  };
  if (kind.bytes) {
    const auto weight = [&] { return source.Random({3, 6, 5}, at::kChar, -100, 100); };
    const auto scale = [&](at::IntArrayRef sizes) {
      return source.Random(sizes, at::kFloat, 0.001, 0.01);
    };
    add(7, weight(), scale({3, 5}), Null{}, Null{}, shared(2, 5), logit(7), {3, 0, 3}, 1, 1,
        at::kLong);
    add(7, weight(), scale({3, 1, 5}), Null{}, Null{}, shared(4, 5), logit(7), {3, 3, 7}, 0, 0,
        at::kInt);
    add(6, weight(), scale({3, 5}), Null{}, Null{}, Null{}, logit(6), {2, 2, 5}, 0, 3, at::kLong);
    add(6, weight(), scale({3, 5}), Null{}, Null{}, Null{}, Null{}, {2, 2, 2}, 1, 0, at::kInt);
  }
  if (!kind.four_bits) return inputs;
  const auto weight = [&](at::IntArrayRef sizes) { return InWords(RandomNibbles(source, sizes)); };
  const auto scale = [&](at::IntArrayRef sizes) {
    return AsParameters(source.Random(sizes, at::kFloat, 0.01, 0.1));
  };
  add(7, weight({3, 12, 16}), scale({3, 1, 16}), floats({3, 16}), floats({3, 1, 16}), shared(2, 16),
      logit(7), {3, 0, 3}, 1, 1, at::kLong);
  add(5, weight({2, 12, 8}), scale({2, 3, 8}), floats({2, 8}), floats({2, 3, 8}), shared(4, 8),
      logit(5), {2, 5}, 0, 0, at::kLong);
  add(5, weight({2, 12, 8}), scale({2, 1, 8}), floats({2, 8}), Null{}, Null{}, Null{}, {2, 4}, 0, 0,
      at::kLong);
  return inputs;
}

Tensor FinalizedRowByRow(const In& in, const FinalizedKind& kind) {
  constexpr int64_t kTokens = 4;
  const int first = kind.offset ? 7 : 4;  // the scales of the rows
  const int dtype = first + 5;
  const int64_t columns = WeightOf(in, 1, 0).size(1);
  const Tensor sums = at::zeros({kTokens, columns}, at::kDouble);
  if (HasPart(in, first + 2)) {
    const Tensor shared = Wide(in[first + 2]);
    for (int64_t row = 0; row < shared.size(0); ++row) {
      sums[in.integer(dtype + 2) + row] += shared[row] * in.real(dtype + 1);
    }
  }
  for (int64_t row = 0; row < in[0].size(0); ++row) {
    const int64_t expert = ExpertOf(in[first + 1], in.integer(dtype + 5) == 1, row);
    if (expert < 0) continue;
    const Tensor matrix = WeightOf(in, 1, expert), x = Wide(in[0][row]);
    const Tensor factors = FactorRows(in[2][expert]);
    Tensor product = HasPart(in, 3) ? InTwoParts(x, matrix, factors) + Wide(in[3][expert])
                                    : PlainProduct(x, matrix, factors);
    if (kind.offset && HasPart(in, 4)) {
      const Tensor offset = FactorRows(in[4][expert]);
      const int64_t group = x.size(0) / offset.size(0);
      for (int64_t k = 0; k < x.size(0); ++k) product += offset[k / group] * x[k];
    }
    product = product * in[first][row].item().toDouble();
    if (HasPart(in, first + 3)) product = product * in[first + 3][row].item().toDouble();
    sums[EntryAt(in[first + 4], row)] += product;
  }
  return sums.to(at::kFloat);
}

Row Finalized(const char* name, FinalizedKind kind) {
  return {name,
          [kind](Source& source, at::ScalarType) { return FinalizedInputs(source, kind); },
          {at::kChar},
          [kind](const In& in) { return FinalizedRowByRow(in, kind); },
          kExpertSums};
}

// --- aclnnFFN and its versions

// A call without experts, or with the numbers of their rows. Names of activations in turn.
struct FfnSizes {
  Ints x;
  Ints tokens;  // for each expert; empty: no experts
  int64_t hidden;
};

class FfnCalls {
 public:
  FfnCalls(Source& source, bool host, bool flag) : source_(source), host_(host), flag_(flag) {}

  // Appends a call; `factors` are the ten arguments from bias1 on.
  void Add(const FfnSizes& sizes, const Tensor& x, const Tensor& weight1, const Tensor& weight2,
           Args factors, const char* activation, int64_t precise, bool ends) {
    Arg tokens = Null{};
    Ints numbers = sizes.tokens;
    ends = ends && flag_;
    if (ends) {
      for (size_t i = 1; i < numbers.size(); ++i) numbers[i] += numbers[i - 1];
    }
    if (!numbers.empty()) tokens = host_ ? Arg(numbers) : Arg(at::tensor(numbers, at::kLong));
    Args args = {x, weight1, weight2, std::move(tokens)};
    args.insert(args.end(), factors.begin(), factors.end());
    args.insert(args.end(), {activation, precise});
    if (flag_) args.emplace_back(ends);
    calls.push_back(std::move(args));
  }

  Tensor Random(const FfnSizes& sizes, Ints tail, at::ScalarType dtype, double low, double high) {
    if (!sizes.tokens.empty()) tail.insert(tail.begin(), static_cast<int64_t>(sizes.tokens.size()));
    return source_.Random(tail, dtype, low, high);
  }

  std::vector<Args> calls;

 private:
  Source& source_;
  bool host_, flag_;
};

const FfnSizes kFfnSizes[] = {{{5, 6}, {}, 4}, {{2, 3, 6}, {}, 7}, {{7, 6}, {3, 0, 4}, 5}};

void AddFloats(FfnCalls& of, at::ScalarType dtype) {
  const bool half = dtype == at::kHalf;
  int64_t next = 0;
  for (const FfnSizes& sizes : kFfnSizes) {
    for (const char* name : {"fastgelu", "gelu", "relu", "silu", "geglu", "swiglu", "reglu"}) {
      const std::string activation(name);
      const bool gate = activation.find("glu") != std::string::npos;
      if (gate && (!half || !sizes.tokens.empty())) continue;
      const int64_t inner = sizes.x.back(), columns = sizes.hidden * (gate ? 2 : 1);
      Args factors(10, Null{});
      if (++next % 2 == 0) {
        const at::ScalarType bias = half ? at::kHalf : at::kFloat;
        factors[0] = of.Random(sizes, {columns}, bias, -1, 1);
        factors[1] = of.Random(sizes, {inner}, bias, -1, 1);
      }
      of.Add(sizes, of.Random({}, sizes.x, dtype, -1, 1),
             of.Random(sizes, {inner, columns}, dtype, -1, 1),
             of.Random(sizes, {sizes.hidden, inner}, dtype, -1, 1), factors, name,
             half && (gate || next % 3 == 0) ? 1 : 0, next % 2 == 0);
    }
  }
}

void AddIntegers(FfnCalls& of, at::ScalarType dtype) {
  int64_t next = 0;
  for (const FfnSizes& sizes : kFfnSizes) {
    for (const char* name : {"fastgelu", "gelu", "relu", "silu"}) {
      const int64_t inner = sizes.x.back(), hidden = sizes.hidden;
      const bool of_columns = ++next % 2 == 0;
      Args factors(10, Null{});
      if (next % 3 != 0) {
        factors[0] = of.Random(sizes, {hidden}, at::kInt, -90, 90);
        factors[1] = of.Random(sizes, {inner}, at::kInt, -90, 90);
      }
      Ints one = of_columns ? Ints{hidden} : Ints{};
      if (sizes.tokens.empty() && !of_columns) one = {1};
      factors[2] = of.Random(sizes, one, at::kFloat, 0.5, 4);
      if (next % 4 != 0) {
        factors[3] = of.Random(sizes, sizes.tokens.empty() ? Ints{1} : Ints{}, at::kFloat, -9, 9);
      }
      for (int i : {4, 5}) {
        const Tensor scale = of.Random(sizes, {i == 4 ? hidden : inner}, at::kFloat, 0.0005, 0.002);
        factors[i] = dtype == at::kBFloat16 ? scale.to(dtype)
                     : of_columns           ? AsParameters(scale)
                                            : scale;
      }
      of.Add(sizes, of.Random({}, sizes.x, at::kChar, -100, 100),
             of.Random(sizes, {inner, hidden}, at::kChar, -100, 100),
             of.Random(sizes, {hidden, inner}, at::kChar, -100, 100), factors, name, next % 2,
             next % 2 == 0);
    }
  }
}

void AddIntegerWeights(FfnCalls& of, at::ScalarType dtype) {
  int64_t next = 0;
  for (const FfnSizes& sizes : kFfnSizes) {
    for (const char* name : {"fastgelu", "gelu", "relu", "silu"}) {
      const int64_t inner = sizes.x.back(), hidden = sizes.hidden;
      const bool of_groups = ++next % 2 == 0;
      Args factors(10, Null{});
      if (next % 3 != 0) {
        const at::ScalarType bias = dtype == at::kHalf ? at::kHalf : at::kFloat;
        factors[0] = of.Random(sizes, {hidden}, bias, -1, 1);
        factors[1] = of.Random(sizes, {inner}, bias, -1, 1);
      }
      for (int i : {6, 7, 8, 9}) {
        if (i >= 8 && next % 4 == 0) continue;
        Ints tail = {i % 2 == 0 ? hidden : inner};
        if (of_groups) tail.insert(tail.begin(), i % 2 == 0 ? 3 : 1);
        factors[i] = of.Random(sizes, tail, dtype, i < 8 ? 0.002 : -9, i < 8 ? 0.02 : 9);
      }
      of.Add(sizes, of.Random({}, sizes.x, dtype, -1, 1),
             of.Random(sizes, {inner, hidden}, at::kChar, -100, 100),
             of.Random(sizes, {hidden, inner}, at::kChar, -100, 100), factors, name, next % 2,
             next % 2 == 0);
    }
  }
}

double ActivationOf(const std::string& name, double x) {
  if (name == "relu" || name == "reglu") return std::max(x, 0.0);
  if (name == "gelu" || name == "geglu") return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
  return x / (1 + std::exp(-x * (name == "fastgelu" ? 1.702 : 1)));
}

// A matrix of integers as floats: (w + offset) * scale, both rounded to the rows' dtype.
Tensor Rescaled(const In& in, int which, const Tensor& matrix, int64_t expert, bool experts) {
  const Tensor scale = experts ? in[10 + which][expert] : in[10 + which];
  const at::ScalarType dtype = scale.scalar_type();
  const Tensor result = at::zeros(matrix.sizes(), at::kDouble);
  for (int64_t k = 0; k < matrix.size(0); ++k) {
    const auto row = [&](const Tensor& of) {
      return Wide(of.dim() == 1 ? of : of[k / (matrix.size(0) / of.size(0))]);
    };
    Tensor values = Wide(matrix[k]);
    if (HasPart(in, 12 + which)) {
      values = Wide((values + row(experts ? in[12 + which][expert] : in[12 + which])).to(dtype));
    }
    result[k].copy_(Wide((values * row(scale)).to(dtype)));
  }
  return result;
}

Tensor FfnRowByRow(const In& in, bool flag, at::ScalarType dtype) {
  const bool experts = HasPart(in, 3), integers = in[0].scalar_type() == at::kChar;
  const bool weights = !integers && in[1].scalar_type() == at::kChar;
  const std::string activation = in.text(14);
  const bool gate = activation.find("glu") != std::string::npos;
  const int64_t inner = in[0].size(-1);
  const Tensor x = Wide(in[0]).reshape({-1, inner}), y = at::zeros(x.sizes(), at::kDouble);
  Tensor tokens;
  if (experts) {
    const auto* numbers = std::get_if<Ints>(&in.arg(3));
    tokens = numbers == nullptr ? in[3] : at::tensor(*numbers, at::kLong);
  }
  const auto part = [&](int i, int64_t expert) { return experts ? in[i][expert] : in[i]; };
  const auto product = [&](const Tensor& row, int which, int64_t expert) {
    const Tensor given = part(1 + which, expert);
    const Tensor matrix = weights ? Rescaled(in, which, given, expert, experts) : Wide(given);
    Tensor sum = at::mv(matrix.t(), row);
    if (HasPart(in, 4 + which)) sum = sum + Wide(part(4 + which, expert));
    return integers ? sum * FromParameters(part(8 + which, expert)) : sum;
  };
  for (int64_t row = 0; row < x.size(0); ++row) {
    const int64_t expert = experts ? ExpertOf(tokens, !(flag && in.flag(16)), row) : 0;
    const Tensor first = product(x[row], 0, expert);
    const int64_t hidden = gate ? first.size(0) / 2 : first.size(0);
    const Tensor middle = at::zeros({hidden}, at::kDouble);
    for (int64_t i = 0; i < hidden; ++i) {
      double value = ActivationOf(activation, first[gate ? hidden + i : i].item<double>());
      if (gate) value *= first[i].item<double>();
      if (integers) {
        const Tensor scale = experts ? in[6][expert] : in[6].numel() == 1 ? in[6][0] : in[6];
        value *= (scale.dim() == 0 ? scale : scale[i]).item().toDouble();
        if (HasPart(in, 7)) value += in[7][experts ? expert : 0].item().toDouble();
        value = std::clamp(std::nearbyint(value), -128.0, 127.0);
      }
      middle[i].fill_(value);
    }
    y[row].copy_(product(middle, 1, expert));
  }
  return y.reshape(in[0].sizes()).to(dtype);
}

// The dtype of the result, which only a call of integers does not say by its rows: the factors do.
at::ScalarType FfnDtype(const In& in) {
  if (in[0].scalar_type() != at::kChar) return in[0].scalar_type();
  return in[8].scalar_type() == at::kBFloat16 ? at::kBFloat16 : at::kHalf;
}

Row Layer(const char* name, bool host, bool flag) {
  const auto inputs = [=](Source& source, at::ScalarType dtype) {
    FfnCalls of(source, host, flag);
    AddFloats(of, dtype);
    AddIntegers(of, dtype);
    AddIntegerWeights(of, dtype);
    return of.calls;
  };
  return {name,
          inputs,
          {at::kHalf, at::kBFloat16},
          [=](const In& in) { return FfnRowByRow(in, flag, FfnDtype(in)); },
          kExpertSums};
}

}  // namespace

Rows ExpertProductRows() {
  const auto gated = [](const In& in) { return GatedRowByRow(in, kGatedPlaces, true); };
  const auto gated_v2 = [](const In& in) { return GatedRowByRow(in, kGatedPlacesV2, false); };
  const auto inputs_v2 = [](bool blocks) {
    return
        [=](Source& source, at::ScalarType dtype) { return GatedInputsV2(source, dtype, blocks); };
  };
  Rows rows = {
      {"aclnnGroupedMatmulSwigluQuant", GatedInputs, kScaleDtypes, gated, kExpertSums},
      {"aclnnGroupedMatmulSwigluQuantWeightNZ", GatedInputs, kScaleDtypes, gated, kExpertSums},
      {"aclnnGroupedMatmulSwigluQuantV2", inputs_v2(false), kScaleDtypes, gated_v2, kExpertSums},
      {"aclnnGroupedMatmulSwigluQuantWeightNzV2", inputs_v2(true), kScaleDtypes, gated_v2,
       kExpertSums},
      Finalized("aclnnGroupedMatmulFinalizeRouting", {false, false, true, false}),
      Finalized("aclnnGroupedMatmulFinalizeRoutingV2", {true, false, true, false}),
      Finalized("aclnnGroupedMatmulFinalizeRoutingV3", {true, true, true, false}),
      Finalized("aclnnGroupedMatmulFinalizeRoutingWeightNz", {false, false, false, true}),
      Finalized("aclnnGroupedMatmulFinalizeRoutingWeightNzV2", {true, true, true, true}),
      Layer("aclnnFFN", true, false),
      Layer("aclnnFFNV2", true, true),
      Layer("aclnnFFNV3", false, true),
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
