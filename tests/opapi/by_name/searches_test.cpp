// Sorted elements, extremes and running sums by the operators' names.
#include <algorithm>
#include <numeric>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The order of a row by a stable sort.
std::vector<int64_t> OrderOf(const Tensor& row, bool descending) {
  std::vector<int64_t> order(row.numel());
  std::iota(order.begin(), order.end(), 0);
  const auto number = [&](int64_t i) { return row[i].item<double>(); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return descending ? number(a) > number(b) : number(a) < number(b);
  });
  return order;
}

void ExpectSearchRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(SearchesByName, TheFirstOfTheSortedElements) {
  at::manual_seed(81);
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kInt}) {
    const Tensor x = at::randperm(20).to(dtype).view({4, 5});
    for (bool largest : {true, false}) {
      for (int64_t dim : {0, -1}) {
        const Tensor rows = dim == 0 ? x.t() : x;
        const std::vector<int64_t> shape =
            dim == 0 ? std::vector<int64_t>{3, 5} : std::vector<int64_t>{4, 3};
        const Tensor values = at::full(shape, 77, dtype), positions = at::full(shape, 77, at::kInt);
        NamedCall call("TopKV2");
        call.In(x).Host(at::tensor({3}, at::kInt)).Out(values).Out(positions);
        call.Set("dim", dim).Set("largest", largest).Set("sorted", true);
        ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
        for (int64_t row = 0; row < rows.size(0); ++row) {
          const std::vector<int64_t> order = OrderOf(rows[row], largest);
          for (int64_t i = 0; i < 3; ++i) {
            const Tensor value = dim == 0 ? values[i][row] : values[row][i];
            const Tensor position = dim == 0 ? positions[i][row] : positions[row][i];
            EXPECT_EQ(position.item<int64_t>(), order[i]);
            EXPECT_EQ(value.item<double>(), rows[row][order[i]].item<double>());
          }
        }
      }
    }
  }
}

TEST(SearchesByName, EqualElementsKeepTheirOrder) {
  const Tensor x = at::tensor({2.0f, 1.0f, 2.0f, 0.0f, 1.0f, 2.0f}).view({1, 6});
  for (bool descending : {true, false}) {
    const Tensor values = at::full({1, 6}, 77.0f), positions = at::full({1, 6}, 77, at::kInt);
    NamedCall call("Sort");
    call.In(x).Out(values).Out(positions).Set("axis", int64_t{1}).Set("descending", descending);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    const std::vector<int64_t> order = OrderOf(x[0], descending);
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(positions[0][i].item<int64_t>(), order[i]);
      EXPECT_EQ(values[0][i].item<float>(), x[0][order[i]].item<float>());
    }
  }
}

TEST(SearchesByName, PositionsOfExtremes) {
  at::manual_seed(82);
  const Tensor x = at::randperm(24).to(at::kFloat).view({2, 3, 4});
  for (const char* name : {"ArgMaxV2", "ArgMin"}) {
    const bool greatest = std::string(name) == "ArgMaxV2";
    for (bool keep : {false, true}) {
      const std::vector<int64_t> shape =
          keep ? std::vector<int64_t>{2, 1, 4} : std::vector<int64_t>{2, 4};
      const Tensor out = at::full(shape, 77, at::kInt);
      NamedCall call(name);
      call.In(x).Host(at::scalar_tensor(-2, at::kInt)).Out(out).Set("keep_dims", keep);
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      for (int64_t i = 0; i < 8; ++i) {
        const Tensor row = x[i / 4].t()[i % 4].contiguous();
        EXPECT_EQ(out.view({-1})[i].item<int64_t>(), OrderOf(row, greatest)[0]);
      }
    }
  }
}

