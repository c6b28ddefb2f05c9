// Operators of training: sparse gradients and jagged tables, features that a batch scales, noise
// where it is certain, and a loss over a vocabulary that ranks share. References go element by
// element.
#include <cmath>

#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Dtypes kTrained = {at::kFloat, at::kHalf, at::kBFloat16};
const Tolerance kTrainedSums = {16, 1e-5, false, "sums of a few numbers in float32"};

// (uniqueLen, uniqueIndices, indices, values)
std::tuple<Tensor, Tensor> CoalescedByHand(const In& in) {
  const int64_t count = in[0].size(0);
  Ints sizes = in[3].sizes().vec();
  sizes[0] = count;
  const Tensor places = at::zeros({count, in[2].size(1)}, in[2].options());
  const Tensor sums = at::zeros(sizes, at::kDouble);
  for (int64_t i = 0; i < in[3].size(0); ++i) {
    const int64_t entry = in[1][i].item().toLong();
    places[entry].copy_(in[2][i]);
    sums[entry].add_(in[3][i].to(at::kDouble));
  }
  return {places, sums.to(in[3].scalar_type())};
}

// Entries at positions of which some are the same, as torch_npu gives them: the positions as
// numbers, those without the doubles, and which of them each entry has.
Args SparseEntries(Source& source, const Ints& sizes, at::ScalarType dtype) {
  const Tensor flat = source.Indices({sizes[0]}, 4);
  const auto unique = at::_unique2(flat, /*sorted=*/true, /*return_inverse=*/true);
  const Tensor positions = at::stack({flat.floor_divide(2), flat.remainder(2)}, 1).to(at::kInt);
  return {std::get<0>(unique).to(at::kInt), std::get<1>(unique).to(at::kInt), positions,
          source.Random(sizes, dtype)};
}

// (permute, inputOffset, outputOffset, outputSize)
Tensor ExpandedByHand(const In& in) {
  const Tensor result = at::zeros({in.integer(3)}, at::kInt);
  for (int64_t i = 0; i < in[0].numel(); ++i) {
    const int64_t begin = in[2][i].item().toLong(), end = in[2][i + 1].item().toLong();
    const int64_t table = in[0][i].item().toLong();
    for (int64_t k = begin; k < end; ++k) {
      result[k] = in[1][table].item().toLong() + k - begin;
    }
  }
  return result;
}

Rows SparseIndices() {
  return {
      {"aclnnCoalesceSparse",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs = {SparseEntries(source, {7}, dtype),
                                     SparseEntries(source, {6, 3}, dtype),
                                     SparseEntries(source, {5, 2, 3}, dtype),
                                     SparseEntries(source, {1, 2, 1, 2, 1, 2, 1, 2}, dtype)};
         inputs[1][3] = source.Random({3, 6}, dtype).t();
         for (int i : {0, 1, 2}) {
           inputs[2][i] = std::get<Tensor>(inputs[2][i]).to(at::kLong);
         }
         return inputs;
       },
       {at::kFloat, at::kHalf, at::kInt},
       CoalescedByHand,
       kTrainedSums},
      {"aclnnExpandIntoJaggedPermute",
       [](Source&, at::ScalarType dtype) {
         const auto numbers = [&](const Ints& values) { return at::tensor(values).to(dtype); };
         return std::vector<Args>{
             {numbers({2, 0, 1}), numbers({0, 3, 5, 9}), numbers({0, 4, 7, 9}), int64_t{9}},
             {numbers({1, 9, 0, 9}).slice(0, 0, 4, 2), numbers({0, 2, 2}), numbers({0, 0, 2}),
              int64_t{2}},
             {numbers({}), numbers({0}), numbers({0}), int64_t{0}}};
       },
       {at::kInt},
       ExpandedByHand},
  };
}

// [batch, 1, width] of an optional argument, in double.
Tensor OfBatch(const In& in, int i, double otherwise) {
  if (!in.maybe(i)) return at::full({1, 1, 1}, otherwise, at::kDouble);
  const Tensor wide = in[i].to(at::kDouble);
  return wide.dim() == 3 ? wide : wide.unsqueeze(1);
}

Rows Modulations() {
  return {
      {"aclnnModulate",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         return std::vector<Args>{{of({2, 3, 5}), of({2, 5}), of({2, 1, 5})},
                                  {of({5, 3, 2}).transpose(0, 2), of({2, 1, 5}), Null{}},
                                  {of({2, 3, 5}), Null{}, of({5, 2}).t()},
                                  {of({2, 3, 5}), Null{}, Null{}},
                                  {of({2, 0, 5}), of({2, 5}), of({2, 5})}};
       },
       kTrained,
       [](const In& in) {
         return Formula([](double x, double a, double b) { return x * (1 + a) + b; }, in[0],
                        OfBatch(in, 1, 0), OfBatch(in, 2, 0))
             .to(in[0].scalar_type());
       },
       kTrainedSums},
      {"aclnnModulateBackward",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         return std::vector<Args>{
             {of({2, 3, 5}), of({2, 3, 5}), of({2, 5}), of({2, 5})},
             {of({5, 3, 2}).transpose(0, 2), of({2, 3, 5}), of({5, 2}).t(), Null{}},
             {of({2, 3, 5}), of({2, 3, 5}), Null{}, of({2, 5})},
             {of({2, 3, 5}), of({2, 3, 5}), Null{}, Null{}}};
       },
       kTrained,
       [](const In& in) {
         const Tensor dy = in[0].to(at::kDouble), x = in[1].to(at::kDouble);
         const at::ScalarType dtype = in[0].scalar_type();
         return std::make_tuple((dy * (1 + OfBatch(in, 2, 0))).to(dtype),
                                in.maybe(2) ? (dy * x).sum(1).to(dtype) : Tensor(),
                                in.maybe(3) ? dy.sum(1).to(dtype) : Tensor());
       },
       kTrainedSums},
  };
}

