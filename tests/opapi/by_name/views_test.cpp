// Operators by name that give elements of their input as they are, or one value.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using at::indexing::None;
using at::indexing::Slice;

// A tensor of the numbers 0, 1, 2, ...
Tensor Counting(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  return at::arange(c10::multiply_integers(sizes), dtype).view(sizes);
}

Tensor Marked(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  return at::full(sizes, 77, dtype);
}

// The refusal of a call: what its message must hold.
void ExpectRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(ViewsByName, ASliceIsThePartFromTheOffsetsOn) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong, at::kByte, at::kBool}) {
    const Tensor x = Counting({3, 4, 5}, at::kInt).to(dtype);
    const Tensor out = Marked({2, 1, 3}).to(dtype);
    NamedCall call("Slice");
    call.In(x).Host({1, 2, 0}).Host({2, 1, 3}).Out(out);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(out, x.index({Slice(1, 3), Slice(2, 3), Slice(0, 3)}).contiguous()));
  }
}

TEST(ViewsByName, ASliceTakesConstantsOfTheDescriptionAndAllThatIsLeft) {
  const Tensor x = Counting({3, 4}), out = Marked({2, 4});
  NamedCall call("Slice");
  call.In(x).Constant({1, 0}).Constant({-1, -1}).Out(out);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, x.slice(0, 1)));
}

