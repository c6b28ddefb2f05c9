// Products of experts on quantised rows, and feed-forward layers: weights of int4 and in blocks,
// scales of uint64, and what phase one refuses. The grid has their numbers.
#include <dlfcn.h>

#include <cmath>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

Tensor ExpertBytes(at::IntArrayRef sizes) {
  return Random(sizes, at::kFloat, -100, 100).round().to(at::kChar);
}
Tensor ExpertNibbles(at::IntArrayRef sizes) {
  return Random(sizes, at::kFloat, -8.49, 7.49).round().to(at::kChar);
}
Tensor ExpertScales(at::IntArrayRef sizes) { return Random(sizes, at::kFloat, 0.001, 0.01); }

// Eight integers of 4 bits in an int32 along the last dim.
Tensor ExpertWords(const Tensor& integers) {
  Ints sizes = integers.sizes().vec();
  sizes.back() /= 8;
  const Tensor words = at::zeros(sizes, at::kInt), dense = integers.contiguous();
  for (int64_t i = 0; i < dense.numel(); ++i) {
    const auto bits = static_cast<uint32_t>(dense.data_ptr<int8_t>()[i] & 15) << (4 * (i % 8));
    auto& word = words.data_ptr<int32_t>()[i / 8];
    word = static_cast<int32_t>(static_cast<uint32_t>(word) | bits);
  }
  return words;
}

// Matrices in blocks of 16 rows and `columns` columns, by the dims of their storage.
Tensor ExpertBlocks(const Tensor& dense, int64_t columns) {
  const int64_t count = dense.size(0), rows = dense.size(1), width = dense.size(2);
  return dense.view({count, rows / 16, 16, width / columns, columns})
      .permute({0, 3, 1, 2, 4})
      .contiguous();
}

aclTensor* HandleOf(const Tensor& memory, aclDataType dtype, aclFormat format, const Ints& sizes) {
  Ints strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return aclCreateTensor(sizes.data(), sizes.size(), dtype, strides.data(), 0, format, sizes.data(),
                         sizes.size(), memory.data_ptr());
}

// Runs a call whose argument `position` is this handle or list of handles.
template <typename Handle>
int RunWithHandle(const char* name, const Args& args, int position, Handle* handle) {
  TestStream();
  PackedCall call(name, args);
  std::vector<acl::ArgValue> values(call.values(), call.values() + call.op().arg_count);
  values[position] = acl::Pack(handle);
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  int status = call.op().prepare(dlsym(RTLD_DEFAULT, std::string(call.op().workspace_name).c_str()),
                                 values.data(), &bytes, &executor);
  if (status != 0) return status;
  std::vector<char> workspace(bytes);
  status = call.op().launch(dlsym(RTLD_DEFAULT, name), values.data(),
                            bytes == 0 ? nullptr : workspace.data(), bytes, executor, TestStream());
  return status != 0 ? status : aclrtSynchronizeStream(TestStream());
}

// The message of a call that is refused when argument `position` has this value.
std::string RefusedProduct(const char* name, Args args, int position, Arg value) {
  args[position] = std::move(value);
  EXPECT_EQ(RunOperator(name, args), kReject) << name << " " << position;
  return LastMessage();
}

// --- aclnnGroupedMatmulSwigluQuant and its versions

constexpr int64_t kGatedExperts = 2, kGatedInner = 32, kGatedColumns = 64;

Args GatedCall(Arg weight, const Tensor& scale, Arg assist) {
  return {ExpertBytes({5, kGatedInner}),
          std::move(weight),
          std::move(assist),
          Null{},
          scale,
          ExpertScales({5}),
          at::tensor({2, 5}, at::kLong),
          at::empty({5, kGatedColumns / 2}, at::kChar),
          at::empty({5}),
          Null{}};
}

Args GatedCallV2(Arg weight, const Tensor& scale, Arg assist, const Tensor& x) {
  return {x,
          std::move(weight),
          Tensors{scale},
          std::move(assist),
          Null{},
          ExpertScales({5}),
          Null{},
          at::tensor({2, 5}, at::kLong),
          int64_t{0},
          int64_t{0},
          int64_t{0},
          int64_t{0},
          Null{},
          at::empty({5, kGatedColumns / 2}, at::kChar),
          at::empty({5})};
}

