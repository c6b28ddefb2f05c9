// Fused attention of inference in the versions that have no row of their own elsewhere, against
// each head's scores in double precision.
#include <cmath>
#include <limits>

#include "tests/opapi/grid/formula.h"
#include "tests/opapi/grid/infer_features.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kNoBound = std::numeric_limits<int32_t>::max();
const Tolerance kHeadwise = {4, 1e-5, false, "float32 and one rounding, against double precision"};

struct HeadShape {
  const char* layout;
  int64_t batch, heads, kv_heads, keys, width;
};

const std::vector<HeadShape> kHeadShapes = {
    {"BNSD", 2, 4, 2, 9, 8}, {"BSND", 1, 2, 2, 5, 16}, {"BSH", 2, 4, 1, 7, 4}};

// [batch, heads, rows, width] as the layout lays it out, and back.
Tensor LaidOut(const Tensor& heads_first, const std::string& layout) {
  if (layout == "BNSD") return heads_first;
  const Tensor rows_first = heads_first.transpose(1, 2).contiguous();
  return layout == "BSND" ? rows_first : rows_first.flatten(2);
}

Tensor HeadsApart(const Tensor& tensor, const std::string& layout, int64_t heads) {
  const Tensor wide = tensor.to(at::kDouble);
  if (layout == "BNSD") return wide;
  const Tensor apart =
      layout == "BSND" ? wide : wide.unflatten(-1, {heads, tensor.size(-1) / heads});
  return apart.transpose(1, 2);
}

// The arguments of a call besides queries, keys and values; undefined tensors are absent.
struct Attending {
  double scale;
  Tensor bias, mask, sink;  // mask: true leaves out
  Ints lengths;             // how many keys each batch has; empty: all
  bool causal = false;
};

struct AttendedHeads {
  Tensor out, lse;
};

AttendedHeads AttendByHead(const Tensor& q, const Tensor& k, const Tensor& v, const Attending& a) {
  AttendedHeads result = {at::zeros({q.size(0), q.size(1), q.size(2), v.size(3)}, at::kDouble),
                          at::zeros({q.size(0), q.size(1), q.size(2), 1}, at::kDouble)};
  const int64_t sharing = q.size(1) / k.size(1);
  const Tensor whole = at::zeros({q.size(0), q.size(1), q.size(2), k.size(2)}, at::kDouble);
  const Tensor bias = a.bias.defined() ? a.bias.to(at::kDouble).expand_as(whole) : whole;
  const Tensor mask =
      a.mask.defined() ? a.mask.to(at::kBool).expand_as(whole) : whole.to(at::kBool);
  for (int64_t b = 0; b < q.size(0); ++b) {
    const int64_t keys = a.lengths.empty() ? k.size(2) : a.lengths[b];
    for (int64_t h = 0; h < q.size(1); ++h) {
      const Tensor key = k[b][h / sharing].slice(0, 0, keys),
                   value = v[b][h / sharing].slice(0, 0, keys);
      for (int64_t i = 0; i < q.size(2); ++i) {
        Tensor scores = at::mv(key, q[b][h][i]) * a.scale + bias[b][h][i].slice(0, 0, keys);
        scores = scores.masked_fill(mask[b][h][i].slice(0, 0, keys), -INFINITY);
        if (a.causal) scores.slice(0, i + 1).fill_(-INFINITY);
        const double most = scores.max().item<double>();
        const Tensor weights = (scores - most).exp();
        double total = weights.sum().item<double>();
        result.lse[b][h][i] = most + std::log(total);
        if (a.sink.defined()) total += std::exp(a.sink[h].item().toDouble() - most);
        result.out[b][h][i].copy_(at::mv(value.t(), weights) / total);
      }
    }
  }
  return result;
}

// --- One query a sequence: (query, keys, values, pseShift, attenMask, lengths, NULLs, heads,
// scale, layout, kvHeads, zeros).

struct Incremental {
  const char* op;
  int absent, zeros;
};

constexpr Incremental kIncrementals[] = {{"aclnnIncreFlashAttention", 0, 0},
                                         {"aclnnIncreFlashAttentionV2", 5, 0},
                                         {"aclnnIncreFlashAttentionV3", 8, 2},
                                         {"aclnnIncreFlashAttentionV4", 9, 2}};