TEST(ViewsByName, ASliceOfNothingOrOfAScalarIsPossible) {
  const Tensor empty = Marked({0, 4});
  NamedCall none("Slice");
  none.In(Counting({3, 4})).Host({3, 0}).Host({0, 4}).Out(empty);
  EXPECT_EQ(none.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor scalar = at::scalar_tensor(5.0f), out = at::scalar_tensor(0.0f);
  NamedCall one("Slice");
  one.In(scalar).Host(std::vector<int64_t>{}).Host(std::vector<int64_t>{}).Out(out);
  ASSERT_EQ(one.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(out.item<float>(), 5);
}

TEST(ViewsByName, ASliceOutsideOfItsTensorIsRefused) {
  const Tensor x = Counting({3, 4});
  const struct {
    std::vector<int64_t> offsets, sizes;
    const char* part;
  } kCalls[] = {
      {{2, 0}, {2, 4}, "2 elements from 2 on are no part of dim 0, which has 3"},
      {{-1, 0}, {1, 4}, "1 elements from -1 on are no part of dim 0"},
      {{0, 5}, {1, -1}, "-1 elements from 5 on are no part of dim 1"},
      {{0, 0}, {1, INT64_MAX}, "are no part of dim 1, which has 4"},
      {{0}, {1}, "offsets has 1 numbers, expected 2"},
  };
  for (const auto& each : kCalls) {
    NamedCall call("Slice");
    call.In(x).Host(each.offsets).Host(each.sizes).Out(Marked({2, 4}));
    ExpectRefused(call, each.part);
  }
}

TEST(ViewsByName, BuffersThatAreTooSmallAndOtherTypesAreRefused) {
  const Tensor x = Counting({3, 4});
  {
    NamedCall call("Slice");
    call.In(x).InputOf(40).Host({0, 0}).Host({1, 4}).Out(Marked({1, 4}));
    ExpectRefused(call, "input 0 has the shape [3, 4], which takes 48 bytes, and a buffer of 40");
  }
  {
    NamedCall call("Slice");
    call.In(x).Host({0, 0}).Host({1, 4}).Out(Marked({1, 4})).OutputOf(8);
    ExpectRefused(call, "output 0 has the shape [1, 4], which takes 16 bytes, and a buffer of 8");
  }
  {
    NamedCall call("Slice");
    call.In(x).Host({0, 0}).Host({1, 4}).Out(Marked({1, 4}, at::kHalf));
    ExpectRefused(call, "the soft device takes one type");
  }
  {
    NamedCall call("Slice");
    call.In(x).Host({0, 0}).Host({1, 4}).Out(Marked({2, 4}));
    ExpectRefused(call, "output 0 has the shape [2, 4], expected [1, 4]");
  }
  {
    NamedCall call("Slice");
    call.In(x).Host(at::tensor({0.0f, 0.0f})).Host({1, 4}).Out(Marked({1, 4}));
    ExpectRefused(call, "offsets has the type 0");
  }
  {
    NamedCall call("Slice");
    call.In(x).In(at::zeros({2}, at::kLong)).Host({1, 4}).Out(Marked({1, 4}));
    ExpectRefused(call, "offsets is known on the device alone");
  }
  {
    NamedCall call("Slice");
    call.Host(x).Host({0, 0}).Host({1, 4}).Out(Marked({1, 4}));
    ExpectRefused(call, "input 0 lies in host memory");
  }
  {
    NamedCall call("Slice");
    call.In(x);
    ExpectRefused(call, "it has 1 inputs and 0 outputs, expected at least 1 and 1");
  }
}

struct StridedCase {
  std::vector<int64_t> begin, end, strides;
  int64_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
  Tensor expected;
};

TEST(ViewsByName, AStridedSliceTakesEveryNthElementAndItsMasks) {
  const Tensor x = Counting({3, 4, 5});
  const StridedCase kCases[] = {
      {{0, 1, 0},
       {3, 4, 5},
       {2, 1, 3},
       0,
       0,
       0,
       0,
       0,
       x.index({Slice(0, 3, 2), Slice(1, 4), Slice(0, 5, 3)})},
      {{0, 0, 0},
       {-1, -2, 100},
       {1, 1, 1},
       0,
       0,
       0,
       0,
       0,
       x.index({Slice(0, 2), Slice(0, 2), Slice()})},
      {{2, 3, 4},
       {0, 0, 0},
       {-1, -2, -3},
       0,
       2,
       0,
       0,
       0,
       x.flip({0}).slice(0, 0, 2).flip({1}).slice(1, 0, 4, 2).flip({2}).slice(2, 0, 4, 3)},
      {{9, 1, 9}, {9, 3, 9}, {1, 1, 1}, 5, 5, 0, 0, 0, x.slice(1, 1, 3)},
      {{1}, {2}, {1}, 0, 0, 0, 0, 1, x.select(0, 1)},
      {{-1, 2}, {0, 3}, {1, 1}, 0, 0, 0, 0, 3, x.select(0, 2).select(0, 2)},
      {{0, 1}, {0, 3}, {1, 1}, 0, 0, 1, 0, 0, x.slice(2, 1, 3)},
      {{0, 0, 1},
       {0, 2, 3},
       {1, 1, 1},
       0,
       0,
       0,
       1,
       0,
       x.slice(0, 0, 2).slice(1, 1, 3).unsqueeze(0)},
      {{2, 0, 0}, {1, 4, 5}, {1, 1, 1}, 0, 0, 0, 0, 0, x.slice(0, 2, 2)},
      {{INT64_MIN, 0, 0}, {INT64_MAX, 4, 5}, {INT64_MAX, 1, 1}, 0, 0, 0, 0, 0, x.slice(0, 0, 1)},
  };
  for (const StridedCase& each : kCases) {
    const Tensor out = Marked(each.expected.sizes());
    NamedCall call("StridedSlice");
    call.In(x).Host(each.begin).Host(each.end).Host(each.strides).Out(out);
    call.Set("begin_mask", each.begin_mask).Set("end_mask", each.end_mask);
    call.Set("ellipsis_mask", each.ellipsis_mask).Set("new_axis_mask", each.new_axis_mask);
    call.Set("shrink_axis_mask", each.shrink_axis_mask);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << each.expected.sizes() << TakeMessage();
    EXPECT_TRUE(SameBits(out, each.expected.contiguous()));
  }
}

TEST(ViewsByName, AStridedSliceWithoutASenseIsRefused) {
  const Tensor x = Counting({3, 4});
  {
    NamedCall call("StridedSlice");
    call.In(x).Host({0, 0}).Host({3, 4}).Host({0, 1}).Out(Marked({3, 4}));
    ExpectRefused(call, "strides has 0 in place 0");
  }
  {
    NamedCall call("StridedSlice");
    call.In(x).Host({0, 0, 0}).Host({3, 4, 1}).Host({1, 1, 1}).Out(Marked({3, 4}));
    ExpectRefused(call, "begin names 3 dims and 0 ellipses; the input has 2 dims");
  }
  {
    NamedCall call("StridedSlice");
    call.In(x).Host({5, 0}).Host({6, 4}).Host({1, 1}).Out(Marked({4}));
    call.Set("shrink_axis_mask", int64_t{1});
    ExpectRefused(call, "element 5 is outside of dim 0, which has 3");
  }
  {
    NamedCall call("StridedSlice");
    call.In(x).Host({0, 0}).Host({2, 4}).Host({1, 1}).Out(Marked({3, 4}));
    ExpectRefused(call, "output 0 has the shape [3, 4], expected [2, 4]");
  }
}

TEST(ViewsByName, DimsArePermuted) {
  const Tensor x = Counting({2, 3, 4}, at::kInt);
  const Tensor out = Marked({4, 2, 3}, at::kInt);
  NamedCall call("Transpose");
  call.In(x).Host({2, 0, -2}).Out(out);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, x.permute({2, 0, 1}).contiguous()));
  for (const std::vector<int64_t>& order : {std::vector<int64_t>{0, 1}, {0, 1, 1}, {0, 1, 3}}) {
    NamedCall wrong("Transpose");
    wrong.In(x).Host(order).Out(out);
    ExpectRefused(wrong, "is no order of 3 dims");
  }
}

