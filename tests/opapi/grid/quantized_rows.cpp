// Quantising operators against references of this file in double precision.
#include "tests/opapi/grid/quantized.h"
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

// Each row in steps of its greatest magnitude over 127.
std::tuple<Tensor, Tensor> ByRows(const Tensor& values) {
  const Tensor scale = values.abs().amax(-1, true) / 127;
  return {ToInt8(values / scale), scale.squeeze(-1).to(at::kFloat)};
}

// (x, scale, offset?, squared, mode): x times the scale plus the offset, rounded as the mode says.
Tensor Quantized(const In& in, const Tensor& scale, const Tensor& offset) {
  const Tensor values = Wide(in[0]) * (in.flag(3) ? scale * scale : scale) + offset;
  const std::string mode = in.text(4);
  const Tensor whole = mode == "round"   ? values.round()
                       : mode == "floor" ? values.floor()
                       : mode == "ceil"  ? values.ceil()
                                         : values.trunc();
  return whole.clamp(-128, 127).to(at::kChar);
}

Rows Elements() {
  return {
      {"aclnnAscendQuant",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const char* mode : {"round", "floor", "ceil", "trunc"}) {
           inputs.push_back({source.Random({5, 6}, dtype), source.Random({6}, dtype, 5, 20),
                             source.Random({6}, dtype), false, mode, int64_t{2}});
           inputs.push_back({source.Random({6, 5}, dtype).t(), source.Random({1}, dtype, 2, 9),
                             Null{}, true, mode, int64_t{2}});
         }
         return inputs;
       },
       {at::kFloat, at::kHalf, at::kBFloat16},
       [](const In& in) { return Quantized(in, Wide(in[1]), WideOr(in, 2, 0)); }},
      // One factor and offset for each entry of the axis, which comes after the type.
      {"aclnnAscendQuantV3",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const char* mode : {"round", "floor", "ceil", "trunc"}) {
           inputs.push_back({source.Random({5, 6}, dtype), source.Random({6}, dtype, 5, 20),
                             source.Random({6}, dtype), false, mode, int64_t{2}, int64_t{-1}});
           inputs.push_back({source.Random({6, 5}, dtype).t(), source.Random({5}, dtype, 2, 9),
                             Null{}, true, mode, int64_t{2}, int64_t{0}});
         }
         return inputs;
       },
       {at::kFloat, at::kHalf, at::kBFloat16},
       [](const In& in) {
         const auto along_axis = [&](const Tensor& values) {
           return in.integer(6) == 0 ? values.unsqueeze(-1) : values;
         };
         return Quantized(in, along_axis(Wide(in[1])), along_axis(WideOr(in, 2, 0)));
       }},
      {"aclnnAscendAntiQuant",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({5, 6}, at::kChar, -128, 128), source.Random({6}, dtype, 0, 1),
              source.Random({6}, dtype), int64_t{1}, false},
             {source.Random({6, 5}, at::kChar, -128, 128).t(), source.Random({1}, dtype, 0, 1),
              Null{}, int64_t{1}, true}};
       },
       {at::kHalf, at::kBFloat16, at::kFloat},
       [](const In& in) {
         Tensor scale = Wide(in[1]);
         if (in.flag(4)) scale = scale * scale;
         return ((Wide(in[0]) + WideOr(in, 2, 0)) * scale).to(in[1].scalar_type());
       },
       kOnce},
  };
}

// --- Gated activations.

// The group of each row, from the groups' ends or lengths; -1 after the last one.
Ints GroupOfRows(const In& in, int i, bool counts, int64_t rows) {
  Ints groups(rows, 0);
  if (!in.maybe(i)) return groups;
  std::fill(groups.begin(), groups.end(), -1);
  int64_t begin = 0;
  for (int64_t g = 0; g < in[i].size(0); ++g) {
    const int64_t value = in[i][g].item().toLong(), end = counts ? begin + value : value;
    for (int64_t row = begin; row < end; ++row) groups[row] = g;
    begin = end;
  }
  return groups;
}

