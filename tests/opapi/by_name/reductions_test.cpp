// Reductions by their names, beside loops over all elements in doubles.
#include <cmath>
#include <functional>
#include <limits>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Axes = std::vector<int64_t>;
using Fold = std::function<double(double, double)>;

// Goes over x element by element; each joins the result that its other dims name.
Tensor Folded(const Tensor& x, Axes axes, bool keep, double first, const Fold& fold) {
  const int64_t rank = x.dim();
  std::vector<int64_t> kept = x.sizes().vec();
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    kept[axis] = 1;
  }
  const Tensor from = x.to(at::kDouble).contiguous(), out = at::full(kept, first, at::kDouble);
  for (int64_t i = 0; i < from.numel(); ++i) {
    int64_t rest = i, place = 0, stride = 1;
    for (int64_t dim = rank - 1; dim >= 0; --dim) {
      if (kept[dim] != 1) place += rest % x.size(dim) * stride;
      stride *= kept[dim];
      rest /= x.size(dim);
    }
    double& result = out.data_ptr<double>()[place];
    result = fold(result, from.data_ptr<double>()[i]);
  }
  if (keep) return out;
  std::vector<int64_t> shape;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (std::find(axes.begin(), axes.end(), dim) == axes.end()) shape.push_back(x.size(dim));
  }
  return out.view(shape);
}

testing::AssertionResult NearFold(const Tensor& actual, const Tensor& wanted, double tolerance) {
  if (at::allclose(actual.to(at::kDouble), wanted, tolerance, tolerance, /*equal_nan=*/true)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << actual << " instead of " << wanted;
}

void ExpectReductionRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

const Fold kSum = [](double a, double b) { return a + b; };
const Fold kMost = [](double a, double b) { return std::max(a, b); };
const Fold kLeast = [](double a, double b) { return std::min(a, b); };
constexpr double kEndless = std::numeric_limits<double>::infinity();

TEST(ReductionsByName, SumsAndMeansOverEachChoiceOfDims) {
  at::manual_seed(21);
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const Tensor x = Random({3, 4, 1, 5}, dtype);
    for (const Axes& axes : {Axes{0, 3}, Axes{1}, Axes{-1}, Axes{0, 1, 2, 3}}) {
      for (bool keep : {false, true}) {
        const Tensor sum = Folded(x, axes, keep, 0, kSum);
        double count = 1;
        for (int64_t axis : axes) count *= static_cast<double>(x.size(axis));
        const double tolerance = dtype == at::kFloat ? 1e-5 : dtype == at::kHalf ? 2e-2 : 0.1;
        const Tensor out = at::full(sum.sizes(), 77, dtype),
                     mean = at::full(sum.sizes(), 77, dtype);
        NamedCall call("ReduceSum");
        call.In(x).Host(axes).Out(out).Set("keep_dims", keep);
        ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
        EXPECT_TRUE(NearFold(out, sum, tolerance));
        NamedCall average("ReduceMean");
        average.In(x).Host(axes).Out(mean).Set("keep_dims", keep);
        ASSERT_EQ(average.Run(), ACL_SUCCESS) << TakeMessage();
        EXPECT_TRUE(NearFold(mean, sum / count, tolerance));
      }
    }
  }
}

TEST(ReductionsByName, ExtremesAndTruths) {
  at::manual_seed(22);
  const Tensor x = Random({2, 3, 4});
  for (const auto& [name, first, fold] :
       {std::tuple{"ReduceMax", -kEndless, kMost}, std::tuple{"ReduceMin", kEndless, kLeast}}) {
    const Tensor wanted = Folded(x, {0, 2}, true, first, fold), out = at::full({1, 3, 1}, 77.0f);
    NamedCall call(name);
    call.In(x).Host({0, 2}).Out(out).Set("keep_dims", true);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(NearFold(out, wanted, 0)) << name;
  }
  const Tensor truths = at::tensor({1, 1, 0, 1, 0, 0}).to(at::kBool).view({3, 2});
  for (const auto& [name, first, fold] :
       {std::tuple{"ReduceAll", 1.0, kLeast}, std::tuple{"ReduceAny", 0.0, kMost}}) {
    const Tensor wanted = Folded(truths, {1}, false, first, fold);
    const Tensor out = at::zeros({3}, at::kBool);
    NamedCall call(name);
    call.In(truths).Host({1}).Out(out).Set("keep_dims", false);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(NearFold(out, wanted, 0)) << name;
  }
}

TEST(ReductionsByName, OneElementAScalarAndNothing) {
  const Tensor scalar = at::scalar_tensor(5.0f), out = at::scalar_tensor(77.0f);
  NamedCall call("ReduceSum");
  call.In(scalar).Host(Axes{}).Out(out);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(out.item<float>(), 5);
  const Tensor zeros = at::full({3}, 77.0f);
  NamedCall empty("ReduceSum");
  empty.In(at::empty({3, 0})).Host({1}).Out(zeros);
  ASSERT_EQ(empty.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(zeros, at::zeros({3})));
  NamedCall none("ReduceMean");
  none.In(at::empty({0, 3})).Host({1}).Out(at::empty({0}));
  EXPECT_EQ(none.Run(), ACL_SUCCESS) << TakeMessage();
}

