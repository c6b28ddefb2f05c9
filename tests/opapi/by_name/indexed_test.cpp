// Elements at positions and numbers at equal distances by the operators' names.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

void ExpectIndexRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(IndexedByName, ElementsAtPositionsOfSomeDims) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong}) {
    const Tensor x = at::arange(24, dtype).view({2, 3, 4});
    const Tensor first = at::tensor({1, 0, 1}), second = at::tensor({2, 0, 3});
    const Tensor rows = at::full({3, 3, 4}, 77, dtype);
    NamedCall one("Index");
    one.In(x).Host({1}).Host({3, 3, 4}).In(first).Out(rows);
    ASSERT_EQ(one.Run(), ACL_SUCCESS) << TakeMessage();
    const Tensor apart = at::full({3, 3}, 77, dtype);  // the dim between them comes last
    NamedCall two("Index");
    two.In(x).Host({1, 0, 1}).Host({3, 3}).In(first).In(second).Out(apart);
    ASSERT_EQ(two.Run(), ACL_SUCCESS) << TakeMessage();
    const Tensor columns = at::full({2, 3, 3}, 77, dtype);
    NamedCall last("Index");
    last.In(x).Host({0, 0, 1}).Host({2, 3, 3}).In(second.to(at::kInt)).Out(columns);
    ASSERT_EQ(last.Run(), ACL_SUCCESS) << TakeMessage();
    for (int64_t i = 0; i < 3; ++i) {
      const auto a = first[i].item<int64_t>(), b = second[i].item<int64_t>();
      EXPECT_TRUE(at::equal(rows[i], x[a]));
      EXPECT_TRUE(at::equal(apart[i], x[a].t()[b]));
      for (int64_t n = 0; n < 2; ++n) EXPECT_TRUE(at::equal(columns[n].t()[i], x[n].t()[b]));
    }
  }
}

TEST(IndexedByName, ElementsAreWrittenAtPositions) {
  for (at::ScalarType dtype : {at::kFloat, at::kInt}) {
    const Tensor x = at::arange(12, dtype).view({3, 4}), out = at::full({3, 4}, 77, dtype);
    const Tensor index = at::tensor({3, 0, 1, 1}).view({2, 2});
    const Tensor updates = at::tensor({-1, -2, -3, -4}).to(dtype).view({2, 2});
    NamedCall call("ScatterElements");
    call.In(x).In(index.slice(1, 0, 1).contiguous()).In(updates).Out(out).Set("axis", int64_t{-1});
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    const Tensor wanted = x.clone();
    wanted[0][3] = -1;
    wanted[1][1] = -3;
    EXPECT_TRUE(SameBits(out, wanted));
    NamedCall down("ScatterElements");
    down.In(out).In(at::tensor({2, 0}).view({1, 2})).In(updates).Out(out).Set("axis", int64_t{0});
    ASSERT_EQ(down.Run(), ACL_SUCCESS) << TakeMessage();
    wanted[2][0] = -1;
    wanted[0][1] = -2;
    EXPECT_TRUE(SameBits(out, wanted));
  }
}

TEST(IndexedByName, NumbersAtEqualDistances) {
  const auto run = [](const Tensor& start, const Tensor& limit, const Tensor& delta,
                      const Tensor& out) {
    NamedCall call("Range");
    return call.Host(start).Host(limit).Host(delta).Out(out).Run();
  };
  const auto number = [](double value, at::ScalarType dtype) {
    return at::scalar_tensor(value, at::TensorOptions().dtype(dtype));
  };
  const Tensor floats = at::full({4}, 77.0f);
  ASSERT_EQ(run(number(1, at::kFloat), number(2.8, at::kFloat), number(0.5, at::kFloat), floats),
            ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(SameBits(floats, at::tensor({1.0f, 1.5f, 2.0f, 2.5f})));
  for (at::ScalarType dtype : {at::kInt, at::kLong}) {
    const Tensor out = at::full({3}, 77, dtype);
    ASSERT_EQ(run(number(5, dtype), number(-1, dtype), number(-2, dtype), out), ACL_SUCCESS)
        << TakeMessage();
    EXPECT_TRUE(SameBits(out, at::tensor({5, 3, 1}).to(dtype)));
  }
  const Tensor none = at::empty({0});
  EXPECT_EQ(run(number(1, at::kFloat), number(1, at::kFloat), number(1, at::kFloat), none),
            ACL_SUCCESS);
  TakeMessage();
  EXPECT_NE(run(number(0, at::kFloat), number(9, at::kFloat), number(1, at::kFloat), floats),
            ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("0, 9 and 1 are not the start, the limit and the delta"),
            std::string::npos);
  EXPECT_NE(run(number(0, at::kFloat), number(4, at::kFloat), number(0, at::kFloat), floats),
            ACL_SUCCESS);
}

TEST(IndexedByName, FormsThatAreRefused) {
  const Tensor x = at::ones({2, 3}), index = at::tensor({0, 1});
  {
    NamedCall wrong("Index");
    wrong.In(x).Host({1, 1}).Host({2}).In(index).Out(at::empty({2}));
    ExpectIndexRefused(wrong, "indexed_sizes is [1, 1], x has the shape [2, 3], and there are 1");
  }
  {
    NamedCall wrong("Index");
    wrong.In(x).Host({1, 1}).Host({2}).In(index).In(at::tensor({0})).Out(at::empty({2}));
    ExpectIndexRefused(wrong, "all of one shape");
  }
  {
    NamedCall wrong("Index");
    wrong.In(x).Host({1}).Host({2}).In(index).Out(at::empty({2, 2}));
    ExpectIndexRefused(wrong, "output 0 has the shape [2, 2], expected [2, 3]");
  }
  {
    NamedCall wrong("ScatterElements");
    wrong.In(x).In(at::zeros({2, 1}, at::kLong)).In(x).Out(at::empty({2, 3}));
    wrong.Set("axis", int64_t{0}).Set("reduction", "add");
    ExpectIndexRefused(wrong, "reduction 'add'");
  }
  {
    NamedCall wrong("ScatterElements");
    wrong.In(x).In(at::zeros({2, 4}, at::kLong)).In(at::ones({2, 4})).Out(at::empty({2, 3}));
    wrong.Set("axis", int64_t{0});
    ExpectIndexRefused(wrong, "the shapes [2, 3], [2, 4] and [2, 4]");
  }
}

}  // namespace
}  // namespace acltape::opapi
