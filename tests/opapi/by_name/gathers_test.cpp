// Elements by indices, by masks, repeated or side by side, by the operators' names.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

Tensor Numbered(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return at::arange(count, dtype).view(sizes);
}

void ExpectGatherRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(GathersByName, SlicesOfADim) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong}) {
    for (at::ScalarType of_index : {at::kInt, at::kLong}) {
      const Tensor x = Numbered({2, 4, 3}, dtype), out = at::full({2, 2, 2, 3}, 77, dtype);
      const Tensor index = at::tensor({3, 0, 1, 1}).to(of_index).view({2, 2});
      NamedCall call("GatherV2");
      call.In(x).In(index).Host({-2}).Out(out).Set("batch_dims", int64_t{0});
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      for (int64_t n = 0; n < 2; ++n) {
        for (int64_t i = 0; i < 4; ++i) {
          const Tensor wanted = x[n][index.view({-1})[i].item<int64_t>()];
          EXPECT_TRUE(at::equal(out[n][i / 2][i % 2], wanted));
        }
      }
    }
  }
  const Tensor rows = at::full({1, 3}, 77.0f);
  NamedCall first("GatherV2");
  first.In(Numbered({2, 3})).In(at::tensor({1})).Out(rows);
  ASSERT_EQ(first.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(rows, at::tensor({3.0f, 4.0f, 5.0f}).view({1, 3})));
  NamedCall none("GatherV2");
  none.In(Numbered({2, 3})).In(at::empty({0}, at::kLong)).Host({1}).Out(at::empty({2, 0}));
  EXPECT_EQ(none.Run(), ACL_SUCCESS) << TakeMessage();
}

TEST(GathersByName, AnElementForEachIndex) {
  const Tensor x = Numbered({2, 3}), index = at::tensor({2, 0, 1, 1}).view({2, 2});
  const Tensor out = at::full({2, 2}, 77.0f);
  NamedCall call("GatherElements");
  call.In(x).In(index).Out(out).Set("dim", int64_t{1});
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, at::tensor({2.0f, 0.0f, 4.0f, 4.0f}).view({2, 2})));
}

TEST(GathersByName, RepeatedTensorsAndTensorsSideBySide) {
  const Tensor x = Numbered({2, 3}), out = at::full({4, 9}, 77.0f);
  NamedCall call("Tile");
  ASSERT_EQ(call.In(x).Host({2, 3}).Out(out).Run(), ACL_SUCCESS) << TakeMessage();
  for (int64_t i = 0; i < 36; ++i) {
    EXPECT_EQ(out[i / 9][i % 9].item<float>(), x[i / 9 % 2][i % 9 % 3].item<float>());
  }
  NamedCall none("Tile");
  EXPECT_EQ(none.In(x).Host({0, 1}).Out(at::empty({0, 3})).Run(), ACL_SUCCESS) << TakeMessage();
  for (int64_t axis : {0, 2, -2}) {
    const Tensor more = x + 100;
    const int64_t place = axis < 0 ? axis + 3 : axis;
    std::vector<int64_t> shape{2, 3};
    shape.insert(shape.begin() + place, 2);
    const Tensor stacked = at::full(shape, 77.0f);
    NamedCall pack("Pack");
    pack.In(x).In(more).Out(stacked).Set("axis", axis).Set("N", int64_t{2});
    ASSERT_EQ(pack.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(at::equal(stacked.select(place, 0), x) &&
                at::equal(stacked.select(place, 1), more));
  }
}

TEST(GathersByName, AConditionChooses) {
  const Tensor truth = at::tensor({1, 0, 1, 0}).to(at::kBool).view({2, 2});
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong}) {
    const Tensor a = Numbered({2, 2}, dtype), b = Numbered({2, 2}, dtype) + 10;
    const Tensor out = at::full({2, 2}, 77, dtype), filled = at::full({2, 2}, 77, dtype);
    NamedCall call("Select");
    ASSERT_EQ(call.In(truth).In(a).In(b).Out(out).Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(out, at::tensor({0, 11, 2, 13}).to(dtype).view({2, 2})));
    NamedCall fill("MaskedFill");
    fill.In(a).In(truth).Host(at::scalar_tensor(-5, dtype)).Out(filled);
    ASSERT_EQ(fill.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(filled, at::tensor({-5, 1, -5, 3}).to(dtype).view({2, 2})));
  }
  // A mask of a row, and a value of the device.
  const Tensor out = at::full({2, 2}, 77.0f);
  NamedCall row("MaskedFill");
  row.In(Numbered({2, 2})).In(truth[0]).In(at::scalar_tensor(9.0f)).Out(out);
  ASSERT_EQ(row.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, at::tensor({9.0f, 1.0f, 9.0f, 3.0f}).view({2, 2})));
}

