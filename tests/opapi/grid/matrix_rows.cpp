// Products of matrices, and convolutions.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

// The BLAS that libtorch calls picks its kernel, and with it the order of the sums, by the strides
// of all three matrices; an output with the library's own strides has equal bits.
const Tolerance kBlas = {64, 1e-4, true, "the order of the sums follows the strides of all sides"};

const Dtypes kProducts = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt};

struct Shapes {
  Ints a, b;
};

// Operands in plain order and as transposed views.
Inputs Products(std::vector<Shapes> shapes, Args tail = {int64_t{0}}) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    const auto turned = [&](Ints sizes) {
      if (sizes.size() < 2) return source.Random(sizes, dtype);
      std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
      return source.Random(sizes, dtype).transpose(-1, -2);
    };
    for (const auto& [a, b] : shapes) {
      std::vector<std::pair<Tensor, Tensor>> operands = {
          {source.Random(a, dtype), source.Random(b, dtype)},
          {turned(a), source.Random(b, dtype)},
          {source.Random(a, dtype), turned(b)},
          {turned(a), turned(b)},
      };
      if (a.size() == 2 && b.size() == 2) {
        const Tensor wide = source.Random({2 * a[0], 2 * a[1]}, dtype);
        operands.emplace_back(wide.slice(0, 0, 2 * a[0], 2).slice(1, 0, 2 * a[1], 2),
                              source.Random({1, b[1]}, dtype).expand({b[0], b[1]}));
      }
      for (const auto& [x, y] : operands) {
        Args args = {x, y};
        args.insert(args.end(), tail.begin(), tail.end());
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

// The first tensors of a call in the dtype that all promote to.
Tensors Promoted(const In& in, int count) {
  at::ScalarType both = in[0].scalar_type();
  for (int i = 1; i < count; ++i) both = at::promote_types(both, in[i].scalar_type());
  Tensors tensors;
  for (int i = 0; i < count; ++i) tensors.push_back(in[i].to(both));
  return tensors;
}

// For halves: the same inputs with one of the first tensors in float32, and with one in half alone.
void AddMixed(std::vector<Args>& inputs, int count) {
  const Args halves = inputs.front();
  const auto tensor = [&](int i) { return std::get<Tensor>(halves[i]); };
  if (tensor(0).scalar_type() != at::kHalf) return;
  for (int i = 0; i < count; ++i) {
    Args one = halves, others = halves;
    for (int k = 0; k < count; ++k) {
      (k == i ? one : others)[k] = tensor(k).to(at::kFloat);
    }
    inputs.push_back(one);
    inputs.push_back(others);
  }
}

Inputs WithMixed(const Inputs& maker, int count) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs = maker(source, dtype);
    AddMixed(inputs, count);
    return inputs;
  };
}

// self, two operands, beta, alpha, cubeMathType; beta 0 must ignore a NaN in self.
Inputs Accumulated(std::vector<std::pair<Ints, Shapes>> shapes) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const auto& [self, operands] : shapes) {
      for (const Args& product : Products({operands}, {})(source, dtype)) {
        inputs.push_back({source.Random(self, dtype), product[0], product[1],
                          at::isFloatingType(dtype) ? at::Scalar(0.5) : at::Scalar(1),
                          at::Scalar(2), int64_t{0}});
      }
      AddMixed(inputs, 3);
      if (!at::isFloatingType(dtype)) continue;
      inputs.push_back({at::full(self, NAN, dtype), source.Random(operands.a, dtype),
                        source.Random(operands.b, dtype), at::Scalar(0), at::Scalar(1),
                        int64_t{0}});
    }
    return inputs;
  };
}

