#include "runtime/opapi/kernels/infer_arguments.h"

namespace acltape::opapi {
namespace {

// The arguments before `heads` that all versions of aclnnFusedInferAttentionScore have, and those
// from there to the flag of the sums, which lie alike in all of them.
InferArguments Fused(int heads, std::vector<int> absent) {
  return {.absent = std::move(absent),
          .lengths = 5,
          .key_lengths = 6,
          .heads = heads,
          .scale = heads + 1,
          .layout = heads + 4,
          .kv_heads = heads + 5,
          .out = heads + 11,
          .pre = heads + 2,
          .next = heads + 3,
          .mode = heads + 6,
          .lse_flag = heads + 10,
          .lse = heads + 12,
          .table = 14,
          .block_size = heads + 8,
          .query_padding = 15,
          .key_padding = 16,
          .out_scale = 10,
          .cache_scale = 12,
          .cache_mode = heads + 9};
}

// The later versions, whose outputs follow `modes` modes of quantisation.
InferArguments FusedLater(int heads, int modes, std::vector<int> absent) {
  InferArguments at = Fused(heads, std::move(absent));
  at.key_scale = 17;
  at.prefix = 21;
  at.key_mode = at.lse_flag + 1;
  at.out += modes;
  at.lse += modes;
  return at;
}

InferArguments WithRope(InferArguments at) {
  at.rope = 24;
  return at;
}

InferArguments WithSink(InferArguments at) {
  at.sink = 28;
  return at;
}

// The arguments of aclnnIncreFlashAttention from `heads` on; `out` is the last one.
InferArguments Incre(int heads, int out, std::vector<int> absent) {
  return {.absent = std::move(absent),
          .key_lengths = 5,
          .heads = heads,
          .scale = heads + 1,
          .layout = heads + 2,
          .kv_heads = heads + 3,
          .out = out};
}

InferArguments IncreQuantised(int heads, int out) {
  InferArguments at = Incre(heads, out, {6, 7, 8});
  at.out_scale = 9;
  return at;
}

InferArguments IncreInBlocks(int heads, int out) {
  InferArguments at = IncreQuantised(heads, out);
  at.cache_scale = 11;
  at.table = 13;
  at.block_size = heads + 4;
  return at;
}

InferArguments WithKeyPadding(InferArguments at) {
  at.key_padding = 14;
  return at;
}

}  // namespace

const InferArguments kInfer = Fused(17, {7, 8, 9});
const InferArguments kInferV2 = FusedLater(24, 2, {7, 8, 9});
const InferArguments kInferV3 = WithRope(FusedLater(27, 2, {7, 8, 9, 26}));
const InferArguments kInferV4 = WithSink(WithRope(FusedLater(29, 3, {7, 8, 9, 26, 27})));
const InferArguments kPromptV3 = {.absent = {7, 8, 9},
                                  .lengths = 5,
                                  .key_lengths = 6,
                                  .heads = 12,
                                  .scale = 13,
                                  .layout = 16,
                                  .kv_heads = 17,
                                  .out = 20,
                                  .pre = 14,
                                  .next = 15,
                                  .mode = 18,
                                  .out_scale = 10};
const InferArguments kIncre = Incre(6, 10, {});
const InferArguments kIncreV2 = IncreQuantised(11, 15);
const InferArguments kIncreV3 = IncreInBlocks(14, 20);
const InferArguments kIncreV4 = WithKeyPadding(IncreInBlocks(15, 21));

}  // namespace acltape::opapi