TEST(GathersByName, BoundsAndTriangles) {
  const Tensor x = at::tensor({-3.0f, 0.5f, 7.0f}), out = at::full({3}, 77.0f);
  NamedCall numbers("ClipByValueV2");
  numbers.In(x).Host(at::scalar_tensor(-1.0f)).Host(at::scalar_tensor(2.0f)).Out(out);
  ASSERT_EQ(numbers.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, at::tensor({-1.0f, 0.5f, 2.0f})));
  NamedCall tensors("ClipByValueV2");
  tensors.In(x).In(at::tensor({0.0f, 1.0f, 0.0f})).In(at::tensor({4.0f, 5.0f, 6.0f})).Out(out);
  ASSERT_EQ(tensors.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, at::tensor({0.0f, 1.0f, 6.0f})));
  const Tensor square = Numbered({2, 3, 4}) + 1, kept = at::full({2, 3, 4}, 77.0f);
  for (int64_t diagonal : {-1, 0, 2}) {
    for (bool lower : {false, true}) {
      NamedCall call(lower ? "Tril" : "Triu");
      call.In(square).Out(kept).Set("diagonal", diagonal);
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      for (int64_t i = 0; i < 24; ++i) {
        const int64_t row = i / 4 % 3, column = i % 4;
        const bool stays = lower ? column - row <= diagonal : column - row >= diagonal;
        EXPECT_EQ(kept.view({-1})[i].item<float>(), stays ? static_cast<float>(i + 1) : 0);
      }
    }
  }
}

TEST(GathersByName, RowsOfOneIndexAreAdded) {
  at::manual_seed(72);
  const Tensor gradient = Random({2, 3, 4}), index = at::tensor({4, 0, 4, 1, 4, 0}).to(at::kInt);
  for (int64_t padding : {-1, 0}) {
    const Tensor out = at::full({5, 4}, 77.0f), wanted = at::zeros({5, 4});
    for (int64_t i = 0; i < 6; ++i) {
      const auto row = index[i].item<int64_t>();
      if (row != padding) wanted[row] += gradient.view({6, 4})[i];
    }
    NamedCall call("EmbeddingDenseGrad");
    call.In(gradient).In(index.view({2, 3})).Out(out).Set("num_weights", int64_t{5});
    call.Set("padding_idx", padding).Set("scale_grad_by_freq", false);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(at::allclose(out, wanted, 1e-5, 1e-5)) << out << wanted;
  }
  NamedCall wrong("EmbeddingDenseGrad");
  wrong.In(gradient).In(index).Out(at::empty({5, 4})).Set("num_weights", int64_t{5});
  ExpectGatherRefused(wrong, "expected a row for each index");
}

TEST(GathersByName, FormsThatAreRefused) {
  const Tensor x = Numbered({2, 3}), index = at::tensor({0, 1});
  {
    NamedCall wrong("GatherV2");
    wrong.In(x).In(index).Host({2}).Out(at::empty({2, 2}));
    ExpectGatherRefused(wrong, "axis 2 is no dim of a tensor of 2 dims");
  }
  {
    NamedCall wrong("GatherV2");
    wrong.In(x).In(index).Host({0}).Out(at::empty({2, 3})).Set("batch_dims", int64_t{1});
    ExpectGatherRefused(wrong, "batch_dims 1");
  }
  {
    NamedCall wrong("GatherV2");
    wrong.In(x).In(index).Host({0}).Out(at::empty({3, 3}));
    ExpectGatherRefused(wrong, "output 0 has the shape [3, 3], expected [2, 3]");
  }
  {
    NamedCall wrong("GatherElements");
    wrong.In(x).In(index.view({1, 2})).Out(at::empty({1, 2})).Set("dim", int64_t{-3});
    ExpectGatherRefused(wrong, "dim -3 is no dim");
  }
  {
    NamedCall wrong("Tile");
    wrong.In(x).Host({2}).Out(at::empty({4, 3}));
    ExpectGatherRefused(wrong, "multiples is [2]; expected a number for each dim");
  }
  {
    NamedCall wrong("Pack");
    wrong.In(x).In(Numbered({3, 2})).Out(at::empty({2, 2, 3})).Set("axis", int64_t{0});
    ExpectGatherRefused(wrong, "input 1 has the shape [3, 2], and the first [2, 3]");
  }
  {
    NamedCall wrong("Select");
    wrong.In(x).In(x).In(x).Out(at::empty({2, 3}));
    ExpectGatherRefused(wrong, "the condition has the type 0, expected bool");
  }
  {
    NamedCall wrong("MaskedFill");
    wrong.In(x).In(x.gt(1)).In(at::scalar_tensor(1, at::kInt)).Out(at::empty({2, 3}));
    ExpectGatherRefused(wrong, "the soft device takes one type");
  }
  {
    NamedCall wrong("ClipByValueV2");
    wrong.In(x).In(x).In(x).Out(at::empty({2, 2}));
    ExpectGatherRefused(wrong, "output 0 has the shape [2, 2], expected [2, 3]");
  }
  {
    NamedCall wrong("Tril");
    wrong.In(at::ones({3})).Out(at::empty({3}));
    ExpectGatherRefused(wrong, "expected two dims at least");
  }
}

}  // namespace
}  // namespace acltape::opapi