// The factors of group `g`: its row, its element, or the vector of the only group.
Tensor FactorsOf(const In& in, int i, int64_t g, bool grouped, double otherwise) {
  if (!in.maybe(i)) return at::full({1}, otherwise, at::kDouble);
  return Wide(in[i].dim() == 2 || grouped ? in[i][g] : in[i]);
}

Tensor Gate(const Tensor& row, bool left) {
  const Tensor a = row.slice(0, 0, row.size(0) / 2), b = row.slice(0, row.size(0) / 2);
  return left ? a * a.sigmoid() * b : a * (b * b.sigmoid());
}

// Rows one by one, and a scale for each; zeros after the last group.
struct QuantizedRowsOf {
  QuantizedRowsOf(const Tensor& x, const Ints& of_rows) : groups(of_rows) {
    Ints sizes = x.sizes().vec();
    sizes.back() /= 2;
    y = at::zeros(sizes, at::kChar);
    sizes.pop_back();
    scale = at::zeros(sizes, at::kFloat);
    flat = y.view({-1, y.size(-1)});
    flat_scale = scale.view({-1});
  }
  void Static(int64_t row, const Tensor& values) const { flat[row].copy_(ToInt8(values)); }
  // Gives the row's greatest magnitude over 127.
  double Dynamic(int64_t row, const Tensor& values) const {
    const double step = values.abs().max().item().toDouble() / 127;
    flat[row].copy_(ToInt8(values / step));
    return step;
  }
  Ints groups;
  Tensor y, scale, flat, flat_scale;
};

std::tuple<Tensor, Tensor> DequantSwiglu(const In& in) {
  const Tensor rows = in[0].reshape({-1, in[0].size(-1)});
  const bool left = in.flag(7), dynamic = std::string(in.text(8)) == "dynamic";
  const bool grouped = in.maybe(6).has_value();
  const QuantizedRowsOf result(in[0], GroupOfRows(in, 6, true, rows.size(0)));
  for (int64_t r = 0; r < rows.size(0); ++r) {
    const int64_t g = result.groups[r];
    if (g < 0) continue;
    Tensor row = Wide(rows[r]);
    const bool whole = in.maybe(3) && in[3].scalar_type() == at::kInt;
    if (whole) row = row + FactorsOf(in, 3, g, grouped, 0);
    row = row * FactorsOf(in, 1, g, grouped, 1);
    if (in.maybe(2)) row = row * Wide(in[2]).reshape({-1})[r];
    if (!whole) row = row + FactorsOf(in, 3, g, grouped, 0);
    Tensor gated;
    if (in.count() > 12 && in.integer(12) == 1) {
      const Tensor gate = row.slice(0, 0, row.size(0), 2).clamp_max(in.real(13));
      const Tensor other = row.slice(0, 1, row.size(0), 2).clamp(-in.real(13), in.real(13));
      gated = gate * (gate * in.real(14)).sigmoid() * (other + in.real(15));
    } else {
      gated = Gate(row, left);
    }
    if (dynamic) {
      result.flat_scale[r].fill_(result.Dynamic(r, gated * FactorsOf(in, 4, g, grouped, 1)));
    } else {
      result.Static(r, gated / FactorsOf(in, 4, g, grouped, 1) + FactorsOf(in, 5, g, grouped, 0));
    }
  }
  return {result.y, result.scale};
}