TEST(ReductionsByName, FormsThatAreRefused) {
  const Tensor x = Random({2, 3});
  {
    NamedCall wrong("ReduceSum");
    wrong.In(x).Host({2}).Out(at::empty({2}));
    ExpectReductionRefused(wrong,
                           "the axes [2] are not different dims of a tensor of shape [2, 3]");
  }
  {
    NamedCall wrong("ReduceSum");
    wrong.In(x).Host({1, -1}).Out(at::empty({2}));
    ExpectReductionRefused(wrong, "the axes [1, 1] are not different dims");
  }
  {
    NamedCall wrong("ReduceSum");
    wrong.In(x).Host({1}).Out(at::empty({3}));
    ExpectReductionRefused(wrong, "output 0 has the shape [3], expected [2]");
  }
  {
    NamedCall wrong("ReduceSum");
    wrong.In(x).Host({1}).Out(at::empty({2}, at::kHalf));
    ExpectReductionRefused(wrong, "the soft device takes one type");
  }
  {
    NamedCall wrong("ReduceSum");
    wrong.In(x).In(at::tensor({1})).Out(at::empty({2}));
    ExpectReductionRefused(wrong, "axes is known on the device alone");
  }
}

// The first operator of a norm, then the second one.
Tensor NormByName(const Tensor& x, float p, const Axes& axes, bool keep, at::IntArrayRef shape) {
  const Tensor sum = at::full(shape, 77, x.options()), norm = at::full(shape, 77, x.options());
  NamedCall reduce("LpNormReduceV2");
  reduce.In(x).Out(sum).Set("p", p).Set("axes", axes).Set("keepdim", keep).Set("epsilon", 0.0f);
  EXPECT_EQ(reduce.Run(), ACL_SUCCESS) << TakeMessage();
  NamedCall update("LpNormUpdateV2");
  update.In(sum).Out(norm).Set("p", p).Set("epsilon", 0.0f);
  EXPECT_EQ(update.Run(), ACL_SUCCESS) << TakeMessage();
  return norm;
}

TEST(ReductionsByName, NormsOfEachExponent) {
  at::manual_seed(23);
  Tensor x = Random({3, 4, 2});
  x[1][2][0] = 0;
  for (double p : {1.5, 4.0, 2.0, 1.0, 0.0, 0.5, -2.0, 2147483648.0, -2147483648.0}) {
    const bool endless = std::abs(p) > 1e9;
    const double first = endless && p < 0 ? kEndless : 0;
    const Fold fold = [&](double sum, double value) {
      const double size = std::abs(value);
      if (endless) return p > 0 ? std::max(sum, size) : std::min(sum, size);
      return sum + (p == 0 ? (size != 0 ? 1 : 0) : std::pow(size, p));
    };
    for (const Axes& axes : {Axes{0, 2}, Axes{1}}) {
      Tensor wanted = Folded(x, axes, false, first, fold);
      if (!endless && p != 0) wanted = wanted.pow(1 / p);
      EXPECT_TRUE(
          NearFold(NormByName(x, static_cast<float>(p), axes, false, wanted.sizes()), wanted, 1e-4))
          << p;
    }
  }
  // All dims, where none are named.
  const Fold cubes = [](double sum, double value) { return sum + std::pow(std::abs(value), 3); };
  EXPECT_TRUE(NearFold(NormByName(x, 3, {}, true, {1, 1, 1}),
                       Folded(x, {0, 1, 2}, true, 0, cubes).pow(1.0 / 3), 1e-4));
  const Tensor half = Random({2, 3}, at::kHalf);
  EXPECT_TRUE(NearFold(NormByName(half, 3, {1}, false, {2}),
                       Folded(half, {1}, false, 0, cubes).pow(1.0 / 3), 1e-2));
  EXPECT_TRUE(SameBits(NormByName(at::empty({2, 0}), 3, {1}, false, {2}), at::zeros({2})));
}

TEST(ReductionsByName, NormsThatAreRefused) {
  {
    NamedCall wrong("LpNormReduceV2");
    wrong.In(at::ones({3}, at::kInt)).Out(at::empty({}, at::kInt)).Set("p", 3.0f);
    ExpectReductionRefused(wrong, "the soft device takes a number, 0, and float32");
  }
  {
    NamedCall wrong("LpNormUpdateV2");
    wrong.In(at::ones({3})).Out(at::empty({3})).Set("p", 3.0f).Set("epsilon", 1e-3f);
    ExpectReductionRefused(wrong, "epsilon 0.001");
  }
  {
    NamedCall wrong("LpNormReduceV2");
    wrong.In(at::empty({2, 0})).Out(at::empty({2})).Set("p", 2147483648.0f);
    wrong.Set("axes", Axes{1});
    ExpectReductionRefused(wrong, "there is no extreme of no elements");
  }
}

}  // namespace
}  // namespace acltape::opapi