TEST(ViewsByName, ATranspositionComesBeforeOrAfterAChangeOfTheShape) {
  const Tensor x = Counting({2, 3, 4});
  {
    const Tensor out = Marked({4, 6});
    NamedCall call("ConfusionTransposeD");
    call.In(x).Out(out).Set("perm", std::vector<int64_t>{2, 0, 1});
    call.Set("shape", std::vector<int64_t>{4, 6}).Set("transpose_first", true);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(out, x.permute({2, 0, 1}).reshape({4, 6})));
  }
  {
    const Tensor out = Marked({4, 6});
    NamedCall call("ConfusionTransposeD");
    call.In(x).Out(out).Set("perm", std::vector<int64_t>{1, 0});
    call.Set("shape", std::vector<int64_t>{6, 4}).Set("transpose_first", false);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(out, x.reshape({6, 4}).t().contiguous()));
  }
  NamedCall wrong("ConfusionTransposeD");
  wrong.In(x).Out(Marked({4, 5})).Set("perm", std::vector<int64_t>{1, 0});
  wrong.Set("shape", std::vector<int64_t>{5, 4}).Set("transpose_first", false);
  ExpectRefused(wrong, "the shape [5, 4] has other elements than the input of shape [2, 3, 4]");
}

TEST(ViewsByName, ATensorIsRepeatedInDimsOfOneElement) {
  const Tensor x = Counting({3, 1}), out = Marked({2, 3, 4});
  NamedCall call("BroadcastTo");
  call.In(x).Host({2, 3, 4}).Out(out);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, x.expand({2, 3, 4}).contiguous()));
  const Tensor two = Marked({2});
  NamedCall scalar("BroadcastTo");
  scalar.In(at::scalar_tensor(9.0f)).Host({2}).Out(two);
  ASSERT_EQ(scalar.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(two, at::tensor({9.0f, 9.0f})));
  NamedCall wrong("BroadcastTo");
  wrong.In(x).Host({2, 4, 4}).Out(Marked({2, 4, 4}));
  ExpectRefused(wrong, "a tensor of shape [3, 1] is not broadcast to [2, 4, 4]");
}

TEST(ViewsByName, AMarginHasZerosOrTheValueThatIsGiven) {
  const Tensor x = Counting({2, 3}, at::kHalf);
  {
    const Tensor out = Marked({4, 6}, at::kHalf);
    NamedCall call("Pad");
    call.In(x).Host({2, 0, 1, 2}).Out(out);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(out, at::constant_pad_nd(x, {1, 2, 2, 0})));
  }
  {
    const Tensor out = Marked({3, 3}, at::kHalf);
    NamedCall call("PadV3");
    call.In(x).Host({0, 1, 0, 0}).Host(at::scalar_tensor(2.5, at::kHalf)).Out(out);
    call.Set("mode", "constant");
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(out, at::constant_pad_nd(x, {0, 0, 0, 1}, 2.5)));
  }
  {
    const Tensor out = Marked({2, 3}, at::kHalf);
    NamedCall call("Pad");
    call.In(at::empty({0, 3}, at::kHalf)).Host({1, 1, 0, 0}).Out(out);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(out, at::zeros({2, 3}, at::kHalf)));
  }
  {
    NamedCall call("Pad");
    call.In(x).Host({-1, 0, 0, 0}).Out(Marked({1, 3}, at::kHalf));
    ExpectRefused(call, "paddings [-1, 0, 0, 0] has a number that is negative or too large");
  }
  {
    NamedCall call("PadV3");
    call.In(x).Host({0, 1, 0, 0}).Out(Marked({3, 3}, at::kHalf)).Set("mode", "reflect");
    ExpectRefused(call, "the soft device pads with a constant alone");
  }
}

