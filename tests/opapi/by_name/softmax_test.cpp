// Softmaxes and their gradients by their names, beside loops over rows in doubles.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Each row along the dim, as a matrix of its own: [rows, length].
Tensor RowsAlong(const Tensor& x, int64_t dim) {
  return x.to(at::kDouble).movedim(dim, -1).reshape({-1, x.dim() > 0 ? x.size(dim) : 1});
}

Tensor FromRows(const Tensor& rows, const Tensor& like, int64_t dim) {
  return rows.view(like.movedim(dim, -1).sizes()).movedim(-1, dim);
}

Tensor SoftmaxOfRows(const Tensor& rows, bool logarithm) {
  const Tensor out = at::empty_like(rows);
  for (int64_t row = 0; row < rows.size(0); ++row) {
    double most = -INFINITY, sum = 0;
    const auto number = [&](int64_t i) { return rows[row][i].item<double>(); };
    for (int64_t i = 0; i < rows.size(1); ++i) most = std::max(most, number(i));
    for (int64_t i = 0; i < rows.size(1); ++i) sum += std::exp(number(i) - most);
    for (int64_t i = 0; i < rows.size(1); ++i) {
      out[row][i] = logarithm ? number(i) - most - std::log(sum) : std::exp(number(i) - most) / sum;
    }
  }
  return out;
}

// The gradient of a row by its matrix of derivatives.
Tensor GradientOfRows(const Tensor& y, const Tensor& dy, bool logarithm) {
  const Tensor out = at::zeros_like(y);
  for (int64_t row = 0; row < y.size(0); ++row) {
    for (int64_t i = 0; i < y.size(1); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < y.size(1); ++j) {
        const double yi = y[row][i].item<double>(), yj = y[row][j].item<double>();
        const double one = i == j ? 1 : 0;
        sum += dy[row][j].item<double>() * (logarithm ? one - std::exp(yi) : yj * (one - yi));
      }
      out[row][i] = sum;
    }
  }
  return out;
}

testing::AssertionResult NearRows(const Tensor& actual, const Tensor& wanted, double tolerance) {
  if (at::allclose(actual.to(at::kDouble), wanted, tolerance, tolerance)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << actual << " instead of " << wanted;
}

void ExpectSoftmaxRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(SoftmaxByName, EachDimOfEachType) {
  at::manual_seed(71);
  for (bool logarithm : {false, true}) {
    for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
      const double tolerance = dtype == at::kFloat ? 1e-5 : dtype == at::kHalf ? 5e-3 : 5e-2;
      for (int64_t dim : {0, 1, -1}) {
        const Tensor x = Random({3, 2, 4}, dtype), out = at::full({3, 2, 4}, 77, dtype);
        NamedCall call(logarithm ? "LogSoftmaxV2" : "SoftmaxV2");
        call.In(x).Out(out).Set("axes", std::vector<int64_t>{dim});
        ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
        const Tensor rows = SoftmaxOfRows(RowsAlong(x, dim), logarithm);
        EXPECT_TRUE(NearRows(out, FromRows(rows, x, dim), tolerance));
        const Tensor dy = Random({3, 2, 4}, dtype), dx = at::full({3, 2, 4}, 77, dtype);
        NamedCall gradient(logarithm ? "LogSoftmaxGrad" : "SoftmaxGrad");
        gradient.In(logarithm ? dy : out).In(logarithm ? out : dy).Out(dx);
        gradient.Set(logarithm ? "axis" : "axes", std::vector<int64_t>{dim});
        ASSERT_EQ(gradient.Run(), ACL_SUCCESS) << TakeMessage();
        const Tensor wanted = GradientOfRows(RowsAlong(out, dim), RowsAlong(dy, dim), logarithm);
        EXPECT_TRUE(NearRows(dx, FromRows(wanted, x, dim), 4 * tolerance));
      }
    }
  }
  const Tensor one = at::scalar_tensor(3.0f), out = at::scalar_tensor(77.0f);
  NamedCall scalar("SoftmaxV2");
  ASSERT_EQ(scalar.In(one).Out(out).Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(out.item<float>(), 1);
  NamedCall none("SoftmaxV2");
  EXPECT_EQ(none.In(at::empty({0, 3})).Out(at::empty({0, 3})).Run(), ACL_SUCCESS) << TakeMessage();
}

TEST(SoftmaxByName, FormsThatAreRefused) {
  const Tensor x = Random({2, 3});
  {
    NamedCall wrong("SoftmaxV2");
    wrong.In(x).Out(at::empty({2, 3})).Set("axes", std::vector<int64_t>{0, 1});
    ExpectSoftmaxRefused(wrong, "axes is [0, 1]; the soft device takes one dim");
  }
  {
    NamedCall wrong("LogSoftmaxGrad");
    wrong.In(x).In(x).Out(at::empty({2, 3})).Set("axis", std::vector<int64_t>{2});
    ExpectSoftmaxRefused(wrong, "axis is [2]; the soft device takes one dim");
  }
  {
    NamedCall wrong("SoftmaxGrad");
    wrong.In(x).In(Random({3, 2})).Out(at::empty({2, 3}));
    ExpectSoftmaxRefused(wrong, "input 1 has the shape [3, 2], and the first [2, 3]");
  }
  {
    NamedCall wrong("SoftmaxV2");
    wrong.In(x).Out(at::empty({2, 3}, at::kHalf));
    ExpectSoftmaxRefused(wrong, "the soft device takes one type");
  }
}

}  // namespace
}  // namespace acltape::opapi