Tensor ScaleWords(at::IntArrayRef sizes) {
  const Tensor bits = Random(sizes, at::kFloat, 0.01, 0.1).to(at::kBFloat16).to(at::kFloat);
  return bits.contiguous().view(at::kInt).to(at::kLong);
}

TEST(ExpertProducts, AWeightInBlocksGivesWhatAPlainOneDoes) {
  const Tensor weight = ExpertBytes({kGatedExperts, kGatedInner, kGatedColumns});
  const Args args = GatedCall(weight, ExpertScales({kGatedExperts, kGatedColumns}), Null{});
  ASSERT_EQ(RunOperator("aclnnGroupedMatmulSwigluQuantWeightNZ", args), 0) << LastMessage();
  const Tensor out = std::get<Tensor>(args[7]), scale = std::get<Tensor>(args[8]);
  const Tensor plain = out.clone(), plain_scale = scale.clone();
  EXPECT_GT(plain.abs().max().item<int>(), 100);
  const Tensor blocks = ExpertBlocks(weight, 32);
  for (const Ints& sizes :
       {Ints{kGatedExperts, kGatedInner, kGatedColumns}, blocks.sizes().vec()}) {
    out.fill_(1);
    const Ints storage = blocks.sizes().vec();
    Ints strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
    aclTensor* handle =
        aclCreateTensor(sizes.data(), sizes.size(), ACL_INT8, strides.data(), 0,
                        ACL_FORMAT_FRACTAL_NZ, storage.data(), storage.size(), blocks.data_ptr());
    ASSERT_EQ(RunWithHandle("aclnnGroupedMatmulSwigluQuantWeightNZ", args, 1, handle), 0)
        << TakeMessage();
    aclDestroyTensor(handle);
    EXPECT_TRUE(SameBits(out, plain));
    EXPECT_TRUE(SameBits(scale, plain_scale));
  }
}

TEST(ExpertProducts, WordsOfFourBitsMayLieInBlocks) {
  const Tensor nibbles = ExpertNibbles({kGatedExperts, kGatedInner, kGatedColumns}),
               words = ExpertWords(nibbles);
  const Tensor assist = Random({kGatedExperts, kGatedColumns}, at::kFloat, -5, 5);
  const Args args = GatedCallV2(Tensors{words}, ScaleWords({kGatedExperts, kGatedColumns}),
                                Tensors{assist}, ExpertBytes({5, kGatedInner}));
  const char* const name = "aclnnGroupedMatmulSwigluQuantWeightNzV2";
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
  const Tensor out = std::get<Tensor>(args[13]), plain = out.clone();
  out.fill_(1);
  // A block of 16 rows has 64 columns of 4 bits, which are 8 words.
  const Tensor blocks = ExpertWords(ExpertBlocks(nibbles, 64));
  aclTensor* member = HandleOf(blocks, ACL_INT32, ACL_FORMAT_FRACTAL_NZ,
                               {kGatedExperts, 1, kGatedInner / 16, 16, 8});
  aclTensorList* list = aclCreateTensorList(&member, 1);
  ASSERT_EQ(RunWithHandle(name, args, 1, list), 0) << TakeMessage();
  aclDestroyTensorList(list);
  EXPECT_TRUE(SameBits(out, plain));
}

TEST(ExpertProducts, AWeightOfInt4IsTheSameAsItsWords) {
  const Tensor nibbles = ExpertNibbles({kGatedExperts, kGatedInner, kGatedColumns}),
               words = ExpertWords(nibbles);
  const Args args = GatedCall(words, ScaleWords({kGatedExperts, kGatedColumns}),
                              Random({kGatedExperts, kGatedColumns}, at::kFloat, -5, 5));
  ASSERT_EQ(RunOperator("aclnnGroupedMatmulSwigluQuant", args), 0) << LastMessage();
  const Tensor out = std::get<Tensor>(args[7]), plain = out.clone();
  out.fill_(1);
  aclTensor* handle =
      HandleOf(words, ACL_INT4, ACL_FORMAT_ND, {kGatedExperts, kGatedInner, kGatedColumns});
  ASSERT_EQ(RunWithHandle("aclnnGroupedMatmulSwigluQuant", args, 1, handle), 0) << TakeMessage();
  aclDestroyTensor(handle);
  EXPECT_TRUE(SameBits(out, plain));
}

