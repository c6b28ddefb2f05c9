// Attention of vLLM's plug-in whose keys are its values (aclnnSparseAttnSharedkv), token by token
// in double precision.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kRowsOfBlock = 16, kBlocksOfCache = 24, kWidthOfKey = 8;
constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

struct SharedKvCase {
  const char* layout;
  Ints query;  // [tokens, heads, width] or [sequences, tokens, heads, width]
  Ints ends;   // rows of packed queries up to each sequence
  Ints used;   // tokens of each sequence
  int64_t before, after;
  int64_t ratio;    // 0: no compressed keys
  int64_t choices;  // 0: all of them
  bool sinks;
};

std::vector<Args> SharedKvCalls(Source& source, at::ScalarType dtype) {
  const Ints packed = {5, 4, kWidthOfKey}, padded = {2, 3, 4, kWidthOfKey};
  const Ints ends = {0, 2, 2, 5};
  const SharedKvCase cases[] = {
      {"TND", packed, ends, {20, 5, 37}, 127, 0, 0, 0, true},
      {"TND", packed, ends, {20, 0, 37}, 6, 0, 4, 0, false},
      {"TND", packed, ends, {30, 5, 41}, 6, 2, 4, 7, true},
      {"TND", packed, {0, 3, 4, 5}, {2, 1, 9}, 127, 0, 4, 3, true},  // more queries than tokens
      {"TND", packed, ends, {129, 1, 260}, 127, 0, 128, 0, true},
      {"BSND", padded, {}, {40, 2}, 127, 0, 0, 0, false},
      {"BSND", padded, {}, {40, 11}, 3, 1, 4, 5, true},
      {"BSND", padded, {}, {40, 11}, kNoBound, kNoBound, 0, 0, true},
      {"BSND", padded, {}, {256, 300}, 9, 0, 128, 0, false},
  };
  std::vector<Args> inputs;
  for (const SharedKvCase& c : cases) {
    const auto sequences = static_cast<int64_t>(c.used.size());
    const auto cache = [&] {
      return source.Random({kBlocksOfCache, kRowsOfBlock, 1, kWidthOfKey}, dtype);
    };
    // Blocks of a sequence in disorder; those of different sequences may be the same ones.
    const auto table = [&](int64_t columns) {
      return source.Indices({sequences, columns}, kBlocksOfCache, at::kInt);
    };
    Args args(25, Null{});
    args[0] = source.Random(c.query, dtype);
    args[1] = cache();
    args[5] = table(19);
    if (c.ratio != 0) {
      args[2] = cache();
      args[6] = table(5);
    }
    if (c.choices != 0) {
      Ints sizes = c.query;
      sizes[sizes.size() - 2] = 1;
      sizes.back() = c.choices;
      Tensor chosen = source.Indices(sizes, 9, at::kInt);
      chosen.slice(-1, c.choices - 2, c.choices - 1).fill_(-1);  // the list ends here
      args[4] = chosen;
    }
    if (!c.ends.empty()) args[7] = at::tensor(c.ends, at::kInt);
    args[11] = at::tensor(c.used, at::kInt);
    if (c.sinks) args[12] = source.Random({4}, at::kFloat);
    args[13] = at::zeros({1024}, at::kInt);
    const Args numbers = {0.35,       std::max<int64_t>(c.ratio, 1),
                          int64_t{4}, int64_t{3},
                          int64_t{0}, int64_t{0},
                          c.before,   c.after,
                          c.layout,   "PA_ND",
                          false};
    std::copy(numbers.begin(), numbers.end(), args.begin() + 14);
    inputs.push_back(args);
  }
  return inputs;
}

