// Where the versions of the fused attention of inference have their arguments. Queries, keys,
// values, the bias and the mask are arguments 0 to 4 of all of them.
#pragma once

#include <vector>

namespace acltape::opapi {

// Positions in one version of an operator; -1: it has no such argument.
struct InferArguments {
  std::vector<int> absent;  // quantised queries, which the soft device lacks
  int lengths = -1, key_lengths = -1;
  int heads, scale, layout, kv_heads, out;
  int pre = -1, next = -1, mode = -1;
  int lse_flag = -1, lse = -1;
  int sink = -1;
  int table = -1, block_size = -1;  // keys and values lie in blocks
  int rope = -1;                    // columns that queries have, too; those of keys follow
  int query_padding = -1, key_padding = -1;
  int prefix = -1;     // keys before those of all sequences; values and their length follow
  int out_scale = -1;  // scales results of int8; the offset follows
  // Of caches of int8: the scale of keys and values, which the offset follows; or the scale of the
  // keys, which their offset and those of the values follow. A mode says what each scale serves.
  int cache_scale = -1, cache_mode = -1;
  int key_scale = -1, key_mode = -1;
};

// aclnnFusedInferAttentionScore, V2, V3 and V4.
extern const InferArguments kInfer, kInferV2, kInferV3, kInferV4;
extern const InferArguments kPromptV3;
// aclnnIncreFlashAttention, V2, V3 and V4: one query a sequence; the lengths are those of the keys.
extern const InferArguments kIncre, kIncreV2, kIncreV3, kIncreV4;

}  // namespace acltape::opapi
