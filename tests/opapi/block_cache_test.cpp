// Operators around caches in blocks: arguments that they refuse, and values that fail their tasks.
// Their results are rows of the grid (grid/block_cache_rows.cpp).
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int kTaskFailed = 507015;

Tensor Numbered(std::vector<int64_t> values, at::ScalarType dtype = at::kInt) {
  return at::tensor(values, at::kLong).to(dtype);
}

void ExpectRejects(const char* name, const Args& args, const std::string& message) {
  EXPECT_EQ(RunOperator(name, args), kReject) << name;
  EXPECT_EQ(LastMessage(), std::string(name) + ": " + message);
}

// Two heads, two blocks of three rows; three tokens.
Args HeadsCall(std::vector<int64_t> slots, std::vector<int64_t> lengths,
               at::ScalarType dtype = at::kByte) {
  const Tensor cache = at::zeros({2, 2, 3, 4}, dtype);
  return {at::ones({6, 4}, dtype), cache, Numbered(std::move(slots)), Numbered(std::move(lengths)),
          cache};
}

TEST(HeadsBySlot, OnlyTheRowsOfTheSlotsAreWritten) {
  const Args args = HeadsCall({5, 1, 2}, {1, 2});
  ASSERT_EQ(RunOperator("aclnnReshapeAndCacheBnsd", args), 0) << LastMessage();
  const auto& cache = std::get<Tensor>(args[4]);
  const Tensor rows = cache.to(at::kInt).sum({1, 3}).flatten();
  EXPECT_TRUE(at::equal(rows.to(at::kInt), Numbered({0, 8, 8, 0, 0, 8})));
}

TEST(HeadsBySlot, SlotsOutsideOfTheCacheAndTokensWithoutOneFailTheTask) {
  for (const auto& slots : {std::vector<int64_t>{0, -1, 1}, {0, 6, 1}}) {
    EXPECT_EQ(RunOperator("aclnnReshapeAndCacheBnsd", HeadsCall(slots, {3})), kTaskFailed);
  }
  EXPECT_EQ(RunOperator("aclnnReshapeAndCacheBnsd", HeadsCall({0, 1}, {3})), kTaskFailed);
  EXPECT_EQ(RunOperator("aclnnReshapeAndCacheBnsd", HeadsCall({0, 1, 2, 3}, {4})), kTaskFailed);
  EXPECT_EQ(RunOperator("aclnnReshapeAndCacheBnsd", HeadsCall({0, 1, 2}, {-1})), kTaskFailed);
}

TEST(HeadsBySlot, OtherDtypesAndWidthsAreRefused) {
  ExpectRejects("aclnnReshapeAndCacheBnsd", HeadsCall({0, 1, 2}, {3}, at::kHalf),
                "keyIn has dtype Half, expected Byte.");
  Args args = HeadsCall({0, 1, 2}, {3});
  args[0] = at::ones({6, 5}, at::kByte);
  ExpectRejects("aclnnReshapeAndCacheBnsd", args, "keyIn has other columns than the cache.");
  args = HeadsCall({0, 1, 2}, {3});
  args[2] = Numbered({0, 1, 2}, at::kLong);
  ExpectRejects("aclnnReshapeAndCacheBnsd", args, "slotMapping has dtype Long, expected Int.");
}

Args RunsCall(std::vector<int64_t> lengths, std::vector<int64_t> from, std::vector<int64_t> to) {
  return {at::ones({5, 4}, at::kChar),  at::zeros({2, 3, 4}, at::kChar),
          Numbered(std::move(lengths)), Numbered(std::move(from)),
          Numbered(std::move(to)),      int64_t{3}};
}

TEST(RunsOfSlots, ARunOutsideOfKeysOrCacheOrLongerThanABlockFailsTheTask) {
  EXPECT_EQ(RunOperator("aclnnStoreKVBlock", RunsCall({2}, {3}, {4})), 0) << LastMessage();
  EXPECT_EQ(RunOperator("aclnnStoreKVBlock", RunsCall({2}, {4}, {0})), kTaskFailed);
  EXPECT_EQ(RunOperator("aclnnStoreKVBlock", RunsCall({2}, {0}, {5})), kTaskFailed);
  EXPECT_EQ(RunOperator("aclnnStoreKVBlock", RunsCall({4}, {0}, {0})), kTaskFailed);
}