Inputs Steps(const Incremental& form) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const HeadShape& s : kHeadShapes) {
      for (bool full : {false, true}) {
        const auto keys = [&] {
          Tensors list;
          for (int64_t b = 0; b < (full ? s.batch : 1); ++b) {
            list.push_back(LaidOut(
                source.Random({full ? 1 : s.batch, s.kv_heads, s.keys, s.width}, dtype), s.layout));
          }
          return list;
        };
        const Tensor mask = source.Random({s.batch, 1, 1, s.keys}, at::kDouble, 0, 1).gt(0.6);
        mask.select(-1, 0).fill_(false);
        Ints lengths;
        for (int64_t b = 0; b < s.batch; ++b) lengths.push_back(s.keys - 2 * b);
        Args args = {LaidOut(source.Random({s.batch, s.heads, 1, s.width}, dtype), s.layout),
                     keys(),
                     keys(),
                     full ? Arg(source.Random({1, s.heads, 1, s.keys}, dtype)) : Arg(Null{}),
                     full ? Arg(mask) : Arg(Null{}),
                     full ? Arg(lengths) : Arg(Null{})};
        for (int i = 0; i < form.absent; ++i) args.push_back(Null{});
        args.insert(args.end(), {s.heads, 0.3, s.layout, s.kv_heads});
        for (int i = 0; i < form.zeros; ++i) args.push_back(int64_t{0});
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

Reference StepsByHead(const Incremental& form) {
  return [=](const In& in) {
    const int heads = 6 + form.absent;
    const std::string layout = in.text(heads + 2);
    const auto apart = [&](const Tensor& tensor, int i) {
      return HeadsApart(tensor, layout, in.integer(i));
    };
    const bool full = in.maybe(3).has_value();
    const AttendedHeads result =
        AttendByHead(apart(in[0], heads), apart(at::cat(in.list(1)), heads + 3),
                     apart(at::cat(in.list(2)), heads + 3),
                     {in.real(heads + 1), full ? in[3] : Tensor(), full ? in[4] : Tensor(),
                      Tensor(), full ? in.ints(5) : Ints()});
    return LaidOut(result.out, layout).to(in[0].scalar_type());
  };
}

// --- Prompts: (query, key, value, pseShift, attenMask, lengths, keyLengths, 5 NULLs, heads, scale,
// pre, next, layout, kvHeads, sparseMode, innerPrecise).

Args Prompt(Source& source, at::ScalarType dtype, const HeadShape& s, bool causal, bool lists) {
  const auto keys = [&]() -> Arg {
    const Tensor all =
        LaidOut(source.Random({s.batch, s.kv_heads, s.keys, s.width}, dtype), s.layout);
    return lists ? Arg(Tensors{all}) : Arg(all);
  };
  const Tensor mask = source.Random({s.batch, 1, 4, s.keys}, at::kDouble, 0, 1).gt(0.6);
  mask.select(-1, 0).fill_(false);
  const Tensor triangle = at::ones({2048, 2048}, at::kBool).triu(1);
  return {LaidOut(source.Random({s.batch, s.heads, 4, s.width}, dtype), s.layout),
          keys(),
          keys(),
          source.Random({s.batch, s.heads, 4, s.keys}, dtype),
          causal ? triangle : mask,
          Null{},
          causal ? Arg(Null{}) : Arg(Ints(s.batch, s.keys - 1))};
}

// `rope`: the position of further columns of queries, and then of keys; -1: there are none.
AttendedHeads PromptByHead(const In& in, const Tensor& key, const Tensor& value, int heads,
                           const Tensor& sink, int rope = -1) {
  const std::string layout = in.text(heads + 4);
  const bool causal = in.integer(heads + 6) == 2;
  const int64_t kv_heads = in.integer(heads + 5);
  const auto with_rope = [&](const Tensor& tensor, int64_t count, int i) {
    const Tensor apart = HeadsApart(tensor, layout, count);
    return rope < 0 || !in.maybe(rope) ? apart
                                       : at::cat({apart, HeadsApart(in[i], layout, count)}, -1);
  };
  return AttendByHead(with_rope(in[0], in.integer(heads), rope), with_rope(key, kv_heads, rope + 1),
                      HeadsApart(value, layout, kv_heads),
                      {in.real(heads + 1), in[3], causal ? Tensor() : in[4], sink,
                       causal ? Ints() : in.ints(6), causal});
}

Rows Prompts() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  return {
      {"aclnnPromptFlashAttentionV3",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const HeadShape& s : kHeadShapes) {
           for (bool causal : {false, true}) {
             Args args = Prompt(source, dtype, s, causal, false);
             args.insert(args.end(), 5, Null{});
             args.insert(args.end(), {s.heads, 0.3, kNoBound, kNoBound, s.layout, s.kv_heads,
                                      int64_t{causal ? 2 : 1}, int64_t{0}});
             inputs.push_back(args);
           }
         }
         return inputs;
       },
       dtypes,
       [](const In& in) {
         return LaidOut(PromptByHead(in, in[1], in[2], 12, Tensor()).out, in.text(16))
             .to(in[0].scalar_type());
       },
       kHeadwise},
      // 21 absent ones and the sink before heads; after innerPrecise: blockSize,
      // antiquantMode, softmaxLseFlag and three modes. The sum of the scores has no sink.
      {"aclnnFusedInferAttentionScoreV4",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const HeadShape& s : kHeadShapes) {
           for (bool causal : {false, true}) {
             Args args = Prompt(source, dtype, s, causal, true);
             args.insert(args.end(), 21, Null{});
             args.push_back(causal ? Arg(source.Random({s.heads}, dtype)) : Arg(Null{}));
             if (!causal) {  // further columns of queries and keys
               args[24] = LaidOut(source.Random({s.batch, s.heads, 4, 6}, dtype), s.layout);
               args[25] = LaidOut(source.Random({s.batch, s.kv_heads, s.keys, 6}, dtype), s.layout);
             }
             args.insert(args.end(), {s.heads, 0.3, kNoBound, kNoBound, s.layout, s.kv_heads,
                                      int64_t{causal ? 2 : 1}, int64_t{0}, int64_t{0}, int64_t{0},
                                      !causal, int64_t{0}, int64_t{0}, int64_t{0}});
             inputs.push_back(args);
           }
         }
         return inputs;
       },
       dtypes,
       [](const In& in) {
         const AttendedHeads result = PromptByHead(in, in.list(1)[0], in.list(2)[0], 29,
                                                   in.maybe(28) ? in[28] : Tensor(), 24);
         return std::make_tuple(LaidOut(result.out, in.text(33)).to(in[0].scalar_type()),
                                in.flag(39) ? result.lse.to(at::kFloat) : Tensor());
       },
       kHeadwise},
  };
}

}  // namespace

Rows InferenceRows() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  Rows rows = Prompts();
  for (const Incremental& form : kIncrementals) {
    rows.push_back({form.op, Steps(form), dtypes, StepsByHead(form), kHeadwise});
  }
  for (Row& row : rows) {
    row.inplace = false;
    row = WithInferFeatures(std::move(row));
  }
  return rows;
}

}  // namespace acltape::opapi::grid
