// Operators that stand for operations of libatb.so (acl/data/atb_ops.json), against formulas of
// doubles.
#include <algorithm>

#include "tests/opapi/grid/quantized.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kBoostByHead = {4, 1e-5, false,
                                "float32 and one rounding, against double precision"};

// --- (query, key, value, blockTables?, mask?, seqLen, kvSeqLen, qkScale, maskFactor, causal)

struct BoostLengths {
  Ints queries, keys;
};

const std::vector<BoostLengths> kBoostLengths = {{{1, 1, 1}, {5, 8, 1}}, {{3, 0, 2}, {5, 4, 2}}};

int64_t TotalOf(const Ints& numbers) {
  int64_t sum = 0;
  for (int64_t number : numbers) sum += number;
  return sum;
}

// Masks: none, one of each sequence and head, or one with a row for each query.
Inputs BoostAttentions(bool paged) {
  return [paged](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const BoostLengths& lengths : kBoostLengths) {
      const int64_t tokens = TotalOf(lengths.queries);
      const Ints masks[] = {{}, {3, 4, 1, 9}, {tokens, 8}};
      for (const Ints& mask : masks) {
        for (bool causal : {false, true}) {
          const auto keys = [&](int64_t width) {
            return paged ? source.Random({5, 4, 2, width}, dtype)
                         : source.Random({TotalOf(lengths.keys), 2, width}, dtype);
          };
          inputs.push_back({source.Random({tokens, 4, 8}, dtype), keys(8), keys(6),
                            paged ? Arg(source.Indices({3, 2}, 5, at::kInt)) : Arg(Null{}),
                            mask.empty() ? Arg(Null{}) : Arg(source.Random(mask, dtype)),
                            lengths.queries, lengths.keys, 0.4, -0.5, causal});
        }
      }
    }
    return inputs;
  };
}

// The rows of keys or values that a sequence sees: from `first` on, or those in its blocks.
Tensor RowsSeen(const In& in, int i, int64_t sequence, int64_t first, int64_t count) {
  if (!in.maybe(3)) return Wide(in[i]).slice(0, first, first + count);
  Tensors rows = {Wide(in[i]).flatten(0, 1).slice(0, 0, 0)};
  for (int64_t row = 0; row < count; ++row) {
    const int64_t block = in[3][sequence][row / 4].item().toLong();
    rows.push_back(Wide(in[i])[block][row % 4].unsqueeze(0));
  }
  return at::cat(rows);
}

Tensor BoostByHead(const In& in) {
  const Ints &queries = in.ints(5), &keys = in.ints(6);
  const Tensor query = Wide(in[0]), value = Wide(in[2]);
  const Tensor out = at::zeros({query.size(0), query.size(1), value.size(-1)}, at::kDouble);
  int64_t first = 0, first_key = 0;
  for (size_t s = 0; s < queries.size(); ++s) {
    const auto sequence = static_cast<int64_t>(s);
    const Tensor seen = RowsSeen(in, 1, sequence, first_key, keys[s]);
    const Tensor taken = RowsSeen(in, 2, sequence, first_key, keys[s]);
    for (int64_t i = 0; i < queries[s]; ++i) {
      for (int64_t head = 0; head < query.size(1); ++head) {
        Tensor scores = at::mv(seen.select(1, head / 2), query[first + i][head]) * in.real(7);
        if (in.maybe(4)) {
          const Tensor mask = Wide(in[4]);
          const Tensor row = mask.dim() == 2 ? mask[first + i] : mask[sequence][head][0];
          scores = scores + row.slice(0, 0, keys[s]) * in.real(8);
        }
        if (in.flag(9)) scores = scores.slice(0, 0, keys[s] - queries[s] + i + 1);
        const Tensor weights = at::softmax(scores, 0);
        out[first + i][head].copy_(
            at::mv(taken.select(1, head / 2).slice(0, 0, scores.size(0)).t(), weights));
      }
    }
    first += queries[s];
    first_key += keys[s];
  }
  return out.to(in[0].scalar_type());
}

// --- (token, groupNum, k, n)

std::vector<Args> GroupScores(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (const Ints& numbers : {Ints{4, 2, 1}, Ints{4, 1, 3}, Ints{1, 1, 2}, Ints{12, 5, 1}}) {
    for (int64_t tokens : {3, 0}) {
      inputs.push_back({source.Random({tokens, 12}, dtype), numbers[0], numbers[1], numbers[2]});
    }
  }
  return inputs;
}

Tensor BestGroups(const In& in) {
  const int64_t groups = in.integer(1), width = in[0].size(1) / groups;
  const Tensor out = in[0].clone();
  for (int64_t t = 0; t < out.size(0); ++t) {
    std::vector<std::pair<double, int64_t>> sums;  // the greatest first, then the lowest group
    for (int64_t g = 0; g < groups; ++g) {
      const Tensor scores = std::get<0>(Wide(out[t]).slice(0, g * width, (g + 1) * width).sort());
      sums.emplace_back(-scores.slice(0, width - in.integer(3)).sum().item().toDouble(), g);
    }
    std::sort(sums.begin(), sums.end());
    for (size_t i = static_cast<size_t>(in.integer(2)); i < sums.size(); ++i) {
      out[t].slice(0, sums[i].second * width, (sums[i].second + 1) * width).zero_();
    }
  }
  return out;
}

// --- (x, scale, offset?)

std::vector<Args> Channels(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (const Ints& scale : {Ints{6}, Ints{1}, Ints{4, 6}}) {
    for (bool offset : {false, true}) {
      inputs.push_back({source.Random({3, 4, 6}, dtype), source.Random(scale, dtype, 0.02, 0.1),
                        offset ? Arg(at::randint(-9, 9, scale, at::kChar)) : Arg(Null{})});
    }
  }
  return inputs;
}

Tensor RoundedChannels(const In& in) {
  const Tensor quotient = Wide(in[0]) / Wide(in[1]);
  // A half holds the quotient of halves.
  const Tensor held = in[0].scalar_type() == at::kHalf ? Wide(quotient.to(at::kHalf)) : quotient;
  return ToInt8(held.round() + WideOr(in, 2, 0));
}

}  // namespace

Rows BoostRows() {
  const Dtypes halves = {at::kHalf, at::kBFloat16, at::kFloat};
  Rows rows = {
      {"aclnnAtbSelfAttention", BoostAttentions(false), halves, BoostByHead, kBoostByHead},
      {"aclnnAtbPagedAttention", BoostAttentions(true), halves, BoostByHead, kBoostByHead},
      {"aclnnAtbGroupTopk", GroupScores, halves, BestGroups},
      {"aclnnAtbQuantPerChannel", Channels, halves, RoundedChannels, kOnce},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
