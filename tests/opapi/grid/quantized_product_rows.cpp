// Products of quantised matrices against references of this file in double precision.
#include "tests/opapi/grid/quantized.h"
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

// Factors of [inner, columns] one by one: for all, of each column, or of each group of rows.
Tensor SpreadOut(const Tensor& values, int64_t inner, int64_t columns, int64_t group) {
  const Tensor result = at::empty({inner, columns}, at::kDouble);
  for (int64_t k = 0; k < inner; ++k) {
    const Tensor row = values.numel() == 1 ? values.reshape({1})
                       : group == 0        ? values.reshape({columns})
                                           : values[k / group];
    result[k].copy_(row);
  }
  return result;
}

// Integers of 4 bits in the columns of integers of 32 bits, the lowest bits first.
Tensor PackColumns(const Tensor& values) {
  const Tensor packed = at::zeros({values.size(0), values.size(1) / 8}, at::kInt);
  for (int64_t i = 0; i < 8; ++i) {
    const Tensor part = values.slice(1, i, values.size(1), 8).to(at::kLong).bitwise_and(15);
    packed.bitwise_or_(part.bitwise_left_shift(4 * i).to(at::kInt));
  }
  return packed;
}

Tensor UnpackColumns(const Tensor& packed) {
  const Tensor values = at::empty({packed.size(0), packed.size(1) * 8}, at::kDouble);
  for (int64_t i = 0; i < 8; ++i) {
    const Tensor part = packed.to(at::kLong).bitwise_right_shift(4 * i).bitwise_and(15);
    values.slice(1, i, values.size(1), 8).copy_(at::where(part.ge(8), part - 16, part));
  }
  return values;
}

Inputs WeightQuants(Args tail) {
  return [tail](Source& source, at::ScalarType dtype) {
    constexpr int64_t kInner = 64, kColumns = 16;
    std::vector<Args> inputs;
    const auto add = [&](const Tensor& weight, const Ints& scale, int64_t group, bool offset,
                         bool bias) {
      Args args = {source.Random({5, kInner}, dtype),
                   weight,
                   source.Random(scale, dtype, 0.01, 0.1),
                   offset ? Arg(source.Random(scale, dtype)) : Arg(Null{}),
                   Null{},
                   Null{},
                   bias ? Arg(source.Random({kColumns}, dtype)) : Arg(Null{}),
                   group};
      args.insert(args.end(), tail.begin(), tail.end());
      inputs.push_back(args);
    };
    const auto bytes = [&](const Ints& sizes) {
      return source.Random(sizes, at::kChar, -128, 128);
    };
    add(bytes({kInner, kColumns}), {1}, 0, false, false);
    add(bytes({kInner, kColumns}), {kColumns}, 0, true, true);
    add(bytes({kColumns, kInner}).t(), {1, kColumns}, 0, true, false);
    add(bytes({kInner, kColumns}), {2, kColumns}, 32, true, true);
    add(bytes({kColumns, kInner}).t(), {2, kColumns}, 48, false, true);
    const auto nibbles = [&](const Ints& sizes) {
      return PackColumns(source.Random(sizes, at::kChar, -8, 8));
    };
    add(nibbles({kInner, kColumns}), {kColumns}, 0, true, false);
    add(nibbles({kColumns, kInner}).t(), {2, kColumns}, 32, false, true);
    return inputs;
  };
}

Tensor WeightQuant(const In& in) {
  const int64_t inner = in[0].size(1), group = in.integer(7);
  Tensor weight = in[1].scalar_type() == at::kChar ? Wide(in[1])
                  : in[1].size(0) == inner         ? UnpackColumns(in[1])
                                                   : UnpackColumns(in[1].t()).t();
  const int64_t columns = weight.size(1);
  // The weight has the dtype of x after each operation.
  const auto rounded = [&](const Tensor& values) {
    return values.to(in[0].scalar_type()).to(values.scalar_type());
  };
  if (in.maybe(3)) weight = rounded(weight + SpreadOut(in[3], inner, columns, group));
  weight = rounded(weight * SpreadOut(in[2], inner, columns, group));
  return (at::matmul(Wide(in[0]), weight) + WideOr(in, 6, 0)).to(in[0].scalar_type());
}

// The device's parameter of a scale: the upper 19 bits of the float, a flag and an offset.
Tensor DeviceScale(const Tensor& scale, const Tensor& offset) {
  const Tensor bits = scale.contiguous().view(at::kInt).to(at::kLong);
  return bits.bitwise_and(at::Scalar(int64_t{0xFFFFE000}))
      .bitwise_or(at::Scalar(int64_t{1} << 46))
      .bitwise_or(offset.to(at::kLong).bitwise_and(0x1FF).bitwise_left_shift(37));
}

struct QuantMatmulRow {
  int x1_scale, scale, offset, bias, transpose1;  // positions; -1: none
  int count;                                      // number of inputs
};