TEST(SearchesByName, SumsFromTheStartOrTheEnd) {
  const Tensor x = at::tensor({1, 2, 3, 4, 5, 6}).view({2, 3});
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong}) {
    const auto run = [&](int64_t axis, bool exclusive, bool reverse) {
      const Tensor out = at::full({2, 3}, 77, dtype);
      NamedCall call("Cumsum");
      call.In(x.to(dtype)).Host(at::scalar_tensor(axis, at::kInt)).Out(out);
      if (exclusive) call.Set("exclusive", true);
      if (reverse) call.Set("reverse", true);
      EXPECT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      return out;
    };
    const auto wanted = [&](std::initializer_list<int> numbers) {
      return at::tensor(std::vector<int>(numbers)).to(dtype).view({2, 3});
    };
    EXPECT_TRUE(SameBits(run(1, false, false), wanted({1, 3, 6, 4, 9, 15})));
    EXPECT_TRUE(SameBits(run(0, false, false), wanted({1, 2, 3, 5, 7, 9})));
    EXPECT_TRUE(SameBits(run(-1, true, false), wanted({0, 1, 3, 0, 4, 9})));
    EXPECT_TRUE(SameBits(run(1, false, true), wanted({6, 5, 3, 15, 11, 6})));
  }
}

TEST(SearchesByName, ACapturedSearchRunsAgainOverNewElements) {
  at::manual_seed(83);
  const Tensor x = Random({3, 7}), values = at::full({3, 2}, 77.0f);
  const Tensor positions = at::full({3, 2}, 77, at::kInt);
  aclrtStream stream = nullptr;
  TestStream();
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  {
    NamedCall call("TopKV2");
    call.In(x).Host({2}).Out(values).Out(positions).Set("dim", int64_t{1});
    ASSERT_EQ(call.Launch(stream), ACL_SUCCESS) << TakeMessage();
  }
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  EXPECT_TRUE(SameBits(values, at::full({3, 2}, 77.0f)));
  for (int run = 0; run < 2; ++run) {
    x.copy_(Random({3, 7}));
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    for (int64_t row = 0; row < 3; ++row) {
      const std::vector<int64_t> order = OrderOf(x[row], true);
      for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(positions[row][i].item<int64_t>(), order[i]);
    }
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST(SearchesByName, NothingAndFormsThatAreRefused) {
  NamedCall none("Sort");
  none.In(at::empty({0, 3})).Out(at::empty({0, 3})).Out(at::empty({0, 3}, at::kInt));
  EXPECT_EQ(none.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor x = Random({2, 3});
  {
    NamedCall wrong("TopKV2");
    wrong.In(x).Host({4}).Out(at::empty({2, 4})).Out(at::empty({2, 4}, at::kInt));
    ExpectSearchRefused(wrong, "k is [4]; expected a number of elements of dim 1");
  }
  {
    NamedCall wrong("TopKV2");
    wrong.In(x).Host({2}).Out(at::empty({2, 2})).Out(at::empty({2, 2}));
    ExpectSearchRefused(wrong, "positions have the type 0, expected int32");
  }
  {
    NamedCall wrong("Sort");
    wrong.In(x).Out(at::empty({2, 3})).Out(at::empty({2, 3}, at::kInt)).Set("axis", int64_t{2});
    ExpectSearchRefused(wrong, "there is no dim 2 in a tensor of shape [2, 3]");
  }
  {
    NamedCall wrong("Sort");
    wrong.In(x).Out(at::empty({2, 2})).Out(at::empty({2, 3}, at::kInt));
    ExpectSearchRefused(wrong, "output 0 has the shape [2, 2], expected [2, 3]");
  }
  {
    NamedCall wrong("ArgMaxV2");
    wrong.In(at::empty({2, 0})).Host({1}).Out(at::empty({2}, at::kInt));
    ExpectSearchRefused(wrong, "dim 1 has no elements");
  }
  {
    NamedCall wrong("ArgMin");
    wrong.In(x).Host({0, 1}).Out(at::empty({}, at::kInt));
    ExpectSearchRefused(wrong, "dimension has 2 numbers, expected 1");
  }
  {
    NamedCall wrong("Cumsum");
    wrong.In(x).Host({3}).Out(at::empty({2, 3}));
    ExpectSearchRefused(wrong, "there is no dim 3");
  }
}

}  // namespace
}  // namespace acltape::opapi