Rows Matrices() {
  const std::vector<Shapes> flat = {{{3, 4}, {4, 5}}, {{1, 7}, {7, 1}},    {{0, 3}, {3, 2}},
                                    {{3, 0}, {0, 2}}, {{17, 33}, {33, 9}}, {{64, 48}, {48, 80}},
                                    {{8, 8}, {8, 8}}, {{2, 3}, {4, 5}}};
  const std::vector<Shapes> batched = {{{2, 3, 4}, {2, 4, 5}},
                                       {{1, 3, 4}, {4, 4, 2}},
                                       {{5, 3, 4}, {1, 4, 2}},
                                       {{0, 3, 4}, {0, 4, 5}},
                                       {{3, 16, 24}, {3, 24, 8}}};
  std::vector<Shapes> any = flat;
  any.insert(any.end(), batched.begin(), batched.end());
  for (const Shapes& more : std::vector<Shapes>{{{7}, {7}},
                                                {{7}, {7, 3}},
                                                {{3, 7}, {7}},
                                                {{2, 1, 3, 4}, {5, 4, 6}},
                                                {{2, 3, 4, 5}, {2, 3, 5, 6}},
                                                {{4, 2, 3}, {3}},
                                                {{3}, {4, 3, 2}}}) {
    any.push_back(more);
  }
  return {
      {"aclnnMm", Products(flat), kProducts, [](const In& in) { return at::mm(in[0], in[1]); },
       kBlas},
      {"aclnnBatchMatMul", Products(batched), kProducts,
       [](const In& in) {
         const int64_t batch = std::max(in[0].size(0), in[1].size(0));
         return at::bmm(in[0].expand({batch, -1, -1}), in[1].expand({batch, -1, -1}));
       },
       kBlas},
      {"aclnnMatmul", Products(any), kProducts,
       [](const In& in) { return at::matmul(in[0], in[1]); }, kBlas},
      {"aclnnMv", WithMixed(Products({{{5, 7}, {7}}, {{33, 20}, {20}}, {{0, 3}, {3}}}), 2), kFloats,
       [](const In& in) {
         const Tensors t = Promoted(in, 2);
         return at::mv(t[0], t[1]);
       },
       kBlas},
      {"aclnnDot", WithMixed(Products({{{7}, {7}}, {{129}, {129}}, {{0}, {0}}}, {}), 2), kProducts,
       [](const In& in) {
         const Tensors t = Promoted(in, 2);
         return at::dot(t[0], t[1]);
       },
       kBlas},
      {"aclnnGer", Products({{{7}, {4}}, {{1}, {9}}}, {}), kProducts,
       [](const In& in) { return at::outer(in[0], in[1]); }},
      {"aclnnAddmm",
       Accumulated({{{3, 5}, {{3, 4}, {4, 5}}},
                    {{5}, {{3, 4}, {4, 5}}},
                    {{1, 1}, {{17, 33}, {33, 9}}},
                    {{64, 80}, {{64, 48}, {48, 80}}}}),
       kProducts,
       [](const In& in) {
         const Tensors t = Promoted(in, 3);
         return at::addmm(t[0], t[1], t[2], in.number(3), in.number(4));
       },
       kBlas},
      {"aclnnBaddbmm",
       Accumulated({{{2, 3, 5}, {{2, 3, 4}, {2, 4, 5}}}, {{3, 1}, {{2, 3, 4}, {2, 4, 5}}}}),
       kProducts,
       [](const In& in) {
         // With beta 0 the library multiplies what its result's memory held before by 0.
         const bool ignored = in.number(3).toDouble() == 0;
         const Tensors t = Promoted(in, 3);
         return at::baddbmm(ignored ? at::zeros_like(t[0]) : t[0], t[1], t[2],
                            ignored ? at::Scalar(1) : in.number(3), in.number(4));
       },
       kBlas},
      {"aclnnAddbmm", Accumulated({{{3, 5}, {{2, 3, 4}, {2, 4, 5}}}}), kFloats,
       [](const In& in) {
         const Tensors t = Promoted(in, 3);
         return at::addbmm(t[0], t[1], t[2], in.number(3), in.number(4));
       },
       kBlas},
      {"aclnnAddr", Accumulated({{{3, 4}, {{3}, {4}}}, {{4}, {{3}, {4}}}}), kFloats,
       [](const In& in) {
         const Tensors t = Promoted(in, 3);
         return at::addr(t[0], t[1], t[2], in.number(3), in.number(4));
       },
       kBlas},
      {"aclnnAddmv",
       WithMixed(
           [](Source& source, at::ScalarType dtype) {
             return std::vector<Args>{
                 {source.Random({5}, dtype), source.Random({5, 7}, dtype),
                  source.Random({7}, dtype), at::Scalar(2), at::Scalar(0.5), int64_t{0}},
                 {source.Random({5}, dtype), source.Random({7, 5}, dtype).t(),
                  source.Random({14}, dtype).slice(0, 0, 14, 2), at::Scalar(1), at::Scalar(0),
                  int64_t{0}}};
           },
           3),
       kFloats,
       [](const In& in) {
         const Tensors t = Promoted(in, 3);
         return at::addmv(t[0], t[1], t[2], in.number(4), in.number(3));
       },
       kBlas},
      {"aclnnTrace",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({4, 6}, dtype)},
                                  {source.Random({4, 6}, dtype).t()}};
       },
       kNumbers, [](const In& in) { return at::trace(in[0]); }},
      {"aclnnLinalgCross",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({4, 3}, dtype), source.Random({4, 3}, dtype), int64_t{-1}},
             {source.Random({3, 5}, dtype), source.Random({3, 1}, dtype), int64_t{0}}};
       },
       kFloats, [](const In& in) { return at::linalg_cross(in[0], in[1], in.integer(2)); }},
  };
}

