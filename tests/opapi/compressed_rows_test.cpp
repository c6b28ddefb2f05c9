// Compression of keys for native sparse attention, against its definition in double precision, one
// window at a time.
#include "tests/opapi/sparse_attention_calls.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using IntList = std::vector<int64_t>;

constexpr int64_t kRowWindow = 32, kRowStep = 16, kRowHeads = 3, kRowColumns = 16;
// Three sequences of 5, 55 and 48 rows: 0, 2 and 2 windows.
const IntList kRowEnds = {5, 60, 108};

// [windows, heads, width] of the sequences that end there.
Tensor WindowSums(const Tensor& input, const Tensor& weight, const IntList& ends) {
  std::vector<Tensor> windows;
  int64_t first = 0;
  for (int64_t end : ends) {
    for (int64_t begin = first; begin + kRowWindow <= end; begin += kRowStep) {
      windows.push_back((input.narrow(0, begin, kRowWindow) * weight.unsqueeze(-1)).sum(0));
    }
    first = end;
  }
  return at::stack(windows);
}

Named CompressCall(at::ScalarType dtype) {
  return {{"input", Random({kRowColumns, kRowHeads, 108}, dtype).permute({2, 1, 0})},
          {"weight", Random({kRowWindow, 2 * kRowHeads}, dtype).slice(1, 0, 2 * kRowHeads, 2)},
          {"actSeqLenOptional", kRowEnds},
          {"layoutOptional", "TND"},
          {"compressBlockSize", kRowWindow},
          {"compressStride", kRowStep},
          {"output", at::empty({4, kRowHeads, kRowColumns}, dtype)}};
}

TEST(CompressedWindows, CompressionAddsUpWeightedWindows) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    const Named named = CompressCall(dtype);
    ASSERT_EQ(RunNamed("aclnnNsaCompress", named), 0) << LastMessage();
    ExpectRounded(
        TensorOf(named, "output"),
        WindowSums(Wide(TensorOf(named, "input")), Wide(TensorOf(named, "weight")), kRowEnds),
        "output");
  }
}

Named CompressGradCall(at::ScalarType dtype) {
  return {{"outputGrad", Random({4, kRowHeads, kRowColumns}, dtype)},
          {"input", Random({108, kRowHeads, kRowColumns}, dtype)},
          {"weight", Random({kRowWindow, kRowHeads}, dtype)},
          {"actSeqLenOptionalOptional", IntList{0, 5, 60, 108}},
          {"compressBlockSize", kRowWindow},
          {"compressStride", kRowStep},
          {"layoutOptionalOptional", "TND"},
          {"inputGradOut", at::empty({kRowColumns, 108, kRowHeads}, dtype).permute({1, 2, 0})},
          {"weightGradOut", at::empty({kRowWindow, kRowHeads}, dtype)}};
}

TEST(CompressedWindows, GradientsOfCompressionReachAllRowsOfTheWindows) {
  const at::AutoGradMode enabled(true);
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    const Named named = CompressGradCall(dtype);
    const Tensor input = Wide(TensorOf(named, "input")).requires_grad_(true);
    const Tensor weight = Wide(TensorOf(named, "weight")).requires_grad_(true);
    WindowSums(input, weight, kRowEnds).backward(Wide(TensorOf(named, "outputGrad")));
    ASSERT_EQ(RunNamed("aclnnNsaCompressGrad", named), 0) << LastMessage();
    ExpectRounded(TensorOf(named, "inputGradOut"), input.grad(), "inputGrad");
    ExpectRounded(TensorOf(named, "weightGradOut"), weight.grad(), "weightGrad");
  }
}

// Three sequences of 48, 47 and 80 rows: the first and the third end with a window.
Named CacheCall(bool in_blocks) {
  Named named = {{"input", in_blocks ? Random({4, 64, 2, kRowColumns}, at::kHalf)
                                     : Random({200, 2, kRowColumns}, at::kHalf)},
                 {"weight", Random({kRowWindow, 2}, at::kHalf)},
                 {"slotMapping", Ids({4, 99, 1}, {3})},
                 {"actSeqLenOptional", IntList{48, 47, 80}},
                 {"layoutOptional", in_blocks ? Arg(Null{}) : Arg("TND")},
                 {"compressBlockSize", kRowWindow},
                 {"compressStride", kRowStep},
                 {"actSeqLenType", int64_t{1}},
                 {"pageBlockSize", int64_t{64}},
                 {"outputCache", Random({6, 2, kRowColumns}, at::kHalf)}};
  if (in_blocks) named["blockTableOptional"] = Ids({3, 0, 1, 1, 2, 0}, {3, 2});
  return named;
}