TEST(ViewsByName, AViewOfMemoryHasStridesOfItsOwn) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong, at::kBool}) {
    const Tensor x = Counting({4, 6}).to(dtype), out = Marked({3, 2, 2}).to(dtype);
    NamedCall call("AsStrided");
    call.In(x).Host({3, 2, 2}).Host({1, 7, 0}).Host({5}).Out(out);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    const Tensor row = x.view({-1}), wanted = at::empty({3, 2, 2}, dtype);
    for (int64_t i = 0; i < 12; ++i) {
      wanted.view({-1})[i] = row[5 + i / 4 + 7 * (i / 2 % 2)];
    }
    EXPECT_TRUE(SameBits(out, wanted));
  }
  // The memory may be greater than the tensor that is described.
  const Tensor x = Counting({4, 6}), out = Marked({2});
  NamedCall beyond("AsStrided");
  beyond.In(x.narrow(0, 0, 1)).InputOf(x.nbytes()).Host({2}).Host({23});
  beyond.Host(at::scalar_tensor(0, at::kLong)).Out(out);
  ASSERT_EQ(beyond.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, at::tensor({x[0][0].item<float>(), x[3][5].item<float>()})));
  const Tensor one = at::scalar_tensor(0.0f);
  NamedCall scalar("AsStrided");
  scalar.In(x).Host(std::vector<int64_t>{}).Host(std::vector<int64_t>{}).Host({7}).Out(one);
  ASSERT_EQ(scalar.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(one.item<float>(), x[1][1].item<float>());
  NamedCall none("AsStrided");
  none.In(x).Host({0, 3}).Host({1, 1}).Host({99}).Out(Marked({0, 3}));
  EXPECT_EQ(none.Run(), ACL_SUCCESS) << TakeMessage();
}

TEST(ViewsByName, DimsInTheReverseOrderAndAMarginOfTheDevice) {
  const Tensor x = Counting({2, 3}), out = Marked({2, 3}), wanted = at::empty({2, 3});
  for (int64_t i = 0; i < 6; ++i) wanted[i / 3][i % 3] = x[i / 3][2 - i % 3];
  NamedCall call("ReverseV2");
  ASSERT_EQ(call.In(x).Host({-1}).Out(out).Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, wanted));
  NamedCall wrong("ReverseV2");
  wrong.In(x).Host({2}).Out(out);
  ExpectRefused(wrong, "axis [2] has no dims of a tensor of shape [2, 3]");
  const Tensor padded = Marked({2, 4});
  NamedCall pad("PadV3");
  pad.In(x).Host({0, 0, 1, 0}).In(at::tensor({5.0f})).Out(padded).Set("mode", "constant");
  ASSERT_EQ(pad.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(padded, at::cat({at::full({2, 1}, 5.0f), x}, 1)));
}

TEST(ViewsByName, AViewThatLeavesTheMemoryIsRefused) {
  const Tensor x = Counting({4, 6});
  const auto refuse = [&](const std::vector<int64_t>& size, const std::vector<int64_t>& stride,
                          int64_t offset, const char* part) {
    NamedCall call("AsStrided");
    call.In(x).Host(size).Host(stride).Host({offset}).Out(Marked({2}));
    ExpectRefused(call, part);
  };
  refuse({2}, {24}, 0, "leaves the memory of 24 elements");
  refuse({2}, {1}, -1, "from element -1 on leaves the memory");
  refuse({2}, {-1}, 4, "the strides [-1]");
  refuse({2}, {INT64_MAX}, 4, "leaves the memory");
  refuse({2}, {1, 1}, 0, "stride has 2 numbers, expected 1");
  refuse({3}, {1}, 0, "output 0 has the shape [2], expected [3]");
  NamedCall other("AsStrided");
  other.In(x).Host({2}).Host({1}).Host({0}).Out(Marked({2}, at::kHalf));
  ExpectRefused(other, "the soft device takes one type");
}

