// Parts that the attention operators share: layouts of heads, masks, and the computation itself.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "runtime/opapi/engine/call.h"

namespace acltape::opapi {

// Says which dims of a tensor are batch, head, position and width. "BSH" and "SBH" merge head and
// width. In layout TND the batch is the whole tensor, and its sequences follow each other.
class HeadLayout {
 public:
  // Rejects the call when the operator does not know the layout that argument `i` names.
  static HeadLayout Named(const Call& call, int i, const std::string& name);

  // `tensor` as [batch, heads, positions, width], over the same memory.
  at::Tensor Split(const Call& call, int i, const at::Tensor& tensor, int64_t heads) const;
  // The sizes in this layout of [batch, heads, positions, width].
  std::vector<int64_t> Sizes(at::IntArrayRef split) const;
  // Sequences follow each other in one batch.
  bool packed() const { return rank_ == 3 && !merged_; }

 private:
  int64_t rank_ = 4;
  bool merged_ = false;
  // The positions of [batch, heads, positions, width] in the layout with heads and width apart.
  std::vector<int64_t> order_;
};

// Says which scores of a query position are left out.
struct ScoreMask {
  enum class Corner : uint8_t { kTopLeft, kBottomRight };

  at::Tensor mask;    // broadcasts to the scores; true (or not 0): left out. May be undefined.
  bool band = false;  // leave out what lies outside of [position - before, position + after]
  Corner corner = Corner::kTopLeft;  // where position 0 of the queries meets the keys
  int64_t before = 0, after = 0;

  // True where a score is left out; undefined when none is.
  at::Tensor LeftOut(int64_t queries, int64_t keys) const;
};

// (attenMask, preTokens, nextTokens, sparseMode): modes 0 (the mask and the band), 1 (the mask),
// 2 and 3 (causal from a corner) and 4 (a band). An operator without modes has mode 1.
ScoreMask ReadScoreMask(const Call& call, int mask_index, int pre_index, int next_index,
                        int mode_index);

// The place of one sequence in queries and keys that are split into heads.
struct SequencePlace {
  int64_t batch, first_query, queries, first_key, keys;

  at::Tensor Queries(const at::Tensor& split) const {
    return split.narrow(0, batch, 1).narrow(2, first_query, queries);
  }
  at::Tensor Keys(const at::Tensor& split) const {
    return split.narrow(0, batch, 1).narrow(2, first_key, keys);
  }
};

// The places of sequences of these lengths: packed ones follow each other in one batch, others
// begin a batch each.
std::vector<SequencePlace> PlaceSequences(const std::vector<int64_t>& lengths,
                                          const std::vector<int64_t>& key_lengths, bool packed);

// Sizes of queries and keys together, once split into heads.
struct Extent {
  int64_t batch, heads, queries, keys;

  std::vector<int64_t> scores() const { return {batch, heads, queries, keys}; }
};

// Checks that all attention operators make.
void ExpectByteMask(const Call& call, int i, const at::Tensor& mask);
void ExpectQueryDtype(const Call& call, int i, const at::Tensor& tensor, const at::Tensor& query);
// Undefined, or a tensor that broadcasts to the scores.
void ExpectScores(const Call& call, int i, const at::Tensor& tensor, const Extent& extent);
// Keys and values, split into heads, that fit the queries: arguments `i` and `i` + 1.
void ExpectKeys(const Call& call, const at::Tensor& query, const at::Tensor& key,
                const at::Tensor& value, int i = 1);
// An argument that changes the result in a way that the soft device does not compute.
void ExpectAbsent(const Call& call, const std::vector<int>& positions);

struct AttentionTerms {
  double scale = 1;
  at::Tensor bias;          // broadcasts to the scores; may be undefined
  bool bias_first = false;  // added before the scores are scaled
  at::Tensor left_out;      // see ScoreMask
  at::Tensor sink;          // one more score per head that only takes weight; may be undefined
  at::Tensor weights;       // factors of the probabilities (dropout); may be undefined
};

struct AttentionResult {
  at::Tensor out;      // [batch, heads, queries, width], float32 or float64
  at::Tensor maximum;  // the greatest score of each query: [batch, heads, queries, 1]
  at::Tensor sum;      // adds up the exponentials after the maximum is taken off
};

// The scores before the softmax, and what of `terms` acts on them.
at::Tensor AttentionScores(const at::Tensor& query, const at::Tensor& key,
                           const AttentionTerms& terms);

// softmax(scale * query key^T + ...) value, in float32 (float64 for such inputs). A query that is
// left with no score at all gives zeros. Keys may have fewer heads: each serves several of query's.
AttentionResult Attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const AttentionTerms& terms);

// The gradients of Attend's result. `maximum` and `sum` are those of the forward pass.
struct AttentionGradients {
  at::Tensor query, key, value;
  at::Tensor bias, sink;  // as large as terms.bias and terms.sink; undefined without them
};
AttentionGradients AttendBackward(const at::Tensor& gradient, const at::Tensor& query,
                                  const at::Tensor& key, const at::Tensor& value,
                                  const at::Tensor& maximum, const at::Tensor& sum,
                                  const AttentionTerms& terms);

}  // namespace acltape::opapi