TEST(CompressedWindows, AStepPutsWholeWindowsIntoTheirSlots) {
  for (const bool in_blocks : {true, false}) {
    const Named named = CacheCall(in_blocks);
    const Tensor input = Wide(TensorOf(named, "input")), weight = Wide(TensorOf(named, "weight"));
    const Tensor cache = TensorOf(named, "outputCache"), expected = Wide(cache).clone();
    // The rows of the windows: 16 to 47 of the first sequence, 48 to 79 of the third.
    const Tensor first = in_blocks ? input[3].slice(0, 16, 48) : input.slice(0, 16, 48);
    const Tensor third = in_blocks ? at::cat({input[2].slice(0, 48, 64), input[0].slice(0, 0, 16)})
                                   : input.slice(0, 95 + 48, 95 + 80);
    expected[4].copy_((first * weight.unsqueeze(-1)).sum(0));
    expected[1].copy_((third * weight.unsqueeze(-1)).sum(0));
    ASSERT_EQ(RunNamed("aclnnNsaCompressWithCache", named), 0) << LastMessage();
    ExpectRounded(cache, expected, in_blocks ? "cache from blocks" : "cache from rows");
  }
}

TEST(CompressedWindows, CompressionRefusesWhatDoesNotFit) {
  const auto halves = [](at::IntArrayRef sizes) { return Random(sizes, at::kHalf); };
  ExpectChangesRefused(
      "aclnnNsaCompress", CompressCall(at::kHalf),
      {{{{"input", Random({108, kRowHeads, kRowColumns})}},
        "input has dtype Float, expected Half or BFloat16."},
       {{{"input", halves({108, kRowHeads, 8})}},
        "input must have a width that is a multiple of 16, at most 256."},
       {{{"input", halves({108, 129, 16})}}, "input has more than 128 heads."},
       {{{"weight", halves({kRowWindow, 2})}}, "weight has shape [32, 2], expected [32, 3]."},
       {{{"weight", Random({kRowWindow, kRowHeads}, at::kBFloat16)}},
        "weight has dtype BFloat16, expected Half."},
       {{{"actSeqLenOptional", Null{}}}, "actSeqLenOptional is absent."},
       {{{"actSeqLenOptional", IntList{60, 5, 108}}}, "actSeqLenOptional is not ascending."},
       {{{"actSeqLenOptional", IntList{5, 60}}},
        "actSeqLenOptional does not end with the 108 rows of input."},
       {{{"layoutOptional", "BSND"}}, "layoutOptional must be \"TND\"."},
       {{{"compressBlockSize", int64_t{24}}},
        "compressBlockSize must be a multiple of 16, at most 128."},
       {{{"compressStride", int64_t{48}}}, "compressStride is above compressBlockSize."},
       {{{"actSeqLenType", int64_t{1}}}, "actSeqLenType must be 0 (ends of the sequences)."},
       {{{"output", at::empty({3, kRowHeads, kRowColumns}, at::kHalf)}},
        "output has shape [3, 3, 16], expected [4, 3, 16]."}});
  ExpectChangesRefused(
      "aclnnNsaCompressGrad", CompressGradCall(at::kHalf),
      {{{{"actSeqLenOptionalOptional", kRowEnds}}, "actSeqLenOptionalOptional must begin with 0."},
       {{{"compressStride", kRowWindow}}, "compressStride must be below compressBlockSize."},
       {{{"outputGrad", halves({5, kRowHeads, kRowColumns})}},
        "outputGrad has shape [5, 3, 16], expected [4, 3, 16]."},
       {{{"weightGradOut", at::empty({kRowWindow, kRowHeads})}},
        "weightGradOut has dtype Float, expected Half."}});
  ExpectChangesRefused(
      "aclnnNsaCompressWithCache", CacheCall(true),
      {{{{"slotMapping", at::zeros({3}, at::kLong)}}, "slotMapping has dtype Long, expected Int."},
       {{{"actSeqLenOptional", IntList{48, 47}}},
        "actSeqLenOptional has not one entry for each element of slotMapping."},
       {{{"actSeqLenOptional", IntList{48, 47, 129}}},
        "actSeqLenOptional exceeds the blocks of blockTable."},
       {{{"actSeqLenType", int64_t{0}}}, "actSeqLenType must be 1 (lengths of the sequences)."},
       {{{"pageBlockSize", int64_t{32}}}, "pageBlockSize must be 64 or 128."},
       {{{"pageBlockSize", int64_t{128}}}, "input has blocks of other rows than pageBlockSize."},
       {{{"compressBlockSize", int64_t{80}}},
        "compressBlockSize must be a multiple of 16, at most 64."},
       {{{"blockTableOptional", Ids({0, 1}, {1, 2})}},
        "blockTableOptional has not one row for each sequence."},
       {{{"outputCache", halves({6, 3, kRowColumns})}},
        "outputCache has shape [6, 3, 16], expected [6, 2, 16]."}});
  ExpectChangesRefused(
      "aclnnNsaCompressWithCache", CacheCall(false),
      {{{{"layoutOptional", "BSH"}}, "layoutOptional must be \"TND\" without blockTable."},
       {{{"actSeqLenOptional", IntList{48, 47, 106}}},
        "actSeqLenOptional has more rows than input."}});
}

}  // namespace
}  // namespace acltape::opapi