// The dtype of the inputs' row is that of the output, which follows the operator's own inputs so
// that the reference sees it.
Inputs QuantMatmuls(QuantMatmulRow at) {
  return [at](Source& source, at::ScalarType dtype) {
    constexpr int64_t kRows = 5, kInner = 24, kColumns = 7;
    std::vector<Args> inputs;
    const auto bytes = [&](const Ints& sizes) {
      return source.Random(sizes, at::kChar, -128, 128);
    };
    for (int variant = 0; variant < 6; ++variant) {
      Args args(at.count, Null{});
      const bool turned1 = variant % 2 == 1, turned2 = variant % 3 == 1, batched = variant == 4;
      args[0] = turned1 ? bytes({kInner, kRows}) : bytes({kRows, kInner});
      args[1] = turned2 ? bytes({kColumns, kInner}) : bytes({kInner, kColumns});
      if (batched) args[0] = bytes({2, kRows, kInner});
      const Ints scales = {variant == 0 ? 1 : kColumns};
      const bool device = dtype == at::kChar || (dtype == at::kHalf && variant < 2);
      const bool exact = dtype == at::kInt;  // no scale changes the result
      const Tensor scale = source.Random(scales, at::kFloat, 1e-4, 1e-3);
      const Tensor offset = variant == 2 ? at::full(scales, -3) : at::zeros(scales);
      args[at.scale] = device ? DeviceScale(scale, offset) : scale;
      if (dtype == at::kChar && variant == 3) args[at.offset] = at::full(scales, 4.0f);
      if (at.x1_scale >= 0 && !device && !exact && !batched) {
        args[at.x1_scale] = source.Random({kRows}, at::kFloat, 0.5, 2);
      }
      if (variant == 1) args[at.bias] = at::randint(-999, 999, {kColumns}, at::kInt);
      if (variant == 5 && !device && !exact) {
        args[at.bias] = source.Random({kColumns}, at::kFloat);
      }
      args[at.transpose1] = turned1 && !batched;
      args[at.transpose1 + 1] = turned2;
      if (at.count == 12) args[11] = int64_t{0};
      args.push_back(dtype);
      inputs.push_back(args);
    }
    return inputs;
  };
}

Reference QuantMatmulReference(QuantMatmulRow at) {
  return [at](const In& in) {
    const at::ScalarType narrow = in.dtype(at.count);
    const auto turned = [&](int i) {
      const bool turn = in.flag(at.transpose1 + i);
      return Wide(turn ? in[i].transpose(-1, -2) : in[i]);
    };
    Tensor product = at::matmul(turned(0), turned(1));
    const bool whole = in.maybe(at.bias) && in[at.bias].scalar_type() == at::kInt;
    if (whole) product = product + Wide(in[at.bias]);
    if (narrow == at::kInt) return product.to(narrow);
    Tensor scale = in[at.scale], packed = at::zeros({1}, at::kDouble);
    if (scale.scalar_type() == at::kLong) {
      const Tensor bits = scale.bitwise_right_shift(37).bitwise_and(0x1FF);
      packed = Wide(at::where(bits.ge(256), bits - 512, bits));
      scale = scale.bitwise_and(at::Scalar(int64_t{0xFFFFE000})).to(at::kInt).view(at::kFloat);
    }
    product = product * Wide(scale);
    if (at.x1_scale >= 0 && in.maybe(at.x1_scale)) {
      product = product * Wide(in[at.x1_scale]).unsqueeze(-1);
    }
    if (narrow == at::kChar) {
      return ToInt8(product + (in.maybe(at.offset) ? Wide(in[at.offset]) : packed));
    }
    if (in.maybe(at.bias) && !whole) product = product + Wide(in[at.bias]);
    return product.to(narrow);
  };
}

}  // namespace

Rows QuantizedProductRows() {
  const QuantMatmulRow v3{-1, 2, 3, 4, 5, 7}, v4{4, 2, 3, 5, 6, 8}, v5{2, 3, 6, 8, 9, 12};
  const Dtypes narrow = {at::kHalf, at::kBFloat16};
  Rows rows = {
      {"aclnnWeightQuantBatchMatmulV2", WeightQuants({}), narrow, WeightQuant, kOnce},
      {"aclnnWeightQuantBatchMatmulV3", WeightQuants({int64_t{0}}), narrow, WeightQuant, kOnce},
      {"aclnnWeightQuantBatchMatmulNz", WeightQuants({}), narrow, WeightQuant, kOnce},
  };
  const std::pair<const char*, QuantMatmulRow> products[] = {{"aclnnQuantMatmulV3", v3},
                                                             {"aclnnQuantMatmulV4", v4},
                                                             {"aclnnQuantMatmulV5", v5},
                                                             {"aclnnQuantMatmulWeightNz", v5}};
  for (const auto& [name, at] : products) {
    rows.push_back({name,
                    QuantMatmuls(at),
                    {at::kChar, at::kInt, at::kHalf, at::kBFloat16},
                    QuantMatmulReference(at),
                    kOnce});
  }
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