TEST(RunsOfSlots, CachesThatHoldNoRowsOfKeysAreRefused) {
  Args args = RunsCall({1}, {0}, {0});
  args[1] = at::zeros({2, 3, 5}, at::kChar);
  ExpectRejects("aclnnStoreKVBlock", args, "keyCacheIn does not hold rows of keyIn.");
  args[1] = at::zeros({4, 3, 2}, at::kChar).transpose(1, 2);
  ExpectRejects("aclnnStoreKVBlock", args, "keyCacheIn is not dense.");
  args[1] = at::zeros({2, 3, 4}, at::kHalf);
  ExpectRejects("aclnnStoreKVBlock", args, "keyCacheIn has another dtype than keyIn.");
  args[0] = at::ones({5, 4});
  ExpectRejects("aclnnStoreKVBlock", args,
                "keyIn has dtype Float, expected Char or Half or BFloat16.");
}

TEST(RunsOfSlots, MoreRunsThanTheResultsHoldFailTheTask) {
  const auto run = [](int64_t room) {
    const Tensor out = at::ones({room}, at::kInt);
    return RunOperator("aclnnStoreKvBlockMetadata", {Numbered({0, 2, 4}), out, at::ones_like(out),
                                                     at::ones_like(out), int64_t{4}});
  };
  EXPECT_EQ(run(3), 0) << LastMessage();
  EXPECT_EQ(run(2), kTaskFailed);
}

TEST(BlocksInParts, WhatDoesNotDivideIsRefused) {
  const auto call = [](int64_t heads, int64_t width, int64_t parts, int64_t layers) {
    const std::vector<Tensor> caches = {at::zeros({2, 3, 4, 16}, at::kHalf)};
    return Args{caches, caches, Numbered({1}, at::kLong), int64_t{3}, heads, width, parts, layers};
  };
  const char* name = "aclnnTransposeKvCacheByBlock";
  ExpectRejects(name, call(4, 16, 3, 1), "headNum is not a multiple of splitNum.");
  ExpectRejects(name, call(4, 8, 2, 1), "headDim is not a multiple of 16.");
  ExpectRejects(name, call(4, 16, 2, 2), "kCache has not one tensor for each layer.");
  ExpectRejects(name, call(5, 16, 5, 1), "kCache does not hold blocks.");
  Args args = call(4, 16, 2, 1);
  args[2] = Numbered({2}, at::kLong);
  EXPECT_EQ(RunOperator(name, args), kTaskFailed);
}

TEST(RowsByIndex, StridesAndShapesThatDoNotFitAreRefused) {
  const auto call = [](const Tensor& var, std::vector<int64_t> strides) {
    return Args{var, Numbered({1}), at::ones({1, 4}), std::move(strides)};
  };
  const char* name = "aclnnScatterNdUpdateV2";
  ExpectRejects(name, call(at::zeros({3, 4}), {5, 1}), "strides are not those of varRef.");
  ExpectRejects(name, call(at::zeros({3, 4}), {}), "strides has too few entries.");
  ExpectRejects(name, call(at::zeros({4, 3}).t(), {1, 3}),
                "varRef is not dense after the dims that indices name.");
  ExpectRejects(name, call(at::zeros({3, 5}), {5, 1}), "updates has not one row for each index.");
  Args args = call(at::zeros({3, 4}, at::kHalf), {4, 1});
  ExpectRejects(name, args, "updates has another dtype than varRef.");
  args = call(at::zeros({3, 4}, at::kDouble), {4, 1});
  EXPECT_EQ(RunOperator(name, args), kReject);
}

TEST(CompressedRows, AttributesOutsideOfTheirRangeAreRefused) {
  const auto call = [](int64_t format, int64_t ratio, int64_t requests) {
    return Args{at::ones({8, 4}),
                at::ones({8, 4}),
                Numbered({0, 4}),
                Numbered({0}),
                Numbered({0}).reshape({1, 1}),
                int64_t{4},
                format,
                ratio,
                requests,
                at::ones({2, 4}),
                at::ones({2, 4}),
                at::zeros({2}, at::kInt)};
  };
  const char* name = "aclnnCompressorMetadata";
  EXPECT_EQ(RunOperator(name, call(1, 2, 1)), 0) << LastMessage();
  ExpectRejects(name, call(3, 2, 1),
                "slotMappingFormat must be 1 (slots) or 2 (blocks and places).");
  ExpectRejects(name, call(1, 0, 1), "cmpRatio must be at least 1.");
  ExpectRejects(name, call(1, 2, 2), "cuSeqlens has too few entries for actualNumReqs.");
  EXPECT_EQ(RunOperator(name, call(2, 2, 1)), kReject);
}

}  // namespace
}  // namespace acltape::opapi