Args SharedKvTokenByToken(const In& in) {
  const int64_t heads = in[0].size(-2), width = in[0].size(-1), ratio = in.integer(15);
  const Tensor query = in[0].to(at::kDouble).reshape({-1, heads, width});
  const Tensor out = at::zeros_like(query);
  const auto number = [](const Tensor& tensor) { return tensor.item().toLong(); };
  const auto row = [&](int cache, int64_t s, int64_t i) {
    const int64_t block = number(in[cache + 4][s][i / kRowsOfBlock]);
    return in[cache][block][i % kRowsOfBlock][0].to(at::kDouble);
  };
  for (int64_t s = 0; s < in[11].size(0); ++s) {
    const bool packed = in.maybe(7).has_value();
    const int64_t first = packed ? number(in[7][s]) : s * in[0].size(1);
    const int64_t queries = packed ? number(in[7][s + 1]) - first : in[0].size(1);
    const int64_t tokens = number(in[11][s]);
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t position = tokens - queries + i;  // the query is this token
      if (position < 0) continue;
      Tensors keys;
      for (int64_t k = 0; k < tokens; ++k) {
        if (position - k <= in.integer(20) && k - position <= in.integer(21)) {
          keys.push_back(row(1, s, k));
        }
      }
      const int64_t complete = in.maybe(2) ? (position + 1) / ratio : 0;
      if (in.maybe(4)) {
        const Tensor chosen = in[4].reshape({-1, in[4].size(-1)})[first + i];
        for (int64_t k = 0; k < std::min(complete, chosen.size(0)); ++k) {
          if (number(chosen[k]) < 0) break;
          if (number(chosen[k]) < complete) keys.push_back(row(2, s, number(chosen[k])));
        }
      } else {
        for (int64_t k = 0; k < complete; ++k) keys.push_back(row(2, s, k));
      }
      const Tensor key = at::stack(keys);
      for (int64_t h = 0; h < heads; ++h) {
        const Tensor weights = (at::mv(key, query[first + i][h]) * in.real(14)).exp();
        double sum = weights.sum().item<double>();
        if (in.maybe(12)) sum += std::exp(in[12][h].item().toDouble());
        out[first + i][h].copy_(at::mv(key.t(), weights) / sum);
      }
    }
  }
  return {out.reshape(in[0].sizes()).to(in[0].scalar_type()), Tensor()};
}

// (five arrays of lengths, numbers, layouts, flags): the plan of the work is empty.
std::vector<Args> SharedKvPlans(Source&, at::ScalarType) {
  Args args(5, Null{});
  args[0] = at::tensor({0, 2, 5}, at::kInt);
  args[4] = at::tensor({20, 37}, at::kInt);
  for (int i = 0; i < 13; ++i) args.push_back(int64_t{4});
  args.insert(args.end(), {"TND", "PA_ND", true, false});
  return {args};
}

// (two arrays of lengths, numbers, two layouts, numbers): the plan of the work is empty.
std::vector<Args> IndexerPlans(Source&, at::ScalarType) {
  std::vector<Args> calls;
  for (const bool lengths : {true, false}) {
    Args args(2, Null{});
    if (lengths) args = {at::tensor({2, 5}, at::kInt), at::tensor({20, 37}, at::kInt)};
    for (int i = 0; i < 8; ++i) args.push_back(int64_t{4});
    args.insert(args.end(), {"TND", "PA_BSND"});
    for (int i = 0; i < 5; ++i) args.push_back(int64_t{4});
    calls.push_back(std::move(args));
  }
  return calls;
}

Tensor EmptyPlan(const In&) { return at::zeros({1024}, at::kInt); }

}  // namespace

Rows SharedKvRows() {
  const Tolerance rounded = {4, 1e-5, false, "float32 and one rounding, against double precision"};
  Rows rows = {{"aclnnSparseAttnSharedkv",
                SharedKvCalls,
                {at::kHalf, at::kBFloat16},
                SharedKvTokenByToken,
                rounded},
               {"aclnnSparseAttnSharedkvMetadata", SharedKvPlans, {at::kInt}, EmptyPlan},
               {"aclnnVllmQuantLightningIndexerMetadata", IndexerPlans, {at::kInt}, EmptyPlan}};
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