TEST(ExpertProducts, ScalesMayBeOfUint64) {
  const Tensor words = ExpertWords(ExpertNibbles({kGatedExperts, kGatedInner, kGatedColumns}));
  const Tensor scale = ScaleWords({kGatedExperts, kGatedColumns});
  const Args args = GatedCallV2(Tensors{words}, scale,
                                Tensors{Random({kGatedExperts, kGatedColumns}, at::kFloat, -5, 5)},
                                ExpertBytes({5, kGatedInner}));
  const char* const name = "aclnnGroupedMatmulSwigluQuantV2";
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
  const Tensor out = std::get<Tensor>(args[13]), plain = out.clone();
  out.fill_(1);
  aclTensor* member = HandleOf(scale, ACL_UINT64, ACL_FORMAT_ND, {kGatedExperts, kGatedColumns});
  aclTensorList* list = aclCreateTensorList(&member, 1);
  ASSERT_EQ(RunWithHandle(name, args, 2, list), 0) << TakeMessage();
  aclDestroyTensorList(list);
  EXPECT_TRUE(SameBits(out, plain));
}

TEST(ExpertProducts, WhatTheGatedOnesRefuse) {
  const std::string first = "aclnnGroupedMatmulSwigluQuant: ";
  const Args plain = GatedCall(ExpertBytes({kGatedExperts, kGatedInner, kGatedColumns}),
                               ExpertScales({kGatedExperts, kGatedColumns}), Null{});
  const char* name = "aclnnGroupedMatmulSwigluQuant";
  EXPECT_EQ(RefusedProduct(name, plain, 2, at::ones({kGatedExperts, kGatedColumns})),
            first + "bias is given, but only x of int8 with a weight of 4 bits has it.");
  EXPECT_EQ(RefusedProduct(name, plain, 3, at::ones({kGatedExperts})),
            first + "offset is given, which the soft device lacks.");
  EXPECT_EQ(RefusedProduct(name, plain, 9, at::ones({5})),
            first + "outputOffset is given, which the soft device lacks.");
  EXPECT_EQ(RefusedProduct(name, plain, 1, ExpertBytes({kGatedExperts, kGatedInner, 63})),
            first + "weight has no matrices with pairs of columns.");
  EXPECT_EQ(RefusedProduct(name, plain, 1, ExpertBytes({kGatedExperts, 31, kGatedColumns})),
            first + "weight has another number of rows than x has columns.");
  EXPECT_EQ(RefusedProduct(name, plain, 6, at::tensor({2, 5}, at::kInt)),
            first + "groupList is not of dtype int64.");
  EXPECT_EQ(RefusedProduct(name, plain, 0, Random({5, kGatedInner})),
            first + "x is none of int4, int8 and int32, which packs eight integers of 4 bits.");
  name = "aclnnGroupedMatmulSwigluQuantWeightNzV2";
  const std::string second = std::string(name) + ": ";
  const Args later = GatedCallV2(Tensors{ExpertBytes({kGatedExperts, kGatedInner, kGatedColumns})},
                                 ExpertScales({kGatedExperts, kGatedColumns}), Null{},
                                 ExpertBytes({5, kGatedInner}));
  ASSERT_EQ(RunOperator(name, later), 0) << LastMessage();
  EXPECT_EQ(RefusedProduct(name, later, 4, at::ones({5})),
            second + "bias is given, which the soft device lacks.");
  EXPECT_EQ(RefusedProduct(name, later, 6, at::ones({kGatedExperts})),
            second + "smoothScale is given, but x is not of 4 bits.");
  EXPECT_EQ(RefusedProduct(name, later, 8, int64_t{1}),
            second + "dequantMode must be 0 for a weight of int8.");
  EXPECT_EQ(RefusedProduct(name, later, 8, int64_t{2}),
            second + "dequantMode must be 0 (columns) or 1 (groups).");
  EXPECT_EQ(RefusedProduct(name, later, 9, int64_t{2}),
            second + "dequantDtype must be 0, 1, 27 or 28.");
  EXPECT_EQ(RefusedProduct(name, later, 10, int64_t{1}),
            second + "quantMode must be 0 (a scale for each row).");
  EXPECT_EQ(RefusedProduct(name, later, 11, int64_t{2}),
            second + "groupListType must be 0 (ends of groups) or 1 (their lengths).");
  EXPECT_EQ(RefusedProduct(name, later, 12, Ints{4}),
            second + "tuningConfigOptional is given, but x is not of 4 bits.");
  const Args words = GatedCallV2(
      Tensors{ExpertWords(ExpertNibbles({kGatedExperts, kGatedInner, kGatedColumns}))},
      ScaleWords({kGatedExperts, kGatedColumns}), Null{}, ExpertBytes({5, kGatedInner}));
  EXPECT_EQ(RefusedProduct(name, words, 3, Null{}),
            second +
                "weightAssistMatrix is absent, and x of int8 with a weight of 4 bits needs "
                "it.");
}

