// Comparing, counting, searching, running extremes, repeating; decompositions and quantisation.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

std::vector<Args> Counted(Source& source, at::ScalarType dtype) {
  return {{source.Random({7, 11}, dtype, 0, 9), int64_t{5}, int64_t{0}, int64_t{9}},
          {source.Random({40}, dtype, 0, 9).slice(0, 1, 40, 3), int64_t{8}, int64_t{2}, int64_t{6}},
          {source.Random({1, 6}, dtype, 1, 4).expand({3, 6}), int64_t{4}, int64_t{0}, int64_t{0}}};
}

std::vector<Args> AlongDims(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (const Tensor& view : source.Views(dtype)) {
    if (view.numel() == 0) continue;
    inputs.push_back({view, int64_t{0}});
    inputs.push_back({view, int64_t{-1}});
  }
  return inputs;
}

std::vector<Args> Sequences(Source& source, at::ScalarType dtype) {
  const auto sorted = [&](Ints sizes) {
    return std::get<0>(at::sort(source.Random(sizes, at::kDouble), -1)).to(dtype);
  };
  std::vector<Args> inputs;
  for (bool right : {false, true}) {
    inputs.push_back({sorted({9}), source.Random({4, 5}, dtype), false, right, Null{}});
    inputs.push_back({sorted({3, 7}), source.Random({3, 4}, dtype), false, right, Null{}});
    inputs.push_back({sorted({9}), source.Random({5, 4}, dtype).t(), false, right, Null{}});
  }
  return inputs;
}

Tensor Symmetric(Source& source, Ints sizes, at::ScalarType dtype) {
  const Tensor a = source.Random(sizes, dtype);
  return at::matmul(a, a.transpose(-1, -2)) + at::eye(sizes.back(), a.options());
}

const Tolerance kSolved = {64, 1e-4, true, "LAPACK works in other orders for other strides"};

}  // namespace

