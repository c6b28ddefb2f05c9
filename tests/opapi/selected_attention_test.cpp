// Selected attention of native sparse attention, against its definition in double precision, one
// query at a time.
#include "tests/opapi/sparse_attention_calls.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using IntList = std::vector<int64_t>;

constexpr int64_t kSelectHeads = 4, kSelectKeyHeads = 2, kSelectWidth = 192,
                  kSelectValueWidth = 128, kSelectRows = 16;
// Two sequences of 3 and 5 queries with 48 and 64 keys, and a query after them.
const IntList kSelectEnds = {3, 8}, kSelectKeyEnds = {48, 112};

// Blocks of each query and head of the keys; the first one is always among them.
Tensor SomeBlocks() {
  IntList blocks;
  for (int64_t row = 0; row < 9; ++row) {
    for (int64_t head = 0; head < kSelectKeyHeads; ++head) {
      blocks.push_back((row + head) % 3);
      blocks.push_back((row + head) % 3 == 0 ? 2 : 0);
    }
  }
  return Ids(blocks, {9, kSelectKeyHeads, 2});
}

Named SelectedCall(at::ScalarType dtype, bool with_mask, int64_t mode) {
  return {
      {"query", Random({9, kSelectHeads, kSelectWidth}, dtype)},
      {"key", Random({112, kSelectKeyHeads, kSelectWidth}, dtype)},
      {"value", Random({112, kSelectKeyHeads, kSelectValueWidth}, dtype)},
      {"topkIndices", SomeBlocks()},
      {"attenMaskOptional", with_mask ? Arg(at::ones({5, 64}, at::kBool).triu(1)) : Arg(Null{})},
      {"actualSeqQLenOptional", kSelectEnds},
      {"actualSeqKvLenOptional", kSelectKeyEnds},
      {"scaleValue", 0.07},
      {"headNum", kSelectHeads},
      {"inputLayout", "TND"},
      {"sparseMode", mode},
      {"selectedBlockSize", kSelectRows},
      {"selectedBlockCount", int64_t{2}}};
}

struct SelectedResult {
  std::vector<Tensor> out, maximum, sum;  // for each query: [heads, width], [heads, 8]
};

// Each query on its own.
SelectedResult Select(const Tensor& query, const Tensor& key, const Tensor& value,
                      const Tensor& topk, double scale, bool causal) {
  SelectedResult result;
  int64_t first = 0, first_key = 0;
  for (size_t s = 0; s < kSelectEnds.size(); ++s) {
    for (int64_t row = first; row < kSelectEnds[s]; ++row) {
      std::vector<Tensor> outs, tops, sums;
      for (int64_t head = 0; head < kSelectHeads; ++head) {
        const int64_t of_key = head / (kSelectHeads / kSelectKeyHeads);
        std::vector<Tensor> scores, values;
        for (int64_t b = 0; b < topk.size(2); ++b) {
          for (int64_t r = 0; r < kSelectRows; ++r) {
            const int64_t place = topk[row][of_key][b].item<int>() * kSelectRows + r;
            if (causal && place > row - first) continue;
            scores.push_back((query[row][head] * key[first_key + place][of_key]).sum() * scale);
            values.push_back(value[first_key + place][of_key]);
          }
        }
        const Tensor all = at::stack(scores), top = all.detach().max();
        outs.push_back(at::matmul(at::softmax(all, 0), at::stack(values)));
        tops.push_back(top.expand({8}));
        sums.push_back((all.detach() - top).exp().sum().expand({8}));
      }
      result.out.push_back(at::stack(outs));
      result.maximum.push_back(at::stack(tops));
      result.sum.push_back(at::stack(sums));
    }
    first = kSelectEnds[s];
    first_key = kSelectKeyEnds[s];
  }
  return result;
}