TEST(ExpertProducts, GroupsThatLeaveTheRowsFailTheTask) {
  Args args = GatedCall(ExpertBytes({kGatedExperts, kGatedInner, kGatedColumns}),
                        ExpertScales({kGatedExperts, kGatedColumns}), Null{});
  constexpr int kTaskFailed = 507015;
  for (const Ints& ends : {Ints{2, 6}, Ints{3, 2}, Ints{-1, 5}}) {
    args[6] = at::tensor(ends, at::kLong);
    EXPECT_EQ(RunOperator("aclnnGroupedMatmulSwigluQuant", args), kTaskFailed);
  }
}

// --- aclnnGroupedMatmulFinalizeRouting and its versions

Args FinalizedCallNz() {
  return {ExpertBytes({5, kGatedInner}),
          ExpertBytes({kGatedExperts, kGatedInner, kGatedColumns}),
          ExpertScales({kGatedExperts, kGatedColumns}),
          Null{},
          ExpertScales({5}),
          at::tensor({2, 5}, at::kLong),
          Random({2, kGatedColumns}, at::kBFloat16),
          Random({5}),
          at::tensor({0, 2, 1, 0, 2}, at::kLong),
          int64_t{0},
          0.5,
          int64_t{1},
          false,
          false,
          int64_t{0},
          at::empty({3, kGatedColumns})};
}

TEST(ExpertProducts, AFinalWeightInBlocksGivesWhatAPlainOneDoes) {
  const Args args = FinalizedCallNz();
  const char* const name = "aclnnGroupedMatmulFinalizeRoutingWeightNz";
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
  const Tensor out = std::get<Tensor>(args[15]), plain = out.clone();
  out.fill_(1);
  const Tensor blocks = ExpertBlocks(std::get<Tensor>(args[1]), 32);
  aclTensor* handle = HandleOf(blocks, ACL_INT8, ACL_FORMAT_FRACTAL_NZ, blocks.sizes().vec());
  ASSERT_EQ(RunWithHandle(name, args, 1, handle), 0) << TakeMessage();
  aclDestroyTensor(handle);
  EXPECT_TRUE(SameBits(out, plain));
}

