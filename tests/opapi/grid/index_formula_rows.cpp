// Reading, writing and counting at indices, element by element in double.
#include <cmath>

#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

// Calls fn(position in the flat index, position in the flat target) for each element of the index,
// which replaces the coordinate of `dim`.
template <typename Fn>
void ForEachIndexed(const Tensor& index, at::IntArrayRef target, int64_t dim, Fn fn) {
  const Tensor flat = index.to(at::kLong).contiguous().flatten();
  const auto* values = flat.data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    int64_t rest = i, place = 0, step = 1;
    for (int64_t d = index.dim() - 1; d >= 0; --d) {
      const int64_t here = d == dim ? values[i] : rest % index.size(d);
      rest /= index.size(d);
      place += here * step;
      step *= target[d];
    }
    fn(i, place);
  }
}

// (self, dim, index, src, reduce, includeSelf)
Tensor ReducedByIndex(const In& in) {
  const int64_t dim = in.integer(1) < 0 ? in.integer(1) + in[0].dim() : in.integer(1);
  const int64_t reduce = in.integer(4);
  const Tensor result = in[0].to(at::kDouble).contiguous().clone();
  Tensor given = in[3].to(at::kDouble);
  for (int64_t d = 0; d < given.dim(); ++d) given = given.slice(d, 0, in[2].size(d));
  given = given.contiguous();
  const auto* values = given.data_ptr<double>();
  auto* out = result.data_ptr<double>();
  std::vector<int64_t> counts(result.numel(), in.flag(5) ? 1 : 0);
  ForEachIndexed(in[2], in[0].sizes(), dim, [&](int64_t i, int64_t place) {
    double& all = out[place];
    const bool first = counts[place]++ == 0;
    const double value = values[i];
    if (first) {
      all = value;
    } else if (reduce == 2) {
      all *= value;
    } else if (reduce == 3) {
      all = std::fmax(all, value);
    } else if (reduce == 4) {
      all = std::fmin(all, value);
    } else {
      all += value;
    }
  });
  for (int64_t i = 0; reduce == 5 && i < result.numel(); ++i) {
    out[i] /= static_cast<double>(std::max<int64_t>(counts[i], 1));
  }
  return result.to(in[0].scalar_type());
}

std::vector<Args> ReductionsByIndex(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const bool floating = at::isFloatingType(dtype);
  for (int64_t reduce = 1; reduce <= 5; ++reduce) {
    if (reduce == 5 && !floating) continue;  // how a mean of integers is rounded is not documented
    for (bool include : {false, true}) {
      inputs.push_back({source.Random({7}, dtype), int64_t{0}, source.Indices({9}, 7),
                        source.Random({9}, dtype), reduce, include});
      inputs.push_back({source.Random({6, 4}, dtype).t(), int64_t{-1},
                        source.Indices({3, 5}, 6, at::kInt), source.Random({4, 8}, dtype), reduce,
                        include});
      inputs.push_back({source.Random({3, 4, 2}, dtype), int64_t{1}, source.Indices({2, 6, 2}, 4),
                        source.Random({2, 6, 2}, dtype), reduce, include});
      inputs.push_back({source.Random({3, 4}, dtype), int64_t{0}, source.Indices({0, 4}, 3),
                        source.Random({0, 4}, dtype), reduce, include});
    }
  }
  return inputs;
}

// (self, dim, index, source)
Tensor CopiedAtIndex(const In& in) {
  const Tensor result = in[0].clone();
  for (int64_t i = 0; i < in[2].numel(); ++i) {
    result.select(in.integer(1), in[2][i].item().toLong()).copy_(in[3].select(in.integer(1), i));
  }
  return result;
}

// (yGrad, repeats, axis): the sum over the copies that each entry has
Tensor SummedCopies(const In& in) {
  const int64_t axis = in.integer(2), copies = in[0].size(axis);
  const int64_t entries = in[1].numel() == 1 ? copies / in[1].item().toLong() : in[1].numel();
  Tensors sums;
  int64_t next = 0;
  for (int64_t entry = 0; entry < entries; ++entry) {
    const int64_t count = (in[1].numel() == 1 ? in[1].flatten()[0] : in[1][entry]).item().toLong();
    sums.push_back(in[0].to(at::kDouble).slice(axis, next, next + count).sum(axis));
    next += count;
  }
  return at::stack(sums, axis).to(in[0].scalar_type());
}

// (sortedSequence, self, outInt32, right, sorter?): how many stand in front of the number
Tensor CountedInFront(const In& in) {
  const double number = in.real(1);
  int64_t count = 0;
  for (int64_t i = 0; i < in[0].numel(); ++i) {
    const double value = in[0][i].item().toDouble();
    if (value < number || (in.flag(3) && value == number)) ++count;
  }
  return at::scalar_tensor(count, at::kLong).to(in.flag(2) ? at::kInt : at::kLong);
}

// Least and greatest over the dims (none: all).
std::tuple<Tensor, Tensor> Extremes(const Tensor& self, std::vector<int64_t> dims, bool keep) {
  std::vector<int64_t> sizes(self.dim(), 1), of_result;
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool reduced = dims.empty();
    for (int64_t dim : dims) reduced = reduced || (dim < 0 ? dim + self.dim() : dim) == d;
    if (!reduced) sizes[d] = self.size(d);
    if (!reduced || keep) of_result.push_back(sizes[d]);
  }
  const Tensor least = at::full(sizes, INFINITY, at::kDouble);
  const Tensor greatest = at::full(sizes, -INFINITY, at::kDouble);
  const Tensor dense = self.to(at::kDouble).contiguous();
  for (int64_t i = 0; i < dense.numel(); ++i) {
    int64_t rest = i, place = 0, step = 1;
    for (int64_t d = self.dim() - 1; d >= 0; --d) {
      place += sizes[d] == 1 ? 0 : rest % self.size(d) * step;
      rest /= self.size(d);
      step *= sizes[d];
    }
    const double value = dense.data_ptr<double>()[i];
    double& low = least.data_ptr<double>()[place];
    double& high = greatest.data_ptr<double>()[place];
    low = std::fmin(low, value);
    high = std::fmax(high, value);
  }
  return {least.view(of_result).to(self.scalar_type()),
          greatest.view(of_result).to(self.scalar_type())};
}

