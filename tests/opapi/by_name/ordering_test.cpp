// Operators by name about the order of elements: a sort, and the gradient of extremes.
#include <algorithm>
#include <limits>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

void ExpectOrderRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(SortsByName, EachRowIsInOrder) {
  at::manual_seed(33);
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble}) {
    for (const bool descending : {false, true}) {
      for (const int64_t axis : {-1, 2}) {
        const Tensor x = Random({2, 3, 17}, type), out = at::full({2, 3, 17}, 77, type);
        x[0][1][4] = std::numeric_limits<float>::infinity();
        x[0][1][5] = x[0][1][6];
        NamedCall call("SortV2");
        call.In(x).Out(out).Set("axis", axis).Set("descending", descending);
        ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
        for (int64_t i = 0; i < 6; ++i) {
          const Tensor row = x.view({6, 17})[i].to(at::kDouble).contiguous();
          const Tensor found = out.view({6, 17})[i].to(at::kDouble).contiguous();
          std::vector<double> wanted(row.data_ptr<double>(), row.data_ptr<double>() + 17);
          std::sort(wanted.begin(), wanted.end());
          if (descending) std::reverse(wanted.begin(), wanted.end());
          for (int64_t k = 0; k < 17; ++k) EXPECT_EQ(found[k].item<double>(), wanted[k]);
        }
      }
    }
  }
}

TEST(SortsByName, FewElementsAndRefusals) {
  const Tensor scalar = at::scalar_tensor(3.0f), out = at::zeros({});
  NamedCall one("SortV2");
  ASSERT_EQ(one.In(scalar).Out(out).Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(out.item<float>(), 3);
  NamedCall none("SortV2");
  EXPECT_EQ(none.In(at::empty({2, 0})).Out(at::empty({2, 0})).Run(), ACL_SUCCESS) << TakeMessage();
  NamedCall axis("SortV2");
  axis.In(at::zeros({2, 3})).Out(at::zeros({2, 3})).Set("axis", int64_t{0});
  ExpectOrderRefused(axis,
                     "axis is 0; expected float32, float16, bfloat16 or double, and the last dim");
  NamedCall integers("SortV2");
  integers.In(at::zeros({3}, at::kInt)).Out(at::zeros({3}, at::kInt));
  ExpectOrderRefused(integers, "x has the type 3");
  NamedCall types("SortV2");
  types.In(at::zeros({3})).Out(at::zeros({3}, at::kHalf));
  ExpectOrderRefused(types, "its tensors have the types 0 and 1");
  NamedCall shapes("SortV2");
  shapes.In(at::zeros({3})).Out(at::zeros({4}));
  ExpectOrderRefused(shapes, "output 0 has the shape [4], expected [3]");
}

aclError Replace(const Tensor& var, const Tensor& indices, const Tensor& updates, const Tensor& out,
                 int64_t dim) {
  NamedCall call("ArgMaxGrad");
  return call.In(var).In(indices).In(updates).Out(out).Set("dimension", dim).Run();
}

TEST(ExtremeGradientsByName, TheExampleOfTheAdapter) {
  const Tensor var = at::tensor({1.6279f, 0.1226f, 0.9041f, 1.0980f}).view({2, 2});
  const Tensor out = at::full({2, 2}, 77.0f);
  ASSERT_EQ(Replace(var, at::tensor({0, 1}, at::kInt), at::tensor({-1.1993f, -1.5247f}), out, 0),
            ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(SameBits(out, at::tensor({-1.1993f, 0.1226f, 0.9041f, -1.5247f}).view({2, 2})));
}

TEST(ExtremeGradientsByName, ElementsAtIndicesOfEachDimAreReplaced) {
  at::manual_seed(34);
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kInt, at::kChar}) {
    for (int64_t dim = -3; dim < 3; ++dim) {
      const Tensor var = at::randint(0, 100, {2, 3, 4}).to(type);
      const int64_t size = var.size(dim);
      std::vector<int64_t> rest = var.sizes().vec();
      rest.erase(rest.begin() + (dim + 3) % 3);
      const Tensor indices = at::randint(0, size, rest, at::kInt);
      const Tensor updates = at::randint(0, 100, rest).to(type) - 101;
      const Tensor out = at::full({2, 3, 4}, 77, type);
      ASSERT_EQ(Replace(var, indices, updates, out, dim), ACL_SUCCESS) << TakeMessage();
      Tensor wanted = var.clone();
      Tensor rows = wanted.movedim(dim, 2);
      for (int64_t i = 0; i < rest[0]; ++i) {
        for (int64_t k = 0; k < rest[1]; ++k) {
          rows[i][k][indices[i][k].item<int>()].copy_(updates[i][k]);
        }
      }
      EXPECT_TRUE(SameBits(out, wanted)) << dim;
    }
  }
}

TEST(ExtremeGradientsByName, ScalarsAndNothing) {
  const Tensor out = at::zeros({});
  ASSERT_EQ(Replace(at::scalar_tensor(5.0f), at::scalar_tensor(0, at::kInt),
                    at::scalar_tensor(7.0f), out, 0),
            ACL_SUCCESS)
      << TakeMessage();
  EXPECT_EQ(out.item<float>(), 7);
  const Tensor nothing = at::empty({3, 0});
  EXPECT_EQ(Replace(nothing, at::empty({0}, at::kInt), at::empty({0}), nothing, 0), ACL_SUCCESS)
      << TakeMessage();
  const Tensor var = Random({3, 2}), same = at::zeros({3, 2});
  EXPECT_EQ(Replace(var, at::empty({0}, at::kInt), at::empty({0}), same, 1), ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(SameBits(same, var)) << "without indices it is var";
}

TEST(ExtremeGradientsByName, FormsThatAreRefused) {
  const Tensor var = at::zeros({2, 3}), indices = at::zeros({2}, at::kInt),
               updates = at::zeros({2});
  const struct {
    Tensor var, indices, updates, out;
    int64_t dim;
    const char* part;
  } kCalls[] = {
      {var, indices, updates, var, 2, "there is no dim 2 in a tensor of 2 dims"},
      {var, indices, updates, var, 0, "expected [3] for both"},
      {var, indices.view({2, 1}), updates.view({2, 1}), var, 1, "indices have the shape [2, 1]"},
      {var, indices, at::zeros({3}), var, 1, "updates [3]"},
      {var, indices.to(at::kLong), updates, var, 1, "indices 9"},
      {var.to(at::kBFloat16), indices, updates.to(at::kBFloat16), var.to(at::kBFloat16), 1,
       "var has the type 27"},
      {var, indices, updates.to(at::kHalf), var, 1, "its tensors have the types 0 and 1"},
      {var, indices, updates, at::zeros({3, 2}), 1, "output 0 has the shape [3, 2]"},
  };
  for (const auto& each : kCalls) {
    TakeMessage();
    EXPECT_NE(Replace(each.var, each.indices, each.updates, each.out, each.dim), ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(each.part), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace acltape::opapi