struct ConvolutionCase {
  Ints input, weight;
  bool bias;
  Ints stride, padding, dilation;
  bool transposed;
  Ints output_padding;
  int64_t groups;
};

const std::vector<ConvolutionCase> kConvolutions = {
    {{2, 3, 8, 7}, {4, 3, 3, 3}, true, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1},
    {{2, 3, 9, 9}, {4, 3, 3, 2}, false, {2, 2}, {0, 1}, {1, 2}, false, {0, 0}, 1},
    {{1, 4, 6, 6}, {8, 2, 1, 1}, true, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 2},
    {{1, 4, 6, 6}, {4, 1, 3, 3}, true, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 4},
    {{2, 3, 11}, {5, 3, 3}, true, {2}, {1}, {1}, false, {0}, 1},
    {{1, 2, 4, 5, 6}, {3, 2, 2, 2, 2}, true, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, false, {0, 0, 0}, 1},
    {{2, 4, 5, 5}, {4, 3, 3, 3}, true, {2, 2}, {1, 1}, {1, 1}, true, {1, 1}, 1},
};

Inputs Convolutions(bool backward) {
  return [backward](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const ConvolutionCase& c : kConvolutions) {
      for (bool turned : {false, true}) {
        Tensor input = source.Random(c.input, dtype);
        if (turned) {
          Ints sizes = c.input;
          std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
          input = source.Random(sizes, dtype).transpose(-1, -2);
        }
        const Tensor weight = source.Random(c.weight, dtype);
        const int64_t channels = c.transposed ? c.weight[1] * c.groups : c.weight[0];
        const Tensor bias = source.Random({channels}, dtype);
        if (!backward) {
          inputs.push_back({input, weight, c.bias ? Arg(bias) : Arg(Null{}), c.stride, c.padding,
                            c.dilation, c.transposed, c.output_padding, c.groups, int64_t{0}});
          continue;
        }
        const Tensor out =
            at::convolution(at::empty(c.input), at::empty(c.weight), c10::nullopt, c.stride,
                            c.padding, c.dilation, c.transposed, c.output_padding, c.groups);
        const Ints mask = {1, 1, c.bias};
        inputs.push_back({source.Random(out.sizes(), dtype), input, weight, Ints{channels},
                          c.stride, c.padding, c.dilation, c.transposed, c.output_padding, c.groups,
                          mask, int64_t{0}});
      }
    }
    return inputs;
  };
}

Rows Convolving() {
  return {
      {"aclnnConvolution", Convolutions(false), kFloats,
       [](const In& in) {
         return at::convolution(in[0], in[1], in.maybe(2), in.ints(3), in.ints(4), in.ints(5),
                                in.flag(6), in.ints(7), in.integer(8));
       },
       kBlas},
      {"aclnnConvolutionBackward", Convolutions(true), kFloats,
       [](const In& in) {
         const bool bias = in.ints(10)[2] != 0;
         return at::convolution_backward(in[0], in[1], in[2],
                                         bias ? at::OptionalIntArrayRef(in.ints(3)) : c10::nullopt,
                                         in.ints(4), in.ints(5), in.ints(6), in.flag(7), in.ints(8),
                                         in.integer(9), {true, true, bias});
       },
       kBlas},
  };
}

}  // namespace

Rows MatrixRows() {
  Rows rows = Matrices();
  for (Row& row : Convolving()) {
    row.inplace = false;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace acltape::opapi::grid