// (self, p, dim, maxNorm): slices with a greater norm are scaled down to it
Tensor Renormed(const In& in) {
  const double p = in.real(1), most = in.real(3);
  const Tensor result = in[0].to(at::kDouble).clone();
  for (int64_t i = 0; i < result.size(in.integer(2)); ++i) {
    const Tensor slice = result.select(in.integer(2), i);
    const double norm = std::pow(
        Formula([=](double x) { return std::pow(std::fabs(x), p); }, slice).sum().item<double>(),
        1 / p);
    if (norm > most) slice.mul_(most / norm);
  }
  return result.to(in[0].scalar_type());
}

}  // namespace

Rows IndexFormulaRows() {
  const Dtypes wide = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt};
  Rows rows = {
      {"aclnnScatterReduce",
       ReductionsByIndex,
       wide,
       ReducedByIndex,
       {4, 1e-6, false, "the operator reduces in float32"}},
      {"aclnnIndexCopy",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({7}, dtype), int64_t{0}, source.Shuffled(7).slice(0, 0, 4),
              source.Random({4}, dtype)},
             {source.Random({6, 4}, dtype).t(), int64_t{-1},
              source.Shuffled(6).slice(0, 0, 3).to(at::kInt), source.Random({3, 4}, dtype).t()},
             {source.Random({3, 5, 2}, dtype), int64_t{1}, source.Shuffled(5),
              source.Random({3, 5, 2}, dtype)},
             {source.Random({3, 5}, dtype), int64_t{0}, source.Indices({0}, 3),
              source.Random({0, 5}, dtype)}};
       },
       kAll, CopiedAtIndex},
      {"aclnnInplaceRenorm",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({4, 6}, dtype), at::Scalar(2), int64_t{0}, at::Scalar(1)},
             {source.Random({4, 6}, dtype), at::Scalar(2), int64_t{1}, at::Scalar(3.5)},
             {source.Random({3, 2, 5}, dtype).transpose(0, 2), at::Scalar(1), int64_t{-1},
              at::Scalar(0.5)},
             {source.Random({3, 4}, dtype), at::Scalar(3), int64_t{0}, at::Scalar(2)}};
       },
       kFloats,
       Renormed,
       // The library adds a small number to the norm, so that it is never 0.
       {8, 2e-6, false, "the norm is a float"}},
      {"aclnnRepeatInterleaveGrad",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({6, 3}, dtype), at::tensor({2, 0, 1, 3}, at::kLong), int64_t{0}},
             {source.Random({8, 4}, dtype).t(), at::tensor({2}, at::kLong), int64_t{1}},
             {source.Random({2, 5, 3}, dtype), at::tensor({1, 4}, at::kInt), int64_t{1}},
             {source.Random({5}, dtype), at::tensor({4, 1}, at::kLong), int64_t{-1}}};
       },
       {at::kFloat, at::kHalf, at::kBFloat16},
       SummedCopies,
       {4, 1e-6, false, "the operator sums in float32"}},
      {"aclnnSearchSorteds",
       [](Source&, at::ScalarType dtype) {
         std::vector<Args> inputs;
         const Tensor sorted = at::tensor({-3, -1, 0, 0, 2, 2, 5}, at::kDouble).to(dtype);
         for (bool narrow : {false, true}) {
           for (bool right : {false, true}) {
             for (double number : {-4.0, -1.0, 0.0, 2.0, 5.0, 7.0}) {
               inputs.push_back({sorted, at::Scalar(number), narrow, right, Null{}});
             }
             inputs.push_back({sorted.slice(0, 0, 7, 2), at::Scalar(2.0), narrow, right, Null{}});
             inputs.push_back({sorted.slice(0, 0, 0), at::Scalar(2.0), narrow, right, Null{}});
           }
         }
         return inputs;
       },
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt},
       CountedInFront},
      {"aclnnAminmax",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (bool keep : {false, true}) {
           inputs.push_back({source.Random({3, 4, 5}, dtype), std::vector<int64_t>{1}, keep});
           inputs.push_back({source.Random({5, 4, 3}, dtype).transpose(0, 2),
                             std::vector<int64_t>{0, -1}, keep});
           inputs.push_back({source.Random({4, 6}, dtype), std::vector<int64_t>{}, keep});
           inputs.push_back({source.Random({0, 3}, dtype), std::vector<int64_t>{1}, keep});
         }
         return inputs;
       },
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kByte},
       [](const In& in) { return Extremes(in[0], in.ints(1), in.flag(2)); }},
      {"aclnnAminmaxAll",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({3, 4, 5}, dtype).transpose(0, 1)},
                                  {source.Random({}, dtype)},
                                  {source.Random({40}, dtype).slice(0, 3, 37, 2)}};
       },
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kByte},
       [](const In& in) { return Extremes(in[0], {}, false); }},
  };
  for (Row& row : rows) row.inplace = row.op == "aclnnScatterReduce";
  return rows;
}

}  // namespace acltape::opapi::grid