// The dtype of the inputs' row is that of x.
Inputs DequantSwiglus(bool may_limit) {
  return [may_limit](Source& source, at::ScalarType dtype) {
    constexpr int64_t kRows = 6, kWidth = 5;
    std::vector<Args> inputs;
    const auto x = [&](const Ints& sizes) {
      return dtype == at::kInt ? source.Random(sizes, dtype, -900, 900)
                               : source.Random(sizes, dtype);
    };
    const bool whole = dtype == at::kInt;
    const auto factors = [&](const Ints& sizes, double low, double high) {
      return source.Random(sizes, at::kFloat, low, high);
    };
    const auto add = [&](Args args, const char* mode) {
      args.push_back(inputs.size() % 2 == 0);
      args.push_back(mode);
      if (may_limit) {
        const int64_t limited = inputs.size() % 3 == 1 ? 1 : 0;
        args.insert(args.end(), {int64_t{2}, "rint", int64_t{-1}, limited, 1.5, 1.7, 1.0});
      }
      inputs.push_back(args);
    };
    const Arg activation = whole ? Arg(factors({kRows, 1}, 0.5, 2)) : Arg(Null{});
    const Arg weight = factors({2 * kWidth}, 0.001, 0.01);
    add({x({kRows, 2 * kWidth}), weight, activation, Null{}, factors({kWidth}, 0.5, 2), Null{},
         Null{}},
        "dynamic");
    add({x({2, 3, 2 * kWidth}), weight, Null{}, factors({2 * kWidth}, -1, 1), Null{}, Null{},
         Null{}},
        "dynamic");
    add({x({kRows, 2 * kWidth}), weight, activation, Null{}, factors({1}, 0.01, 0.1),
         factors({1}, -3, 3), Null{}},
        "static");
    add({x({kRows, 2 * kWidth}), factors({3, 2 * kWidth}, 0.001, 0.01), activation, Null{},
         factors({3, kWidth}, 0.5, 2), Null{}, at::tensor({2, 0, 3}, at::kLong)},
        "dynamic");
    if (whole) {
      add({x({kRows, 2 * kWidth}), weight, activation,
           source.Random({2 * kWidth}, at::kInt, -99, 99), Null{}, Null{}, Null{}},
          "dynamic");
    }
    return inputs;
  };
}

std::tuple<Tensor, Tensor> SwigluQuant(const In& in) {
  const Tensor rows = in[0].reshape({-1, in[0].size(-1)});
  const bool dynamic = std::string(in.text(5)) == "dynamic", grouped = in.maybe(3).has_value();
  const bool counts = in.count() > 6 && in.integer(6) == 1;
  const QuantizedRowsOf result(in[0], GroupOfRows(in, 3, counts, rows.size(0)));
  for (int64_t r = 0; r < rows.size(0); ++r) {
    const int64_t g = result.groups[r];
    if (g < 0) continue;
    const Tensor values = Gate(Wide(rows[r]), in.flag(4)) * FactorsOf(in, 1, g, grouped, 1);
    if (dynamic) {
      result.flat_scale[r].fill_(1 / result.Dynamic(r, values));
    } else {
      result.Static(r, values + FactorsOf(in, 2, g, grouped, 0));
    }
  }
  return {result.y, result.scale};
}

Inputs SwigluQuants(bool counted) {
  return [counted](Source& source, at::ScalarType dtype) {
    constexpr int64_t kRows = 6, kWidth = 5;
    std::vector<Args> inputs;
    const auto factors = [&](const Ints& sizes) { return source.Random(sizes, at::kFloat, 5, 20); };
    for (bool left : {true, false}) {
      for (const char* mode : {"dynamic", "static"}) {
        const auto add = [&](const Tensor& x, const Ints& sizes, const Arg& groups, int64_t type) {
          const bool shifted = std::string(mode) == "static";
          Args args = {x,      factors(sizes), shifted ? Arg(factors(sizes)) : Arg(Null{}),
                       groups, left,           mode};
          if (counted) args.insert(args.end(), {type, int64_t{2}});
          inputs.push_back(args);
        };
        add(source.Random({kRows, 2 * kWidth}, dtype), {2, kWidth}, at::tensor({2, 5}, at::kInt),
            0);
        add(source.Random({2, 3, 2 * kWidth}, dtype), {3}, at::tensor({1, 1, 6}, at::kInt), 0);
        if (!counted) continue;
        add(source.Random({2 * kWidth, kRows}, dtype).t(), {1, kWidth}, Null{}, 0);
        add(source.Random({kRows, 2 * kWidth}, dtype), {3, kWidth}, at::tensor({3, 0, 2}, at::kInt),
            1);
      }
    }
    return inputs;
  };
}