// Numbers of a range that holds one number are certain.
Tensor SlopesByHand(const In& in, bool training) {
  const double low = in.real(2), high = in.real(3);
  return Formula([=](double x) { return x > 0 ? 1 : training ? low : (low + high) / 2; }, in[0]);
}

Inputs Leaks() {
  return [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Tensor& view : source.Views(dtype)) {
      if (Source::IsExpanded(view)) continue;
      const Tensor noise = source.Random(view.sizes(), dtype);
      inputs.push_back({view, noise, 0.25, 0.25, true, int64_t{7}, int64_t{3}});
      inputs.push_back({view, noise, 0.125, 0.375, false, int64_t{7}, int64_t{3}});
    }
    return inputs;
  };
}

// The noise and the result; in training the noise is new.
std::tuple<Tensor, Tensor> LeakedByHand(const In& in) {
  const bool training = in.flag(4);
  const Tensor slopes = SlopesByHand(in, training);
  const at::ScalarType dtype = in[0].scalar_type();
  return {training ? slopes.to(dtype) : in[1], (in[0].to(at::kDouble) * slopes).to(dtype)};
}

Rows CertainNoise() {
  return {
      {"aclnnRReluWithNoise", Leaks(), kTrained, LeakedByHand, kFormula},
      {"aclnnInplaceRReluWithNoise", Leaks(), kTrained,
       [](const In& in) {
         const auto [noise, result] = LeakedByHand(in);
         return std::make_tuple(result, noise);
       },
       kFormula},
      {"aclnnBernoulliTensor",
       [](Source& source, at::ScalarType dtype) {
         const auto certain = [&](const Ints& sizes) {
           return source.Indices(sizes, 2).to(at::kFloat);
         };
         return std::vector<Args>{
             {source.Random({3, 4}, dtype), certain({3, 4}), int64_t{1}, int64_t{0}},
             {source.Random({4, 3}, dtype).t(), certain({4}), int64_t{1}, int64_t{8}},
             {source.Random({2, 0}, dtype), certain({1}), int64_t{1}, int64_t{0}},
             {source.Random({}, dtype), certain({}).to(at::kHalf), int64_t{1}, int64_t{0}}};
       },
       kAll,
       [](const In& in) {
         return in[1].expand(in[0].sizes()).to(in[0].scalar_type()).contiguous();
       }},
      {"aclnnDropoutGenMask",
       [](Source&, at::ScalarType) {
         std::vector<Args> inputs;
         for (double drop : {0.0, 1.0}) {
           for (const Ints& sizes : {Ints{300}, Ints{2, 3, 5}, Ints{4, 0}}) {
             inputs.push_back({sizes, drop, int64_t{5}, int64_t{9}});
           }
         }
         return inputs;
       },
       {at::kByte},
       [](const In& in) {
         int64_t count = 1;
         for (int64_t size : in.ints(0)) count *= size;
         const Tensor bytes = at::zeros({(count + 127) / 128 * 16}, at::kByte);
         for (int64_t i = 0; i < count && in.real(1) == 0; ++i) {
           bytes[i / 8] += static_cast<int64_t>(1) << i % 8;
         }
         return bytes;
       }},
  };
}

// (logitsMax, sumExpLogits, predictedLogits, labelSmoothing, input?, weight?, logits?)
Args SharedLossByHand(const In& in) {
  const Tensor loss =
      Formula([](double sum, double predicted) { return std::log(sum) - predicted; }, in[1], in[2]);
  if (!in.maybe(6)) return {loss.to(at::kFloat), Tensor()};
  const Tensor softmax =
      Formula([](double x, double most, double sum) { return std::exp(x - most) / sum; }, in[6],
              in[0].unsqueeze(1), in[1].unsqueeze(1));
  return {loss.to(at::kFloat), softmax.to(at::kFloat)};
}

Rows SharedLosses() {
  return {
      {"aclnnFusedCrossEntropyLossWithMaxSum",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         const auto sums = [&](int64_t count) { return source.Random({count}, dtype, 1, 20); };
         return std::vector<Args>{
             {of({5}), sums(5), of({5}), 0.0, Null{}, Null{}, of({5, 7})},
             {of({3}), sums(3), of({3}), 0.0, at::rand({3, 4}), at::rand({7, 4}), of({7, 3}).t()},
             {of({3}), sums(3), of({3}), 0.0, Null{}, Null{}, Null{}}};
       },
       kTrained, SharedLossByHand, kTrainedSums},
  };
}

}  // namespace

Rows TrainingRows() {
  Rows rows = SparseIndices();
  for (const Rows& more : {Modulations(), CertainNoise(), SharedLosses()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
