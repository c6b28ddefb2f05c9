// Fused attention against libtorch's scaled dot product attention.
#include <cmath>
#include <limits>

#include "tests/opapi/grid/infer_features.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kFused = {16, 1e-5, false,
                          "libtorch scales the query, the operator the scores; half rounds once"};

constexpr int64_t kTriangle = 2048;

// The tensor as [batch, heads, positions, width].
Tensor Split(const Tensor& tensor, const std::string& layout, int64_t heads) {
  if (layout == "BNSD") return tensor;
  if (layout == "BSND") return tensor.transpose(1, 2);
  const Tensor apart = tensor.unflatten(-1, {heads, tensor.size(-1) / heads});
  return layout == "BSH" ? apart.transpose(1, 2) : apart.permute({1, 2, 0, 3});
}

Tensor Join(const Tensor& split, const std::string& layout) {
  if (layout == "BNSD") return split;
  if (layout == "BSND") return split.transpose(1, 2).contiguous();
  return layout == "BSH" ? split.transpose(1, 2).flatten(2)
                         : split.permute({2, 0, 1, 3}).flatten(2);
}

Tensor InLayout(Source& source, at::ScalarType dtype, const std::string& layout, const Ints& bnsd) {
  return Join(source.Random(bnsd, dtype), layout);
}

// The pairs that sparse modes 2 to 4 leave out, one by one.
Tensor Band(int64_t mode, int64_t queries, int64_t keys, int64_t before, int64_t after) {
  const Tensor left_out = at::zeros({queries, keys}, at::kBool);
  const int64_t shift = mode == 2 ? 0 : keys - queries;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t distance = j - (i + shift);
      const bool out = mode == 4 ? distance > after || distance < -before : distance > 0;
      if (out) left_out[i][j].fill_(true);
    }
  }
  return left_out;
}

struct Scores {
  Tensor out, maximum, sum;
};

// libtorch's attention of [batch, heads, positions, width] in float32; `left_out` may be undefined.
Scores Library(const Tensor& query, const Tensor& key, const Tensor& value, double scale,
               const Tensor& bias, const Tensor& left_out) {
  const Tensor q = query.to(at::kFloat);
  const int64_t sharing = q.size(1) / key.size(1);
  const Tensor k = key.to(at::kFloat).repeat_interleave(sharing, 1);
  const Tensor v = value.to(at::kFloat).repeat_interleave(sharing, 1);
  Tensor added = at::zeros({q.size(0), q.size(1), q.size(2), k.size(2)});
  if (bias.defined()) added = added + bias.to(at::kFloat);
  if (left_out.defined()) {
    added = added.masked_fill(left_out.to(at::kBool), -std::numeric_limits<float>::infinity());
  }
  // It scales by the root of the width.
  const Tensor scaled = q * (scale * std::sqrt(static_cast<double>(q.size(3))));
  Scores result;
  result.out = std::get<0>(at::_scaled_dot_product_attention(
      scaled, k, v, c10::optional<Tensor>(added), 0.0, false, false));
  const Tensor scores = at::matmul(q, k.transpose(-1, -2)) * scale + added;
  result.maximum = scores.amax(-1, true);
  result.sum = (scores - result.maximum).exp().sum(-1, true);
  return result;
}

struct Geometry {
  const char* layout;
  int64_t batch, heads, kv_heads, queries, keys, width;
};

const std::vector<Geometry> kGeometries = {
    {"BNSD", 2, 4, 4, 7, 7, 8}, {"BSND", 1, 4, 2, 5, 9, 16}, {"BSH", 2, 2, 2, 6, 6, 4},
    {"SBH", 2, 4, 1, 3, 8, 8},  {"BNSD", 1, 2, 2, 1, 17, 8},
};

struct Masked {
  Arg mask;
  int64_t mode, pre, next;
};

// Masks that leave every query at least one key.
std::vector<Masked> Masks(Source& source, const Geometry& g) {
  const int64_t all = std::numeric_limits<int32_t>::max();
  const auto random = [&](Ints sizes) {
    const Tensor mask = source.Random(sizes, at::kDouble, 0, 1).gt(0.6);
    mask.select(-1, 0).fill_(false);
    return mask;
  };
  const Tensor triangle = at::ones({kTriangle, kTriangle}, at::kBool).triu(1);
  std::vector<Masked> masks = {
      {Null{}, 0, all, all},
      {random({g.queries, g.keys}), 0, all, all},
      {random({g.batch, 1, g.queries, g.keys}).to(at::kByte), 1, 0, 0},
      {random({g.batch, g.heads, g.queries, g.keys}), 0, all, all},
      {triangle, 2, all, all},
  };
  if (g.keys >= g.queries) {
    masks.push_back({triangle, 3, all, all});
    masks.push_back({triangle, 4, 2, 0});
  }
  return masks;
}

Tensor LeftOut(const In& in, int mask, int pre, int next, int mode, const Geometry& g) {
  if (in.integer(mode) >= 2) {
    return Band(in.integer(mode), g.queries, g.keys, in.integer(pre), in.integer(next));
  }
  return in.maybe(mask) ? *in.maybe(mask) : Tensor();
}

// The arguments between the mask and the scale, in a version of the operator.
constexpr int FlashAbsent(int version) {
  constexpr int kAbsent[] = {1, 3, 4, 11};
  return kAbsent[version - 1];
}