Rows SearchRows() {
  const Dtypes wide = {at::kFloat, at::kDouble};
  Rows rows = {
      {"aclnnIsClose",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& [a, b] : source.Pairs(dtype, dtype)) {
           inputs.push_back({a, b, 0.1, 0.5, false});
           if (at::isFloatingType(dtype)) inputs.push_back({a, b, 1e-5, 1e-8, true});
         }
         return inputs;
       },
       {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kBool},
       [](const In& in) { return at::isclose(in[0], in[1], in.real(2), in.real(3), in.flag(4)); }},
      {"aclnnHistc",
       Counted,
       {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kByte},
       [](const In& in) {
         const bool floats = at::isFloatingType(in[0].scalar_type());
         return at::histc(floats ? in[0] : in[0].to(at::kDouble), in.integer(1), in.number(2),
                          in.number(3))
             .to(in[0].scalar_type());
       }},
      {"aclnnBincount",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Indices({30}, 7, dtype), Null{}, int64_t{0}},
             {source.Indices({30}, 7, dtype), source.Random({30}, at::kDouble), int64_t{12}}};
       },
       {at::kLong, at::kInt},
       [](const In& in) { return at::bincount(in[0], in.maybe(1), in.integer(2)); }},
      {"aclnnSearchSorted",
       Sequences,
       {at::kFloat, at::kDouble, at::kLong},
       [](const In& in) { return at::searchsorted(in[0], in[1], false, in.flag(3)); }},
      {"aclnnCummax",
       AlongDims,
       {at::kFloat, at::kDouble, at::kLong, at::kInt},
       [](const In& in) { return at::cummax(in[0], in.integer(1)); }},
      {"aclnnCummin",
       AlongDims,
       {at::kFloat, at::kDouble, at::kLong, at::kInt},
       [](const In& in) { return at::cummin(in[0], in.integer(1)); }},
      {"aclnnAminmaxDim",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (Args args : AlongDims(source, dtype)) {
           args.push_back(true);
           inputs.push_back(args);
         }
         return inputs;
       },
       {at::kFloat, at::kLong},
       [](const In& in) {
         return std::make_tuple(at::amin(in[0], in.integer(1), true),
                                at::amax(in[0], in.integer(1), true));
       }},
      {"aclnnRepeatInterleaveWithDim",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({4, 3}, dtype), at::tensor({2, 0, 1, 3}, at::kLong), int64_t{0},
              int64_t{6}},
             {source.Random({4, 3}, dtype).t(), at::tensor({2}, at::kLong), int64_t{1}, int64_t{8}},
             {source.Random({4, 3}, dtype), at::ones({1}, at::kLong).expand({3}), int64_t{-1},
              int64_t{3}}};
       },
       kAll,
       [](const In& in) {
         const Tensor counts =
             in[1].numel() == 1 ? in[1].expand({in[0].size(in.integer(2))}) : in[1];
         return at::repeat_interleave(in[0], counts.contiguous(), in.integer(2));
       }},
      {"aclnnRepeatInterleave",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({2, 2}, dtype), at::tensor({2, 0, 1, 3}, at::kLong), int64_t{6}}};
       },
       kAll, [](const In& in) { return at::repeat_interleave(in[0].flatten(), in[1]); }},
      {"aclnnRepeatInterleaveInt",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({3, 2}, dtype).t(), int64_t{3}, int64_t{18}}};
       },
       kAll, [](const In& in) { return at::repeat_interleave(in[0], in.integer(1)); }},
      {"aclnnRepeatInterleaveTensor",
       [](Source&, at::ScalarType dtype) {
         return std::vector<Args>{{at::tensor({2, 0, 1, 3}, at::kLong).to(dtype), int64_t{6}}};
       },
       {at::kLong, at::kInt},
       [](const In& in) { return at::repeat_interleave(in[0].to(at::kLong)); }},
      {"aclnnInverse",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{Symmetric(source, {4, 4}, dtype)},
                                  {Symmetric(source, {3, 5, 5}, dtype)}};
       },
       wide, [](const In& in) { return at::inverse(in[0]); }, kSolved},
      {"aclnnLinalgCholesky",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{Symmetric(source, {4, 4}, dtype), false},
                                  {Symmetric(source, {3, 5, 5}, dtype), true}};
       },
       wide, [](const In& in) { return at::linalg_cholesky(in[0], in.flag(1)); }, kSolved},
      {"aclnnSvd",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({4, 6}, dtype), false, true},
                                  {source.Random({2, 5, 3}, dtype), true, true}};
       },
       wide,
       [](const In& in) {
         const auto result = at::svd(in[0], !in.flag(1), true);
         return std::make_tuple(std::get<1>(result), std::get<0>(result), std::get<2>(result));
       },
       kSolved},
      {"aclnnQr",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({6, 4}, dtype), true},
                                  {source.Random({2, 5, 3}, dtype), false}};
       },
       wide, [](const In& in) { return at::linalg_qr(in[0], in.flag(1) ? "reduced" : "complete"); },
       kSolved},
      {"aclnnQuantize",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({5, 6}, dtype), at::full({1}, 0.05), Null{}, at::kChar, int64_t{1}},
             {source.Random({6, 5}, dtype).t(), source.Random({6}, at::kFloat, 0.01, 0.1),
              at::full({6}, 3, at::kFloat), at::kChar, int64_t{-1}}};
       },
       {at::kFloat},
       [](const In& in) {
         Tensor scaled = (in[0] / in[1]).round();
         if (in.maybe(2)) scaled = scaled + *in.maybe(2);
         return scaled.clamp(-128, 127).to(at::kChar);
       }},
      {"aclnnDynamicQuant",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({5, 6}, dtype), Null{}},
                                  {source.Random({2, 3, 8}, dtype), source.Random({8}, dtype)}};
       },
       {at::kFloat},
       [](const In& in) {
         Tensor x = InFloat(in[0]);
         if (in.maybe(1)) x = x * InFloat(*in.maybe(1));
         const Tensor scale = x.abs().amax(-1, true) / 127;
         return std::make_tuple((x / scale).round().to(at::kChar), scale.squeeze(-1));
       }},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