TEST(ViewsByName, AMatrixInBlocksHasPartsToo) {
  // 3 rows and 20 columns of float32 lie in three blocks of 16 rows and 8 columns.
  const Tensor plain = Counting({3, 20});
  const Tensor blocks = at::zeros({3, 1, 16, 8});
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 20; ++column) {
      blocks[column / 8][0][row][column % 8] = plain[row][column];
    }
  }
  const int64_t shape[] = {3, 20}, storage[] = {3, 1, 16, 8}, two[] = {2}, part[] = {2, 11};
  int64_t offsets[] = {1, 7}, sizes[] = {2, 11};
  const Tensor out = Marked({2, 11});
  aclTensorDesc* descs[] = {aclCreateTensorDesc(ACL_FLOAT, 2, shape, ACL_FORMAT_ND),
                            aclCreateTensorDesc(ACL_INT64, 1, two, ACL_FORMAT_ND),
                            aclCreateTensorDesc(ACL_INT64, 1, two, ACL_FORMAT_ND),
                            aclCreateTensorDesc(ACL_FLOAT, 2, part, ACL_FORMAT_ND)};
  aclSetTensorFormat(descs[0], ACL_FORMAT_FRACTAL_NZ);
  aclSetTensorShape(descs[0], 4, storage);
  aclSetTensorPlaceMent(descs[1], ACL_MEMTYPE_HOST);
  aclSetTensorPlaceMent(descs[2], ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT);
  aclDataBuffer* buffers[] = {aclCreateDataBuffer(blocks.data_ptr(), blocks.nbytes()),
                              aclCreateDataBuffer(offsets, sizeof(offsets)),
                              aclCreateDataBuffer(sizes, sizeof(sizes)),
                              aclCreateDataBuffer(out.data_ptr(), out.nbytes())};
  const aclrtStream stream = TestStream();
  ASSERT_EQ(aclopCompileAndExecuteV2("Slice", 3, descs, buffers, 1, descs + 3, buffers + 3, nullptr,
                                     ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, stream),
            ACL_SUCCESS)
      << TakeMessage();
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_TRUE(SameBits(out, plain.slice(0, 1).slice(1, 7, 18).contiguous()));
  for (aclTensorDesc* desc : descs) aclDestroyTensorDesc(desc);
  for (aclDataBuffer* buffer : buffers) aclDestroyDataBuffer(buffer);
}

TEST(FillsByName, ATensorGetsOneValue) {
  {
    const Tensor out = Marked({2, 3}, at::kLong);
    const int64_t large = (int64_t{1} << 53) + 1;  // no double has it
    NamedCall call("Fill");
    call.Host({2, 3}).Host(at::scalar_tensor(large, at::kLong)).Out(out);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(out, at::full({2, 3}, large, at::kLong)));
  }
  {
    const Tensor out = at::scalar_tensor(0.0f);
    NamedCall call("Fill");
    call.Host({1}).In(at::scalar_tensor(1.5f)).Out(out);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_EQ(out.item<float>(), 1.5f);
  }
  {
    NamedCall call("Fill");
    call.Host({3, 2}).Host(at::scalar_tensor(1.0f)).Out(Marked({2, 3}));
    ExpectRefused(call, "output 0 has the shape [2, 3], expected [3, 2]");
  }
  {
    NamedCall call("Fill");
    call.Host({0, 2}).Host(at::scalar_tensor(1.0f)).Out(Marked({0, 2}));
    EXPECT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  }
  const struct {
    const char* name;
    float value;
  } kCalls[] = {{"ZerosLike", 0}, {"OnesLike", 1}, {"Fills", 2.25f}};
  for (const auto& each : kCalls) {
    const Tensor out = Marked({5});
    NamedCall call(each.name);
    call.In(out).Out(out).Set("value", 2.25f);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(out, at::full({5}, each.value)));
  }
}

TEST(FillsByName, IndicesBecomeOneHotTensors) {
  const Tensor index = at::tensor({2, 0, 5, -1}, at::kInt).view({2, 2});
  const Tensor expected = at::full({2, 2, 3}, -1.0f);
  expected[0][0][2] = 4;
  expected[0][1][0] = 4;
  for (int64_t axis : {-1, 2, 0}) {
    const Tensor wanted = axis == 0 ? expected.permute({2, 0, 1}).contiguous() : expected;
    const Tensor out = Marked(wanted.sizes());
    NamedCall call("OneHotD");
    call.In(index).In(at::tensor({4.0f})).In(at::tensor({-1.0f})).Out(out);
    call.Set("axis", axis).Set("depth", int64_t{3});
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(out, wanted));
  }
  const Tensor out = Marked({2, 2, 3}, at::kLong);
  NamedCall call("OneHot");
  call.In(index.to(at::kLong)).Host(at::scalar_tensor(3, at::kInt));
  call.Host(at::scalar_tensor(1, at::kLong)).Host(at::scalar_tensor(0, at::kLong)).Out(out);
  call.Set("axis", int64_t{-1});
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, expected.eq(4).to(at::kLong)));
  NamedCall wrong("OneHotD");
  wrong.In(index).In(at::tensor({4.0f})).In(at::tensor({-1.0f})).Out(out);
  wrong.Set("axis", int64_t{4}).Set("depth", int64_t{3});
  ExpectRefused(wrong, "depth 3 in axis 4 is no dim of a result of 3 dims");
}

}  // namespace
}  // namespace acltape::opapi