Rows Gated() {
  const Dtypes floats = {at::kFloat, at::kHalf, at::kBFloat16};
  return {
      {"aclnnDequantSwigluQuant",
       DequantSwiglus(false),
       {at::kInt, at::kFloat, at::kBFloat16},
       DequantSwiglu,
       kOnce},
      {"aclnnDequantSwigluQuantV2",
       DequantSwiglus(true),
       {at::kInt, at::kFloat, at::kBFloat16},
       DequantSwiglu,
       kOnce},
      {"aclnnSwiGluQuant", SwigluQuants(false), floats, SwigluQuant, kOnce},
      {"aclnnSwiGluQuantV2", SwigluQuants(true), floats, SwigluQuant, kOnce},
  };
}

// --- Norms.

// The sum of the first two inputs, normalised by the root of its mean square, times the third.
std::tuple<Tensor, Tensor> AddedRms(const In& in, double epsilon) {
  const Tensor sum = Wide(in[0]) + Wide(in[1]);
  const Tensor inverse = (sum.pow(2).mean(at::IntArrayRef({-1}), true) + epsilon).rsqrt();
  return {sum, sum * inverse * Wide(in[2])};
}

Inputs AddedNorms(bool biased) {
  return [biased](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (bool divides : {false, true}) {
      const auto scales = [&](const Ints& sizes) {
        return divides ? source.Random(sizes, at::kFloat, 0.02, 0.1)
                       : source.Random(sizes, at::kFloat, 10, 40);
      };
      for (int variant = 0; variant < 3; ++variant) {
        const Ints sizes = variant == 1 ? Ints{2, 3, 8} : Ints{5, 16};
        const Ints width = {sizes.back()};
        Args args = {source.Random(sizes, dtype),
                     source.Random(sizes, dtype),
                     source.Random(width, dtype),
                     scales(variant == 2 ? Ints{1} : width),
                     variant == 1 ? Arg(Null{}) : Arg(scales(width)),
                     variant == 0 ? Arg(at::randint(-9, 9, width, at::kInt)) : Arg(Null{}),
                     variant == 2 ? Arg(source.Random(width, dtype)) : Arg(Null{})};
        if (biased) args.push_back(variant == 0 ? Arg(source.Random(width, dtype)) : Arg(Null{}));
        args.insert(args.end(), {int64_t{-1}, 1e-6, divides});
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

Reference AddedNormQuant(bool biased) {
  return [biased](const In& in) {
    const int attributes = biased ? 8 : 7;
    const auto [sum, plain] = AddedRms(in, in.real(attributes + 1));
    const Tensor result = biased && in.maybe(7) ? plain + Wide(in[7]) : plain;
    const auto quantized = [&, result = result](int scales, int zeros) {
      const Tensor scaled =
          in.flag(attributes + 2) ? result / Wide(in[scales]) : result * Wide(in[scales]);
      return ToInt8(scaled + WideOr(in, zeros, 0));
    };
    const Tensor first = quantized(3, 5);
    Args results = {first, in.maybe(4) ? quantized(4, 6) : Tensor(), sum.to(in[0].scalar_type())};
    if (biased) results.push_back(plain.to(in[0].scalar_type()));
    return results;
  };
}

// (x, gamma, beta, scale, offset, epsilon), the scale a factor; in the third version (x, gamma,
// scale, offset?, beta?, epsilon, divMode, outputRstd).
Inputs QuantisedRows(bool third) {
  return [third](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (int variant = 0; variant < 3; ++variant) {
      const Ints sizes = variant == 1 ? Ints{2, 3, 8} : Ints{5, 16}, width = {sizes.back()};
      const Ints few = variant == 2 ? Ints{1} : width;
      const bool divides = third && variant != 1;
      Args args = {source.Random(sizes, dtype), source.Random(width, dtype)};
      const Tensor scale =
          divides ? source.Random(few, dtype, 0.02, 0.1) : source.Random(few, dtype, 10, 40);
      const Tensor offset = at::randint(-9, 9, few, at::kChar), beta = source.Random(width, dtype);
      if (third) {
        args.insert(args.end(),
                    {scale, variant == 1 ? Arg(Null{}) : Arg(offset),
                     variant == 0 ? Arg(Null{}) : Arg(beta), 1e-6, divides, variant == 2});
      } else {
        args.insert(args.end(), {beta, scale, offset, 1e-6});
      }
      inputs.push_back(args);
    }
    return inputs;
  };
}

Reference QuantisedRow(bool third) {
  return [third](const In& in) -> Args {
    const Tensor x = Wide(in[0]);
    const Tensor inverse = (x.pow(2).mean(at::IntArrayRef({-1}), true) + in.real(5)).rsqrt();
    const Tensor result = x * inverse * Wide(in[1]) + WideOr(in, third ? 4 : 2, 0);
    const Tensor scale = Wide(in[third ? 2 : 3]), offset = WideOr(in, third ? 3 : 4, 0);
    if (!third) return {ToInt8(result * scale + offset)};
    const Tensor y = ToInt8((in.flag(6) ? result / scale : result * scale) + offset);
    return {y, in.flag(7) ? inverse.to(at::kFloat) : Tensor()};
  };
}

Inputs DynamicNorms(bool biased) {
  return [biased](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Ints& sizes : {Ints{5, 16}, Ints{2, 3, 8}}) {
      const Ints width = {sizes.back()};
      Args args = {source.Random(sizes, dtype), source.Random(sizes, dtype),
                   source.Random(width, dtype), source.Random(width, dtype, 0.5, 2),
                   source.Random(width, dtype, 0.5, 2)};
      if (biased)
        args.push_back(sizes.size() == 2 ? Arg(source.Random(width, dtype)) : Arg(Null{}));
      args.push_back(1e-6);
      if (biased) args.push_back(Null{});
      inputs.push_back(args);
      if (!biased) continue;
      // With a mask a quantisation needs no factors, and may be left out.
      for (const Ints& mask : {Ints{1, 1}, Ints{1, 0}, Ints{0, 1}}) {
        args[3] = mask[0] != 0 && mask[1] != 0 ? args[3] : Arg(Null{});
        args[4] = Null{};
        args[7] = mask;
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

Reference DynamicNorm(bool biased) {
  return [biased](const In& in) {
    const auto [sum, plain] = AddedRms(in, in.real(biased ? 6 : 5));
    const Tensor result = biased && in.maybe(5) ? plain + Wide(in[5]) : plain;
    const Ints mask = biased ? in.maybe_ints(7) : Ints();
    std::array<Tensor, 2> values, scales;
    for (int i : {0, 1}) {
      if (!mask.empty() && mask[i] == 0) continue;
      std::tie(values[i], scales[i]) = ByRows(result * WideOr(in, 3 + i, 1));
    }
    return std::make_tuple(values[0], values[1], sum.to(in[0].scalar_type()), scales[0], scales[1]);
  };
}

Rows Norms() {
  const Dtypes floats = {at::kFloat, at::kHalf, at::kBFloat16};
  return {
      {"aclnnAddRmsNormQuant", AddedNorms(false), floats, AddedNormQuant(false), kOnce},
      {"aclnnAddRmsNormQuantV2", AddedNorms(true), floats, AddedNormQuant(true), kOnce},
      {"aclnnRmsNormQuant", QuantisedRows(false), floats, QuantisedRow(false), kOnce},
      {"aclnnRmsNormQuantV3", QuantisedRows(true), floats, QuantisedRow(true), kOnce},
      {"aclnnAddRmsNormDynamicQuant", DynamicNorms(false), floats, DynamicNorm(false), kOnce},
      {"aclnnAddRmsNormDynamicQuantV2", DynamicNorms(true), floats, DynamicNorm(true), kOnce},
  };
}

}  // namespace

Rows QuantizedRows() {
  Rows rows = Elements();
  for (const Rows& more : {QuantizedProductRows(), Gated(), Norms()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
