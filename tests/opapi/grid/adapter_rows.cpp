// Operators of the library that framework adapters ask for beside the common ones: distances,
// complex numbers, columns of windows, filters of single channels, label distributions.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kOrder = {64, 1e-4, true, "the order of the sums follows the strides of all sides"};
const Tolerance kZeros = {1, 0, true, "vector code and scalar code choose zeros of other signs"};
const Dtypes kWide = {at::kFloat, at::kDouble};

// Two batches of rows, some of which broadcast, with norms and modes.
std::vector<Args> RowPairs(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const std::vector<std::pair<Tensor, Tensor>> pairs = {
      {source.Random({4, 6}, dtype), source.Random({7, 6}, dtype)},
      {source.Random({3, 1, 5, 4}, dtype), source.Random({2, 4, 6}, dtype).transpose(1, 2)},
      {source.Random({30, 3}, dtype), source.Random({3, 28}, dtype).t()},
  };
  for (const auto& [a, b] : pairs) {
    for (double p : {0.0, 1.0, 2.0, 3.5, double{INFINITY}}) {
      for (int64_t mode : {0, 1, 2}) {
        if (p == 2 || mode == 0) {
          const Tensor right = b.size(-1) == a.size(-1) ? b : b.transpose(-1, -2);
          inputs.push_back({a, right, p, mode});
        }
      }
    }
  }
  return inputs;
}

Rows Distances() {
  return {
      {"aclnnCdist", RowPairs, kFloats,
       [](const In& in) {
         return at::cdist(InFloat(in[0]), InFloat(in[1]), in.real(2), in.integer(3))
             .to(in[0].scalar_type());
       },
       kOrder},
      {"aclnnCdistBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (double p : {1.0, 2.0, 3.5}) {
           for (const auto& [a, b] : {std::make_pair(Ints{4, 6}, Ints{7, 6}),
                                      std::make_pair(Ints{2, 3, 5}, Ints{2, 4, 5})}) {
             const Tensor x1 = source.Random(a, dtype), x2 = source.Random(b, dtype);
             const Tensor distances = at::cdist(InFloat(x1), InFloat(x2), p).to(dtype);
             inputs.push_back({source.Random(distances.sizes(), dtype), x1, x2, distances, p});
           }
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         return at::_cdist_backward(InFloat(in[0]), InFloat(in[1]), InFloat(in[2]), in.real(4),
                                    InFloat(in[3]))
             .to(in[0].scalar_type());
       },
       kOrder},
      {"aclnnPdist",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (double p : {0.0, 1.0, 2.0, 3.5}) {
           inputs.push_back({source.Random({6, 4}, dtype), p});
           inputs.push_back({source.Random({4, 6}, dtype).t(), p});
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         return at::pdist(InFloat(in[0]).contiguous(), in.real(1)).to(in[0].scalar_type());
       },
       kOrder},
  };
}

Rows Numbers() {
  const auto parts = [](double low, double high) {
    return [=](Source& source, at::ScalarType dtype) {
      return std::vector<Args>{
          {source.Random({5, 7}, dtype, low, high), source.Random({7}, dtype)},
          {source.Random({4, 1}, dtype, low, high), source.Random({3, 4}, dtype).t()},
          {source.Random({}, dtype, low, high), source.Random({6}, dtype)},
          {source.Random({0, 3}, dtype, low, high), source.Random({3}, dtype)}};
    };
  };
  return {
      {"aclnnComplex", parts(-3, 3), kWide, [](const In& in) { return at::complex(in[0], in[1]); }},
      {"aclnnPolar", parts(0, 3), kWide, [](const In& in) { return at::polar(in[0], in[1]); }},
  };
}

Rows Images() {
  return {
      {"aclnnIm2colBackward",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({2, 12, 20}, dtype), Ints{5, 6}, Ints{2, 2},
                                   Ints{1, 1}, Ints{0, 0}, Ints{1, 1}},
                                  {source.Random({18, 12}, dtype), Ints{6, 7}, Ints{3, 2},
                                   Ints{1, 2}, Ints{1, 0}, Ints{2, 1}},
                                  {source.Random({6, 8, 2}, dtype).permute({2, 1, 0}), Ints{4, 6},
                                   Ints{2, 2}, Ints{1, 1}, Ints{0, 0}, Ints{2, 2}}};
       },
       kFloats,
       [](const In& in) {
         return at::col2im(InFloat(in[0]), in.ints(1), in.ints(2), in.ints(3), in.ints(4),
                           in.ints(5))
             .to(in[0].scalar_type());
       }},
      {"aclnnConvDepthwise2d",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (bool biased : {false, true}) {
           inputs.push_back({source.Random({2, 3, 7, 8}, dtype), source.Random({3, 1, 3, 2}, dtype),
                             Ints{3, 2}, biased ? Arg(source.Random({3}, dtype)) : Arg(Null{}),
                             Ints{1, 1}, Ints{0, 0}, Ints{1, 1}, int64_t{0}});
           inputs.push_back({source.Random({2, 9, 8, 4}, dtype).permute({0, 3, 1, 2}),
                             source.Random({8, 1, 3, 3}, dtype), Ints{3, 3},
                             biased ? Arg(source.Random({8}, dtype)) : Arg(Null{}), Ints{2, 1},
                             Ints{1, 1}, Ints{1, 2}, int64_t{0}});
         }
         return inputs;
       },
       {at::kFloat, at::kDouble, at::kHalf},
       [](const In& in) {
         return at::conv2d(in[0], in[1], in.maybe(3), in.ints(4), in.ints(5), in.ints(6),
                           in[0].size(1));
       },
       kOrder},
      {"aclnnSoftmaxCrossEntropyWithLogits",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Ints& sizes : {Ints{4, 6}, Ints{17, 3}}) {
           inputs.push_back({source.Random(sizes, dtype), source.Random(sizes, dtype, 0, 1)});
           inputs.push_back(
               {source.Random(sizes, dtype),
                at::one_hot(source.Indices({sizes[0]}, sizes[1]), sizes[1]).to(dtype)});
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         const Tensor scores = in[0].to(at::kDouble), labels = in[1].to(at::kDouble);
         const Tensor softmax = at::softmax(scores, 1);
         const at::ScalarType dtype = in[0].scalar_type();
         return std::make_tuple((-(labels * softmax.log()).sum(1)).to(dtype),
                                (softmax - labels).to(dtype));
       },
       kComposed},
  };
}

Rows AdapterArithmetic() {
  return {
      {"aclnnAddRelu", TwoTensors({at::Scalar(2)}, false), kNumbers,
       [](const In& in) { return at::relu(at::add(in[0], in[1], in.number(2))); }, kZeros},
      {"aclnnGcd", TwoTensors({}, false), kIntegers,
       [](const In& in) { return at::gcd(in[0], in[1]); }},
  };
}

}  // namespace

Rows AdapterRows() {
  Rows rows = Distances();
  for (const Rows& more : {Numbers(), Images()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Row& row : rows) row.inplace = false;
  for (Row& row : AdapterArithmetic()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace acltape::opapi::grid