TEST(ExpertProducts, WhatTheFinalOnesRefuse) {
  const char* const name = "aclnnGroupedMatmulFinalizeRoutingWeightNz";
  const std::string says = std::string(name) + ": ";
  const Args args = FinalizedCallNz();
  EXPECT_EQ(RefusedProduct(name, args, 3, at::ones({kGatedExperts, kGatedColumns})),
            says + "bias is given, which the soft device lacks.");
  EXPECT_EQ(RefusedProduct(name, args, 7, Null{}), says + "sharedInput is given without logit.");
  EXPECT_EQ(RefusedProduct(name, args, 9, int64_t{1}), says + "dtype must be 0 (float32).");
  EXPECT_EQ(RefusedProduct(name, args, 11, int64_t{2}),
            says + "sharedInputOffset does not leave sharedInput within the output's rows.");
  EXPECT_EQ(RefusedProduct(name, args, 12, true), says + "transposeX1 must be false.");
  EXPECT_EQ(RefusedProduct(name, args, 13, true), says + "transposeX2 must be false.");
  EXPECT_EQ(RefusedProduct(name, args, 14, int64_t{2}),
            says + "groupListType must be 0 (ends of groups) or 1 (their lengths).");
  EXPECT_EQ(RefusedProduct(name, args, 1,
                           ExpertWords(ExpertNibbles({kGatedExperts, kGatedInner, kGatedColumns}))),
            says + "x2 must be of dtype int8.");
  Args first = args;
  first[6] = Null{};
  EXPECT_EQ(RefusedProduct("aclnnGroupedMatmulFinalizeRouting", first, 14, int64_t{0}),
            "aclnnGroupedMatmulFinalizeRouting: w must be of integers of 4 bits.");
  constexpr int kTaskFailed = 507015;
  first[8] = at::tensor({0, 3, 1, 0, 2}, at::kLong);
  EXPECT_EQ(RunOperator(name, first), kTaskFailed);
}

// --- aclnnFFN and its versions

Args FeedForwardCall(at::ScalarType dtype) {
  return {Random({3, 8}, dtype),
          Random({8, 6}, dtype),
          Random({6, 8}, dtype),
          Null{},
          Null{},
          Null{},
          Null{},
          Null{},
          Null{},
          Null{},
          Null{},
          Null{},
          Null{},
          Null{},
          "gelu",
          int64_t{0},
          at::empty({3, 8}, dtype)};
}

TEST(FeedForward, WhatPhaseOneRefuses) {
  const std::string says = "aclnnFFN: ";
  const Args args = FeedForwardCall(at::kHalf);
  ASSERT_EQ(RunOperator("aclnnFFN", args), 0) << LastMessage();
  EXPECT_NE(RefusedProduct("aclnnFFN", args, 14, "tanh").find(says + "activation must be"),
            std::string::npos);
  EXPECT_EQ(RefusedProduct("aclnnFFN", args, 15, int64_t{2}),
            says + "innerPrecise must be 0 or 1.");
  EXPECT_EQ(RefusedProduct("aclnnFFN", FeedForwardCall(at::kBFloat16), 15, int64_t{1}),
            says + "innerPrecise must be 0 for bfloat16.");
  EXPECT_EQ(RefusedProduct("aclnnFFN", args, 1, Random({7, 6}, at::kHalf)),
            says + "weight1 has another number of rows than x has columns.");
  EXPECT_EQ(RefusedProduct("aclnnFFN", args, 2, Random({6, 7}, at::kHalf)),
            says + "weight2 has another number of columns than x.");
  EXPECT_EQ(RefusedProduct("aclnnFFN", args, 3, Ints{1, 2}), says + "weight1 has not 3 dims.");
  Args experts = args;
  experts[1] = Random({2, 8, 6}, at::kHalf);
  experts[2] = Random({2, 6, 8}, at::kHalf);
  EXPECT_EQ(RefusedProduct("aclnnFFN", experts, 3, Ints{1, 1}),
            says + "expertTokens leaves rows of x without an expert.");
  EXPECT_EQ(RefusedProduct("aclnnFFN", experts, 3, Ints{-1, 4}),
            says + "expertTokens does not cut the rows of x into groups.");
  EXPECT_EQ(RefusedProduct("aclnnFFN", experts, 3, Ints{1, 1, 1}),
            says + "weight1 has not one matrix for each expert.");
  Args quantised = args;
  quantised[0] = ExpertBytes({3, 8});
  quantised[1] = ExpertBytes({8, 6});
  quantised[2] = ExpertBytes({6, 8});
  EXPECT_EQ(RefusedProduct("aclnnFFN", quantised, 6, Null{}),
            says + "deqScale1 is absent, and this kind of quantisation needs it.");
}

}  // namespace
}  // namespace acltape::opapi