TEST(SelectedAttention, QueriesSeeTheBlocksThatTheirIndicesName) {
  const at::AutoGradMode enabled(true);
  struct Kind {
    at::ScalarType dtype;
    bool with_mask;
    int64_t mode;
  };
  for (const Kind& kind : {Kind{at::kHalf, false, 0}, Kind{at::kHalf, true, 0},
                           Kind{at::kHalf, false, 2}, Kind{at::kBFloat16, true, 2}}) {
    Named named = SelectedCall(kind.dtype, kind.with_mask, kind.mode);
    const Tensor query = Wide(TensorOf(named, "query")).requires_grad_(true);
    const Tensor key = Wide(TensorOf(named, "key")).requires_grad_(true);
    const Tensor value = Wide(TensorOf(named, "value")).requires_grad_(true);
    const SelectedResult expected = Select(query, key, value, TensorOf(named, "topkIndices"), 0.07,
                                           kind.with_mask && kind.mode == 2);
    const Tensor maximum = at::empty({9, kSelectHeads, 8}), sum = at::empty_like(maximum);
    const Tensor out = at::empty({9, kSelectHeads, kSelectValueWidth}, kind.dtype);
    named["softmaxMaxOut"] = maximum;
    named["softmaxSumOut"] = sum;
    named["attentionOut"] = out;
    ASSERT_EQ(RunNamed("aclnnNsaSelectedAttention", named), 0) << LastMessage();
    const Tensor wanted = at::stack(expected.out);
    ExpectRounded(out.slice(0, 0, 8), wanted, "out");
    ExpectRounded(maximum.slice(0, 0, 8), at::stack(expected.maximum), "maximum");
    ExpectRounded(sum.slice(0, 0, 8), at::stack(expected.sum), "sum");
    EXPECT_EQ(out[8].abs().max().item<float>(), 0);

    const Tensor dy = Random({9, kSelectHeads, kSelectValueWidth}, kind.dtype);
    wanted.backward(Wide(dy).slice(0, 0, 8));
    Named backward = SelectedCall(kind.dtype, kind.with_mask, kind.mode);
    for (const char* name : {"query", "key", "value"}) backward[name] = named[name];
    const Tensor dq = at::empty({9, kSelectHeads, kSelectWidth}, kind.dtype);
    const Tensor dk = at::empty({112, kSelectKeyHeads, kSelectWidth}, kind.dtype);
    const Tensor dv = at::empty({112, kSelectKeyHeads, kSelectValueWidth}, kind.dtype);
    backward["attentionOut"] = out;
    backward["attentionOutGrad"] = dy;
    backward["softmaxMax"] = maximum;
    backward["softmaxSum"] = sum;
    backward["dqOut"] = dq;
    backward["dkOut"] = dk;
    backward["dvOut"] = dv;
    ASSERT_EQ(RunNamed("aclnnNsaSelectedAttentionGrad", backward), 0) << LastMessage();
    ExpectRounded(dq, query.grad(), "dq");
    ExpectRounded(dk, key.grad(), "dk");
    ExpectRounded(dv, value.grad(), "dv");
  }
}

TEST(SelectedAttention, SelectedAttentionRefusesWhatDoesNotFit) {
  Named valid = SelectedCall(at::kHalf, false, 0);
  valid["softmaxMaxOut"] = at::empty({9, kSelectHeads, 8});
  valid["softmaxSumOut"] = at::empty({9, kSelectHeads, 8});
  valid["attentionOut"] = at::empty({9, kSelectHeads, kSelectValueWidth}, at::kHalf);
  ExpectChangesRefused(
      "aclnnNsaSelectedAttention", valid,
      {{{{"key", Random({112, kSelectKeyHeads, 128}, at::kHalf)}},
        "key has another width than query."},
       {{{"value", Random({112, kSelectKeyHeads, 192}, at::kHalf)}},
        "value must have a width of 128."},
       {{{"value", Random({112, kSelectKeyHeads, 64}, at::kHalf)}},
        "value must have a width of 128 or 192."},
       {{{"key", Random({112, 3, kSelectWidth}, at::kHalf)}},
        "key must have heads that serve at most 32 of query's each."},
       {{{"topkIndices", at::zeros({9, kSelectKeyHeads, 3}, at::kInt)}},
        "topkIndices has shape [9, 2, 3], expected [9, 2, 2]."},
       {{{"actualSeqKvLenOptional", IntList{40, 112}}},
        "actualSeqKvLenOptional must name sequences of whole blocks that have all selected "
        "blocks."},
       {{{"actualSeqKvLenOptional", IntList{112}}},
        "actualSeqKvLenOptional has another number of sequences than actualSeqQLen."},
       {{{"headNum", int64_t{2}}}, "headNum is not query's number of heads."},
       {{{"inputLayout", "BSND"}}, "inputLayout must be \"TND\"."},
       {{{"sparseMode", int64_t{1}}}, "sparseMode must be 0 (all) or 2 (causal)."},
       {{{"selectedBlockSize", int64_t{20}}},
        "selectedBlockSize must be a multiple of 16, at most 128."},
       {{{"selectedBlockCount", int64_t{129}}},
        "selectedBlockCount must be between 1 and 128, and the blocks at most 8192 rows."},
       {{{"softmaxMaxOut", at::empty({9, kSelectHeads})}},
        "softmaxMaxOut has shape [9, 4], expected [9, 4, 8]."}});
}