// (query, key, value, realShift, dropMask, paddingMask, attenMask, absent ones, scale, keep, pre,
// next, heads, layout, innerPrecise, sparseMode, [outDtype,] [pseType,] [statistics' layout, seed,
// offset])
Inputs Flash(int version) {
  return [version](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Geometry& g : kGeometries) {
      for (const Masked& m : Masks(source, g)) {
        Args args = {InLayout(source, dtype, g.layout, {g.batch, g.heads, g.queries, g.width}),
                     InLayout(source, dtype, g.layout, {g.batch, g.kv_heads, g.keys, g.width}),
                     InLayout(source, dtype, g.layout, {g.batch, g.kv_heads, g.keys, g.width}),
                     source.Random({g.batch, g.heads, g.queries, g.keys}, dtype),
                     Null{},
                     Null{},
                     m.mask};
        args.insert(args.end(), FlashAbsent(version), Null{});
        args.insert(args.end(), {0.3, 1.0, m.pre, m.next, g.heads, g.layout, int64_t{0}, m.mode});
        if (version == 4) args.push_back(int64_t{0});
        if (version > 1) args.push_back(int64_t{0});
        if (version == 4) args.insert(args.end(), {"", int64_t{0}, int64_t{0}});
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

Reference FlashReference(int version) {
  return [version](const In& in) {
    const int scale = 7 + FlashAbsent(version);
    const std::string layout = in.text(scale + 5);
    const int64_t heads = in.integer(scale + 4);
    const Tensor query = Split(in[0], layout, heads);
    const auto keys = [&](int i) {
      const bool merged = in[i].dim() == 3;
      return Split(in[i], layout, merged ? in[i].size(-1) / query.size(3) : 0);
    };
    const Tensor key = keys(1), value = keys(2);
    Geometry g{};
    g.queries = query.size(2);
    g.keys = key.size(2);
    // The first version adds the shift before it scales.
    const Tensor bias = version == 1 ? in[3].to(at::kFloat) * in.real(scale) : in[3];
    const Scores scores = Library(query, key, value, in.real(scale), bias,
                                  LeftOut(in, 6, scale + 2, scale + 3, scale + 7, g));
    const Ints eight = {query.size(0), heads, g.queries, 8};
    return std::make_tuple(scores.maximum.expand(eight).contiguous(),
                           scores.sum.expand(eight).contiguous(), Tensor(),
                           Join(scores.out, layout).contiguous().to(in[0].scalar_type()));
  };
}

// (query, key, value, pseShift, attenMask, two lengths, `absent` NULLs, heads, scale, pre, next,
// layout, kvHeads, sparseMode, innerPrecise, blockSize, antiquantMode, lse, `modes` zeros)
Inputs Infer(int absent, int modes) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Geometry& g : kGeometries) {
      if (std::string(g.layout) == "SBH") continue;
      for (const Masked& m : Masks(source, g)) {
        for (bool apart : {false, true}) {
          const auto keys = [&] {
            Tensors list;
            for (int64_t b = 0; b < (apart ? g.batch : 1); ++b) {
              list.push_back(InLayout(source, dtype, g.layout,
                                      {apart ? 1 : g.batch, g.kv_heads, g.keys, g.width}));
            }
            return list;
          };
          Args args = {
              InLayout(source, dtype, g.layout, {g.batch, g.heads, g.queries, g.width}),
              keys(),
              keys(),
              apart ? Arg(source.Random({1, g.heads, g.queries, g.keys}, dtype)) : Arg(Null{}),
              m.mask,
              Null{},
              Null{}};
          for (int i = 0; i < absent; ++i) args.push_back(Null{});
          args.insert(args.end(), {g.heads, 0.3, m.pre, m.next, g.layout, g.kv_heads, m.mode,
                                   int64_t{0}, int64_t{0}, int64_t{0}, true});
          for (int i = 0; i < modes; ++i) args.push_back(int64_t{0});
          inputs.push_back(args);
        }
      }
    }
    return inputs;
  };
}

Reference InferReference(int absent) {
  return [absent](const In& in) {
    const int heads_at = 7 + absent;
    const int64_t heads = in.integer(heads_at), kv_heads = in.integer(heads_at + 5);
    const std::string layout = in.text(heads_at + 4);
    const Tensor query = Split(in[0], layout, heads);
    const Tensor key = Split(at::cat(in.list(1)), layout, kv_heads);
    const Tensor value = Split(at::cat(in.list(2)), layout, kv_heads);
    Geometry g{};
    g.queries = query.size(2);
    g.keys = key.size(2);
    const Tensor bias = in.maybe(3) ? *in.maybe(3) : Tensor();
    const Scores scores = Library(query, key, value, in.real(heads_at + 1), bias,
                                  LeftOut(in, 4, heads_at + 2, heads_at + 3, heads_at + 6, g));
    return std::make_tuple(Join(scores.out, layout).contiguous().to(in[0].scalar_type()),
                           scores.sum.log() + scores.maximum);
  };
}

}  // namespace

Rows AttentionRows() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  Rows rows = {
      {"aclnnFlashAttentionScore", Flash(1), dtypes, FlashReference(1), kFused},
      {"aclnnFlashAttentionScoreV2", Flash(2), dtypes, FlashReference(2), kFused},
      {"aclnnFlashAttentionScoreV3", Flash(3), dtypes, FlashReference(3), kFused},
      {"aclnnFlashAttentionScoreV4", Flash(4), dtypes, FlashReference(4), kFused},
      {"aclnnFusedInferAttentionScore", Infer(10, 0), dtypes, InferReference(10), kFused},
      {"aclnnFusedInferAttentionScoreV2", Infer(17, 2), dtypes, InferReference(17), kFused},
      {"aclnnFusedInferAttentionScoreV3", Infer(20, 2), dtypes, InferReference(20), kFused},
  };
  for (Row& row : rows) {
    row.inplace = false;
    row = WithInferFeatures(std::move(row));
  }
  return rows;
}

}  // namespace acltape::opapi::grid
