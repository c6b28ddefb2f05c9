// Operators of tensor lists: the library's operator on each entry.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

Tensors List(Source& source, at::ScalarType dtype) {
  return {source.Random({5, 7}, dtype), source.Random({3, 4}, dtype).t(), source.Random({}, dtype),
          source.Random({0, 3}, dtype), source.Random({40}, dtype).slice(0, 3, 37, 2)};
}

Tensors ListLike(Source& source, const Tensors& model) {
  Tensors list;
  for (const Tensor& tensor : model) {
    list.push_back(source.Random(tensor.sizes(), tensor.scalar_type(), 0.5, 3));
  }
  return list;
}

// `count` lists of the same shapes, then `extra`.
Inputs Lists(int count, Args extra = {}) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Tensors first = List(source, dtype);
      Args args = {first};
      for (int i = 1; i < count; ++i) args.push_back(ListLike(source, first));
      args.insert(args.end(), extra.begin(), extra.end());
      inputs.push_back(args);
    }
    return inputs;
  };
}

// fn(i, in): entry i of the result.
template <typename Fn>
Reference Each(Fn fn) {
  return [fn](const In& in) {
    Tensors results;
    for (size_t i = 0; i < in.list(0).size(); ++i) results.push_back(fn(i, in));
    return results;
  };
}

}  // namespace

Rows ForeachRows() {
  const at::Scalar two(2);
  const std::vector<at::Scalar> five = {1.5, 2.0, 3.0, 4.0, 0.5};
  const Tolerance vector_code = {4, 0, true,
                                 "vector and scalar code of libtorch round differently"};
  const auto scalar_tensor = [](Source& source, at::ScalarType dtype) {
    return std::vector<Args>{{List(source, dtype), source.Random({1}, dtype, 1, 3)}};
  };
  Rows rows = {
      {"aclnnForeachAddScalar", scalar_tensor, kFloats,
       Each([](size_t i, const In& in) { return at::add(in.list(0)[i], in[1].reshape({})); })},
      {"aclnnForeachMulScalar", scalar_tensor, kFloats,
       Each([](size_t i, const In& in) { return at::mul(in.list(0)[i], in[1].reshape({})); })},
      {"aclnnForeachAddScalarV2", Lists(1, {two}), kNumbers,
       Each([](size_t i, const In& in) { return at::add(in.list(0)[i], in.number(1)); })},
      {"aclnnForeachSubScalarV2", Lists(1, {two}), kNumbers,
       Each([](size_t i, const In& in) { return at::sub(in.list(0)[i], in.number(1)); })},
      {"aclnnForeachMulScalarV2", Lists(1, {two}), kNumbers,
       Each([](size_t i, const In& in) { return at::mul(in.list(0)[i], in.number(1)); })},
      {"aclnnForeachDivScalarV2", Lists(1, {two}), kFloats,
       Each([](size_t i, const In& in) { return at::div(in.list(0)[i], in.number(1)); })},
      {"aclnnForeachAddScalarList", Lists(1, {five}), kFloats,
       Each([](size_t i, const In& in) { return at::add(in.list(0)[i], in.numbers(1)[i]); })},
      {"aclnnForeachMulScalarList", Lists(1, {five}), kFloats,
       Each([](size_t i, const In& in) { return at::mul(in.list(0)[i], in.numbers(1)[i]); })},
      {"aclnnForeachDivScalarList", Lists(1, {five}), kFloats,
       Each([](size_t i, const In& in) { return at::div(in.list(0)[i], in.numbers(1)[i]); })},
      {"aclnnForeachAddListV2", Lists(2, {two}), kNumbers, Each([](size_t i, const In& in) {
         return at::add(in.list(0)[i], in.list(1)[i], in.number(2));
       })},
      {"aclnnForeachSubListV2", Lists(2, {two}), kNumbers, Each([](size_t i, const In& in) {
         return at::sub(in.list(0)[i], in.list(1)[i], in.number(2));
       })},
      {"aclnnForeachMulList", Lists(2), kNumbers,
       Each([](size_t i, const In& in) { return at::mul(in.list(0)[i], in.list(1)[i]); })},
      {"aclnnForeachDivList", Lists(2), kFloats,
       Each([](size_t i, const In& in) { return at::div(in.list(0)[i], in.list(1)[i]); })},
      {"aclnnForeachMaximumList", Lists(2), kNumbers,
       Each([](size_t i, const In& in) { return at::maximum(in.list(0)[i], in.list(1)[i]); })},
      {"aclnnForeachMinimumScalarV2", Lists(1, {two}), kFloats, Each([](size_t i, const In& in) {
         return at::minimum(in.list(0)[i], at::scalar_tensor(in.number(1)).to(in.list(0)[i]));
       })},
      {"aclnnForeachAddcmulScalarV2", Lists(3, {two}), kFloats, Each([](size_t i, const In& in) {
         return at::addcmul(in.list(0)[i], in.list(1)[i], in.list(2)[i], in.number(3));
       })},
      {"aclnnForeachAddcdivScalarV2", Lists(3, {two}), kFloats, Each([](size_t i, const In& in) {
         return at::addcdiv(in.list(0)[i], in.list(1)[i], in.list(2)[i], in.number(3));
       })},
      {"aclnnForeachLerpScalar", Lists(2, {at::Scalar(0.25)}), kFloats,
       Each([](size_t i, const In& in) {
         return at::lerp(in.list(0)[i], in.list(1)[i], in.number(2));
       })},
      {"aclnnForeachSqrt", Lists(1), kFloats,
       Each([](size_t i, const In& in) { return at::sqrt(in.list(0)[i]); })},
      {"aclnnForeachNeg", Lists(1), kNumbers,
       Each([](size_t i, const In& in) { return at::neg(in.list(0)[i]); })},
      {"aclnnForeachAbs", Lists(1), kNumbers,
       Each([](size_t i, const In& in) { return at::abs(in.list(0)[i]); })},
      {"aclnnForeachExp", Lists(1), kFloats,
       Each([](size_t i, const In& in) { return at::exp(in.list(0)[i]); }), vector_code},
      {"aclnnForeachReciprocal", Lists(1), kFloats,
       Each([](size_t i, const In& in) { return at::reciprocal(in.list(0)[i]); })},
      {"aclnnForeachPowScalarV2", Lists(1, {two}), kFloats,
       Each([](size_t i, const In& in) { return at::pow(in.list(0)[i], in.number(1)); })},
      {"aclnnForeachCopy", Lists(1), kAll,
       Each([](size_t i, const In& in) { return in.list(0)[i].clone(); })},
      {"aclnnForeachZeroInplace", Lists(1), kAll,
       Each([](size_t i, const In& in) { return at::zeros_like(in.list(0)[i]); })},
      {"aclnnForeachNorm",
       Lists(1, {two}),
       {at::kFloat, at::kDouble},
       Each([](size_t i, const In& in) {
         return at::linalg_vector_norm(in.list(0)[i], in.number(1));
       })},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