TEST(SelectedAttention, AnIndexOfNoBlockFailsTheTask) {
  Named named = SelectedCall(at::kHalf, false, 0);
  named["softmaxMaxOut"] = at::empty({9, kSelectHeads, 8});
  named["softmaxSumOut"] = at::empty({9, kSelectHeads, 8});
  named["attentionOut"] = at::empty({9, kSelectHeads, kSelectValueWidth}, at::kHalf);
  for (const int index : {3, -1}) {  // the first sequence has 3 blocks
    const Tensor blocks = SomeBlocks();
    blocks[1][0][1].fill_(index);
    named["topkIndices"] = blocks;
    EXPECT_NE(RunNamed("aclnnNsaSelectedAttention", named), 0);
    EXPECT_NE(LastMessage().find("topkIndices has the index " + std::to_string(index)),
              std::string::npos)
        << LastMessage();
  }
}

// Two sequences of 50 and 130 keys in blocks of 64 rows.
const IntList kStepKeys = {50, 130};
const IntList kStepBlocks = {4, 0, 0, 2, 1, 3};

Named SelectedStepCall(const std::string& layout, at::ScalarType dtype) {
  const bool merged = layout == "BSH", packed = layout == "TND";
  const Tensor query = Random({2, 1, kSelectHeads, kSelectWidth}, dtype);
  const Tensor key = Random({5, 64, kSelectKeyHeads, kSelectWidth}, dtype);
  const Tensor value = Random({5, 64, kSelectKeyHeads, kSelectValueWidth}, dtype);
  const Tensor out = at::empty({2, 1, kSelectHeads, kSelectValueWidth}, dtype);
  // The first sequence has one block of 64 keys, which only its 50 fill; a -1 ends a list.
  const Tensor topk = Ids({0, -1, 0, 0, -1, 0, 2, 0, -1, 1, 2, 0}, {2, 1, kSelectKeyHeads, 3});
  return {{"query", merged   ? query.flatten(2)
                    : packed ? query.squeeze(1)
                             : query},
          {"key", merged ? key.flatten(2) : key},
          {"value", merged ? value.flatten(2) : value},
          {"topkIndices", packed ? topk.squeeze(1) : topk},
          {"attenMaskOptional", merged ? Arg(at::ones({1, 1}, at::kBool)) : Arg(Null{})},
          {"blockTableOptional", Ids(kStepBlocks, {2, 3})},
          {"actualQSeqLenOptional", merged ? Arg(Null{}) : Arg(IntList{1, 1})},
          {"actualKvSeqLenOptional", kStepKeys},
          {"layoutOptional", layout == "BSND" ? Arg(Null{}) : Arg(merged ? "BSH" : "TND")},
          {"numHeads", kSelectHeads},
          {"numKeyValueHeads", kSelectKeyHeads},
          {"selectBlockSize", int64_t{64}},
          {"selectBlockCount", int64_t{3}},
          {"pageBlockSize", int64_t{64}},
          {"scaleValue", 0.07},
          {"output", merged   ? out.flatten(2)
                     : packed ? out.squeeze(1)
                              : out}};
}

// The rows of one head of a sequence's keys or values, in order.
Tensor StepRowsOf(const Tensor& cache, int64_t s, int64_t head) {
  std::vector<Tensor> blocks;
  for (int64_t b = 0; b < 3; ++b) blocks.push_back(cache[kStepBlocks[3 * s + b]].select(1, head));
  return at::cat(blocks).narrow(0, 0, kStepKeys[s]);
}

TEST(SelectedAttention, AStepSeesItsSelectedBlocks) {
  int64_t mode = 0;  // the page reserves it
  for (const std::string layout : {"BSND", "BSH", "TND", "BSND", "TND"}) {
    const at::ScalarType dtype = layout == "BSH" ? at::kBFloat16 : at::kHalf;
    Named named = SelectedStepCall(layout, dtype);
    named["sparseMode"] = mode++;
    if (mode == 4) named["layoutOptional"] = "BSND";
    ASSERT_EQ(RunNamed("aclnnNsaSelectedAttentionInfer", named), 0) << LastMessage();
    const Tensor query = Wide(TensorOf(named, "query")).reshape({2, kSelectHeads, kSelectWidth});
    const Tensor key = Wide(TensorOf(named, "key")).view({5, 64, kSelectKeyHeads, kSelectWidth});
    const Tensor value =
        Wide(TensorOf(named, "value")).view({5, 64, kSelectKeyHeads, kSelectValueWidth});
    const Tensor topk = TensorOf(named, "topkIndices").view({2, kSelectKeyHeads, 3});
    const Tensor expected = at::empty({2, kSelectHeads, kSelectValueWidth}, at::kDouble);
    for (int64_t s = 0; s < 2; ++s) {
      for (int64_t head = 0; head < kSelectHeads; ++head) {
        const int64_t of_key = head / 2;
        const Tensor keys = StepRowsOf(key, s, of_key), values = StepRowsOf(value, s, of_key);
        std::vector<Tensor> picked, picked_values;
        for (int64_t b = 0; b < 3; ++b) {
          const auto block = topk[s][of_key][b].item<int>();
          if (block < 0) break;
          picked.push_back(keys.slice(0, block * 64, block * 64 + 64));
          picked_values.push_back(values.slice(0, block * 64, block * 64 + 64));
        }
        const Tensor scores = at::matmul(at::cat(picked), query[s][head]) * 0.07;
        expected[s][head].copy_(at::matmul(at::softmax(scores, 0), at::cat(picked_values)));
      }
    }
    ExpectRounded(TensorOf(named, "output").reshape(expected.sizes()), expected, layout);
  }
}

TEST(SelectedAttention, AStepOfSelectedAttentionRefusesWhatDoesNotFit) {
  ExpectChangesRefused(
      "aclnnNsaSelectedAttentionInfer", SelectedStepCall("BSND", at::kHalf),
      {{{{"query", Random({2, 2, kSelectHeads, kSelectWidth}, at::kHalf)}},
        "query has more than one row a sequence, which the soft device lacks."},
       {{{"query", Random({2, 1, kSelectHeads, 128}, at::kHalf)}},
        "query must have a width of 192."},
       {{{"key", Random({5, 64, kSelectKeyHeads, 128}, at::kHalf)}},
        "key has shape [5, 64, 2, 128], expected [5, 64, 2, 192]."},
       {{{"key", Random({5, 64, 100}, at::kHalf)}},
        "key has shape [5, 64, 100], which is no cache of 2 heads of 192 columns."},
       {{{"value", Random({4, 64, kSelectKeyHeads, kSelectValueWidth}, at::kHalf)}},
        "value has other blocks than key."},
       {{{"blockTableOptional", Null{}}},
        "blockTableOptional is absent, but the operator takes keys in blocks."},
       {{{"actualQSeqLenOptional", IntList{1, 2}}},
        "actualQSeqLenOptional must be 1; the soft device has one query a sequence."},
       {{{"actualKvSeqLenOptional", Null{}}}, "actualKvSeqLenOptional is absent."},
       {{{"actualKvSeqLenOptional", IntList{50, 193}}},
        "actualKvSeqLenOptional exceeds the tensor."},
       {{{"layoutOptional", "BNSD"}}, "layoutOptional must be \"BSH\", \"BSND\" or \"TND\"."},
       {{{"numKeyValueHeads", int64_t{3}}},
        "numKeyValueHeads must divide numHeads into groups of at most 16."},
       {{{"pageBlockSize", int64_t{32}}}, "pageBlockSize must be 64 or 128."},
       {{{"selectBlockSize", int64_t{100}}},
        "selectBlockSize must be a multiple of 16, at most 128."}});
  for (const auto& [name, ids, message] :
       {std::tuple("topkIndices", Ids({1, -1, 0, 0, -1, 0, 2, 0, -1, 1, 2, 0}, {2, 1, 2, 3}),
                   "topkIndices has the index 1"),
        std::tuple("blockTableOptional", Ids({5, 0, 0, 2, 1, 3}, {2, 3}),
                   "blockTable has the index 5")}) {
    Named named = SelectedStepCall("BSND", at::kHalf);
    named[name] = ids;
    EXPECT_NE(RunNamed("aclnnNsaSelectedAttentionInfer", named), 0);
    EXPECT_NE(LastMessage().find(message), std::string::npos) << LastMessage();
  }
}

}  // namespace
}  // namespace acltape::opapi
