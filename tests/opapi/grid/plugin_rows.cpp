// Operators that vLLM's plug-in brings for single models: hyper-connections, experts that a table
// names, products of experts, drafts of n-grams. The references go row by row, in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/opapi/grid/formula.h"
#include "tests/opapi/grid/quantized.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;
using Numbers = std::vector<double>;

const Dtypes kDtypes = {at::kFloat, at::kHalf, at::kBFloat16};
const Tolerance kRowwise = {4, 1e-5, false, "float32 and one rounding, against double precision"};

// --- Hyper-connections

Ints Leading(const Tensor& x) { return x.sizes().slice(0, x.dim() - 2).vec(); }
Ints With(Ints sizes, const Ints& more) {
  sizes.insert(sizes.end(), more.begin(), more.end());
  return sizes;
}

Tensor RootsRowByRow(const Tensor& x, double epsilon) {
  const Tensor rows = Wide(x).flatten(-2).reshape({-1, x.size(-1) * x.size(-2)});
  const Tensor roots = at::empty({rows.size(0)}, at::kDouble);
  for (int64_t row = 0; row < rows.size(0); ++row) {
    double sum = 0;
    for (int64_t i = 0; i < rows.size(1); ++i) sum += std::pow(rows[row][i].item<double>(), 2);
    roots[row].fill_(1 / std::sqrt(sum / static_cast<double>(rows.size(1)) + epsilon));
  }
  return roots.reshape(With(Leading(x), {1}));
}

// The matrix with rows, then columns scaled to the sum 1, so many times; the first time the rows
// are a softmax.
void Balance(std::vector<Numbers>& matrix, int64_t iterations, double epsilon) {
  const size_t count = matrix.size();
  for (Numbers& row : matrix) {
    const double greatest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (double& x : row) sum += x = std::exp(x - greatest);
    for (double& x : row) x = x / sum + epsilon;
  }
  for (int64_t i = 0; i < iterations; ++i) {
    for (Numbers& row : matrix) {
      double sum = epsilon;
      for (double x : row) sum += x;
      for (double& x : row) x /= i == 0 ? 1 : sum;
    }
    for (size_t column = 0; column < count; ++column) {
      double sum = epsilon;
      for (const Numbers& row : matrix) sum += row[column];
      for (Numbers& row : matrix) row[column] /= sum;
    }
  }
}

// Weights [..., mixes] in double, not yet scaled by `roots`.
Args Collapsed(const Tensor& x, const Tensor& weights, const Tensor& roots, const Tensor& scale,
               const Tensor& base, int64_t iterations, double epsilon) {
  const int64_t count = x.size(-2), width = x.size(-1);
  const Tensor streams = Wide(x).reshape({-1, count, width});
  const Tensor mixes = weights.reshape({streams.size(0), -1}), root = Wide(roots).flatten();
  const Tensor y = at::zeros({streams.size(0), width}, at::kDouble);
  const Tensor post = at::zeros({streams.size(0), count}, at::kDouble);
  const Tensor mixed = at::zeros({streams.size(0), count, count}, at::kDouble);
  for (int64_t row = 0; row < streams.size(0); ++row) {
    const auto logit = [&](int64_t i) {
      const int64_t part = std::min<int64_t>(i / count, 2);
      return mixes[row][i].item<double>() * root[row].item<double>() *
                 scale[part].item().toDouble() +
             base[i].item().toDouble();
    };
    const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
    std::vector<Numbers> matrix(count, Numbers(count));
    for (int64_t i = 0; i < count; ++i) {
      y[row] += streams[row][i] * (sigmoid(logit(i)) + epsilon);
      post[row][i].fill_(2 * sigmoid(logit(count + i)));
      for (int64_t j = 0; j < count; ++j) matrix[i][j] = logit((2 + i) * count + j);
    }
    Balance(matrix, iterations, epsilon);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < count; ++j) mixed[row][i][j].fill_(matrix[i][j]);
    }
  }
  return {y.reshape(With(Leading(x), {width})).to(at::kBFloat16),
          post.reshape(With(Leading(x), {count})).to(at::kFloat),
          mixed.reshape(With(Leading(x), {count, count})).to(at::kFloat)};
}

// Streams of different shapes: [x, scales, bases].
std::vector<Tensors> StreamsOf(Source& source) {
  std::vector<Tensors> result;
  for (const Ints& sizes : {Ints{3, 4, 9}, Ints{2, 1, 4, 16}, Ints{1, 1, 1}, Ints{2, 3, 2, 5}}) {
    const int64_t count = sizes[sizes.size() - 2];
    result.push_back({source.Random(sizes, at::kBFloat16), source.Random({3}, at::kFloat),
                      source.Random({(2 + count) * count}, at::kFloat)});
  }
  return result;
}

std::vector<Args> Sinkhorns(Source& source, at::ScalarType) {
  std::vector<Args> inputs;
  for (const Tensors& of : StreamsOf(source)) {
    for (int64_t iterations : {1, 2, 20}) {
      inputs.push_back({source.Random(With(Leading(of[0]), {of[2].size(0)}), at::kFloat),
                        source.Random(With(Leading(of[0]), {1}), at::kFloat, 0.1, 2), of[1], of[2],
                        of[0], of[0].size(-2), iterations, 1e-3});
    }
  }
  return inputs;
}

std::vector<Args> WholeSteps(Source& source, at::ScalarType) {
  std::vector<Args> inputs;
  for (const Tensors& of : StreamsOf(source)) {
    const int64_t inner = of[0].size(-2) * of[0].size(-1);
    inputs.push_back({of[0], source.Random({of[2].size(0), inner}, at::kFloat, -0.3, 0.3), of[1],
                      of[2], of[0].size(-2), int64_t{20}, 1e-6, 1e-5});
  }
  return inputs;
}

Args StepRowByRow(const In& in) {
  const Tensor rows = Wide(in[0]).flatten(-2), weights = Wide(in[1]);
  const Tensor flat = rows.reshape({-1, rows.size(-1)});
  const Tensor mixes = at::zeros({flat.size(0), weights.size(0)}, at::kDouble);
  for (int64_t row = 0; row < flat.size(0); ++row) {
    for (int64_t i = 0; i < weights.size(0); ++i) {
      mixes[row][i].fill_(at::dot(flat[row], weights[i]).item<double>());
    }
  }
  return Collapsed(in[0], mixes, RootsRowByRow(in[0], in.real(7)), in[2], in[3], in.integer(5),
                   in.real(6));
}

std::vector<Args> MixedStreams(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (at::ScalarType weights : kDtypes) {
    for (const Ints& sizes : {Ints{2, 3, 4, 7}, Ints{1, 1, 1, 1}, Ints{1, 5, 3, 33}}) {
      inputs.push_back({source.Random({sizes[0], sizes[1], sizes[3]}, dtype),
                        source.Random(sizes, dtype),
                        source.Random({sizes[0], sizes[1], sizes[2]}, weights),
                        source.Random({sizes[0], sizes[1], sizes[2], sizes[2]}, weights)});
    }
  }
  return inputs;
}

Tensor StreamByStream(const In& in) {
  const Tensor out = at::zeros(in[1].sizes(), at::kDouble);
  for (int64_t b = 0; b < out.size(0); ++b) {
    for (int64_t s = 0; s < out.size(1); ++s) {
      for (int64_t j = 0; j < out.size(2); ++j) {
        Tensor sum = Wide(in[0][b][s]) * in[2][b][s][j].item().toDouble();
        for (int64_t i = 0; i < out.size(2); ++i) {
          sum = sum + Wide(in[1][b][s][i]) * in[3][b][s][i][j].item().toDouble();
        }
        out[b][s][j].copy_(sum);
      }
    }
  }
  return out.to(in[1].scalar_type());
}

// --- Experts

std::vector<Args> Gatings(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto add = [&](Arg bias, Arg ids, Arg table, int64_t k, int64_t kept, int64_t groups,
                       int64_t mode, int64_t norm) {
    inputs.push_back({source.Random({5, 12}, dtype), std::move(bias), std::move(ids),
                      std::move(table), k, kept, groups, mode, int64_t{0}, norm, true, 1.5, 1e-6});
  };
  for (int64_t norm : {0, 1, 2}) {
    add(Null{}, Null{}, Null{}, 3, 1, 1, 0, norm);
    add(source.Random({12}, dtype), Null{}, Null{}, 1, 1, 1, 1, norm);
    for (at::ScalarType index : {at::kInt, at::kLong}) {
      add(Null{}, source.Indices({5}, 4, index), source.Indices({4, 2}, 12, at::kInt), 2, 1, 1, 0,
          norm);
    }
  }
  for (int64_t mode : {0, 1}) add(source.Random({12}, dtype), Null{}, Null{}, 4, 2, 4, mode, 1);
  add(source.Random({12}, dtype), source.Indices({5, 1}, 3), source.Indices({3, 12}, 12), 12, 4, 4,
      0, 0);
  return inputs;
}

// Calls of aclnnMoeGatingTopKV2, which may divide weights of a softmax by their sum.
std::vector<Args> GatingsV2(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (Args& args : Gatings(source, dtype)) {
    if (std::get<int64_t>(args[9]) == 2) continue;
    Args divided = args;
    divided[8] = int64_t{1};
    inputs.insert(inputs.end(), {std::move(args), std::move(divided)});
  }
  return inputs;
}

Numbers ScoresOf(const Tensor& row, int64_t norm) {
  Numbers scores;
  double sum = 0;
  for (int64_t i = 0; i < row.numel(); ++i) {
    const double e = std::exp(row[i].item<double>());
    sum += e;
    scores.push_back(norm == 0 ? e : norm == 1 ? e / (1 + e) : std::sqrt(std::log1p(e)));
  }
  for (double& score : scores) score /= norm == 0 ? sum : 1;
  return scores;
}

// The places of the `count` greatest of some numbers, the greatest first.
Ints Greatest(const Numbers& numbers, int64_t count) {
  Ints places(numbers.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  std::stable_sort(places.begin(), places.end(),
                   [&](int64_t a, int64_t b) { return numbers[a] > numbers[b]; });
  places.resize(count);
  return places;
}

Ints ChosenExperts(const In& in, int64_t row, const Numbers& scores) {
  if (in.maybe(3)) {
    const Tensor experts = in[3][in[2].flatten()[row].item().toLong()].to(at::kLong).contiguous();
    return {experts.data_ptr<int64_t>(), experts.data_ptr<int64_t>() + experts.numel()};
  }
  Numbers wanted = scores;
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] += in.maybe(1) ? in[1][static_cast<int64_t>(i)].item().toDouble() : 0;
  }
  const int64_t groups = in.integer(6), each = static_cast<int64_t>(wanted.size()) / groups;
  Numbers of_group;
  for (int64_t group = 0; group < groups; ++group) {
    Numbers members(wanted.begin() + group * each, wanted.begin() + (group + 1) * each);
    std::sort(members.rbegin(), members.rend());
    of_group.push_back(members[0] + (in.integer(7) == 1 ? members[1] : 0));
  }
  const Ints kept = Greatest(of_group, in.integer(5));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::count(kept.begin(), kept.end(), static_cast<int64_t>(i) / each) == 0) {
      wanted[i] = -INFINITY;
    }
  }
  return Greatest(wanted, in.integer(4));
}

Args GatingRowByRow(const In& in) {
  const int64_t rows = in[0].size(0), k = in.integer(4), norm = in.integer(9);
  const Tensor y = at::zeros({rows, k}, at::kDouble), experts = at::zeros({rows, k}, at::kInt);
  const Tensor all = at::zeros(in[0].sizes(), at::kDouble);
  for (int64_t row = 0; row < rows; ++row) {
    const Numbers scores = ScoresOf(Wide(in[0][row]), norm);
    const Ints chosen = ChosenExperts(in, row, scores);
    const bool divided = norm != 0 || in.integer(8) == 1;
    double sum = divided ? in.real(12) : 1;
    for (int64_t expert : chosen) sum += divided ? scores[expert] : 0;
    for (int64_t i = 0; i < k; ++i) {
      y[row][i].fill_(scores[chosen[i]] / sum * in.real(11));
      experts[row][i].fill_(chosen[i]);
    }
    for (size_t i = 0; i < scores.size(); ++i) all[row][static_cast<int64_t>(i)].fill_(scores[i]);
  }
  return {y.to(in[0].scalar_type()), experts, all.to(at::kFloat)};
}

std::vector<Args> ExpertProducts(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (bool transposed : {false, true}) {
    const auto add = [&](int64_t rows, const Ints& groups, at::ScalarType index) {
      const Tensor weight = source.Random({4, 6, 5}, dtype);
      inputs.push_back({Tensors{source.Random({rows, 6}, dtype)},
                        Tensors{transposed ? weight.transpose(1, 2).contiguous() : weight},
                        at::tensor(groups, at::kLong).reshape({-1, 2}).to(index), transposed});
    };
    add(7, {2, 3, 0, 1, 3, 3}, at::kLong);
    add(1, {3, 1, 1, 0, 2, 5}, at::kInt);  // ends at the group without rows
    add(0, {}, at::kLong);
  }
  return inputs;
}

Args ProductRowByRow(const In& in) {
  const Tensor x = Wide(in.list(0)[0]), weights = Wide(in.list(1)[0]);
  const Tensor out = at::zeros({x.size(0), 5}, at::kDouble);
  int64_t row = 0;
  for (int64_t g = 0; g < in[2].size(0); ++g) {
    const int64_t expert = in[2][g][0].item().toLong(), count = in[2][g][1].item().toLong();
    if (count <= 0) break;
    for (int64_t end = row + count; row < end; ++row) {
      const Tensor matrix = in.flag(3) ? weights[expert] : weights[expert].t();
      for (int64_t i = 0; i < 5; ++i) out[row][i].fill_(at::dot(x[row], matrix[i]).item<double>());
    }
  }
  return {Tensors{out.to(in.list(0)[0].scalar_type())}};
}

// --- Quantised experts

std::vector<Args> QuantizedExperts(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto add = [&](int64_t rows, int64_t inner, int64_t columns, const Ints& ends,
                       double limit) {
    Tensors weights, scales;
    for (size_t i = 0; i < ends.size(); ++i) {
      weights.push_back(source.Random({inner, columns}, at::kChar, -100, 100));
      scales.push_back(source.Random({columns}, dtype, 0.001, 0.01));
    }
    inputs.push_back({source.Random({rows, inner}, at::kChar, -100, 100), weights, Null{}, Null{},
                      scales, source.Random({rows}, at::kFloat, 0.001, 0.03),
                      at::tensor(ends, at::kLong), limit});
  };
  add(7, 6, 10, {3, 3, 7}, 0.0);
  add(5, 16, 32, {0, 5}, 0.7);
  add(1, 1, 2, {1}, 7.0);
  add(0, 3, 4, {0, 0}, 0.0);
  return inputs;
}

Args ExpertsRowByRow(const In& in) {
  const Tensor x = Wide(in[0]), x_scale = Wide(in[5]);
  const int64_t rows = x.size(0), width = in.list(1)[0].size(1) / 2;
  const double limit = in.real(7);
  const Tensor out = at::zeros({rows, width}, at::kDouble), scale = at::zeros({rows}, at::kDouble);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t expert = 0;
    while (in[6][expert].item().toLong() <= row) ++expert;
    const auto column = [&](int64_t i) {
      return at::dot(x[row], Wide(in.list(1)[expert]).select(1, i)).item<double>() *
             x_scale[row].item<double>() * in.list(4)[expert][i].item().toDouble();
    };
    Numbers values;
    double greatest = 0;
    for (int64_t i = 0; i < width; ++i) {
      double gate = column(i), value = column(width + i);
      if (limit > 0) {
        gate = std::min(gate, limit);
        value = std::clamp(value, -limit, limit);
      }
      values.push_back(value * gate / (1 + std::exp(-gate)));
      greatest = std::max(greatest, std::abs(values.back()));
    }
    scale[row].fill_(greatest / 127);
    for (int64_t i = 0; i < width; ++i) {
      out[row][i].fill_(std::nearbyint(values[i] * 127 / greatest));
    }
  }
  return {out.to(at::kChar), scale.to(at::kFloat), Tensor()};
}

// --- aclnnLightningIndexerQuant

std::vector<Args> IndexedKeys(Source& source, at::ScalarType) {
  std::vector<Args> inputs;
  const auto add = [&](const Ints& query, const Ints& key, Arg query_ends, Arg key_ends, Arg table,
                       const char* queries, const char* keys, int64_t most, int64_t mode) {
    const Ints of_query(query.begin(), query.end() - 1), of_key(key.begin(), key.end() - 1);
    inputs.push_back(
        {source.Random(query, at::kChar, -60, 60), source.Random(key, at::kChar, -60, 60),
         source.Random(of_query, at::kHalf, -1, 1), source.Random(of_query, at::kHalf, 0.1, 1),
         source.Random(of_key, at::kHalf, 0.1, 1), std::move(query_ends), std::move(key_ends),
         std::move(table), int64_t{0}, int64_t{0}, queries, keys, most, mode});
  };
  const Tensor ends = at::tensor({2, 2, 5}, at::kInt), lengths = at::tensor({7, 0, 2}, at::kInt);
  const Tensor table = at::tensor({4, 0, 2, -1, 3, -1}, at::kInt).reshape({3, 2});
  for (int64_t mode : {0, 3}) {
    for (int64_t most : {3, 9}) {
      add({5, 2, 128}, {5, 4, 1, 128}, ends, lengths, table, "TND", "PA_BSND", most, mode);
    }
    add({2, 3, 4, 128}, {2, 5, 1, 128}, Null{}, Null{}, Null{}, "BSND", "BSND", 4, mode);
    add({2, 3, 1, 128}, {2, 5, 1, 128}, at::tensor({2, 0}, at::kInt), at::tensor({5, 1}, at::kInt),
        Null{}, "BSND", "BSND", 6, mode);
    add({5, 3, 128}, {9, 1, 128}, ends, at::tensor({4, 5, 9}, at::kInt), Null{}, "TND", "TND", 5,
        mode);
  }
  add({1, 2, 3, 128}, {2, 4, 1, 128}, Null{}, at::tensor({6}, at::kInt),
      at::tensor({1, 0}, at::kInt).reshape({1, 2}), "", "", 4, 3);
  return inputs;
}

// The same with keys that stand for several tokens each.
std::vector<Args> CompressedKeys(Source& source, at::ScalarType) {
  std::vector<Args> inputs;
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  const auto add = [&](const Ints& query, Arg query_ends, const Ints& tokens, const char* layout,
                       int64_t most, int64_t mode, int64_t ratio) {
    const Ints of_query(query.begin(), query.end() - 1);
    const auto sequences = static_cast<int64_t>(tokens.size());
    const Tensor table = source.Shuffled(9).narrow(0, 0, 3 * sequences).to(at::kInt);
    inputs.push_back({source.Random(query, at::kChar, -60, 60),
                      source.Random({9, 4, 1, 128}, at::kChar, -60, 60),
                      source.Random(of_query, at::kHalf, -1, 1),
                      source.Random(of_query, at::kHalf, 0.1, 1),
                      source.Random({9, 4, 1}, at::kHalf, 0.1, 1),
                      std::move(query_ends),
                      at::tensor(tokens, at::kInt),
                      table.reshape({sequences, 3}),
                      at::zeros({1024}, at::kInt),
                      int64_t{0},
                      int64_t{0},
                      layout,
                      "PA_BSND",
                      most,
                      mode,
                      kAll,
                      kAll,
                      ratio,
                      false,
                      int64_t{0},
                      int64_t{0}});
  };
  const Tensor ends = at::tensor({2, 2, 5}, at::kInt), begun = at::tensor({0, 2, 2, 5}, at::kInt);
  for (int64_t mode : {0, 3}) {
    for (int64_t ratio : {1, 2, 4}) {
      add({5, 2, 128}, ends, {7, 0, 12}, "TND", 3, mode, ratio);
      add({5, 2, 128}, begun, {9, 3, 2}, "TND", 9, mode, ratio);
      add({2, 3, 4, 128}, Null{}, {11, 6}, "BSND", 4, mode, ratio);
    }
    add({2, 3, 1, 128}, at::tensor({2, 0}, at::kInt), {12, 1}, "BSND", 6, mode, 8);
  }
  return inputs;
}

// `modes`: the position of the mode of the queries; `ratio`: that of the tokens a key stands for.
Tensor IndexedTokenByToken(const In& in, int modes, int ratio) {
  const bool packed = in[0].dim() == 3, blocks = in.maybe(7).has_value();
  const int64_t heads = in[0].size(-2), most = in.integer(modes + 4);
  const int64_t tokens = ratio < 0 ? 1 : in.integer(ratio);
  const Tensor query = Wide(in[0]).reshape({-1, heads, 128}), key = Wide(in[1]).reshape({-1, 128});
  const Tensor factors = (in[2].to(at::kDouble) * in[3].to(at::kDouble)).to(at::kHalf);
  const Tensor factor = Wide(factors).reshape({-1, heads}), scale = Wide(in[4]).flatten();
  Ints sizes = in[0].sizes().vec();
  sizes.back() = most;
  sizes[sizes.size() - 2] = 1;
  const Tensor out = at::full({query.size(0), most}, -1, at::kInt);
  const bool begun = ratio >= 0 && packed && in[5].size(0) == in[6].size(0) + 1;
  const int64_t sequences = packed ? in[5].size(0) - (begun ? 1 : 0) : in[0].size(0);
  const auto read = [&](int i, int64_t s) {
    return in[i][i == 5 && begun ? s + 1 : s].item().toLong();
  };
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t before = s == 0 ? 0 : s - 1;
    const int64_t first = packed ? (s == 0 ? 0 : read(5, before)) : s * in[0].size(1);
    const int64_t rows = packed ? read(5, s) - first : in.maybe(5) ? read(5, s) : in[0].size(1);
    const bool sums = packed && !blocks;
    const int64_t key_first = blocks ? 0
                              : sums ? (s == 0 ? 0 : read(6, before))
                                     : s * in[1].size(1);
    const int64_t keys = sums ? read(6, s) - key_first : in.maybe(6) ? read(6, s) : in[1].size(1);
    for (int64_t i = 0; i < rows; ++i) {
      Numbers scores;
      const int64_t seen = in.integer(modes + 5) == 3 ? keys - rows + i + 1 : keys;
      for (int64_t k = 0; k < seen / tokens; ++k) {
        const int64_t block = blocks ? in[1].size(1) : 1;
        const int64_t place =
            blocks ? in[7][s][k / block].item().toLong() * block + k % block : key_first + k;
        double score = 0;
        for (int64_t h = 0; h < heads; ++h) {
          const double product = at::dot(query[first + i][h], key[place]).item<double>();
          const Tensor kept = at::tensor(std::max(product, 0.0) / 1024, at::kDouble).to(at::kHalf);
          score += kept.item().toDouble() * factor[first + i][h].item<double>();
        }
        scores.push_back(score * scale[place].item<double>());
      }
      const auto count = std::min<int64_t>(static_cast<int64_t>(scores.size()), most);
      const Ints best = Greatest(scores, count);
      for (int64_t k = 0; k < count; ++k) out[first + i][k].fill_(best[k]);
    }
  }
  return out.reshape(sizes);
}

Tensor KeysTokenByToken(const In& in) { return IndexedTokenByToken(in, 8, -1); }
Args CompressedTokenByToken(const In& in) { return {IndexedTokenByToken(in, 9, 17), Tensor()}; }

// --- aclnnNgramSpecDecode

// Rows with few words, so that n-grams come again.
std::vector<Args> TokenRows(Source& source, at::ScalarType) {
  std::vector<Args> inputs;
  for (const auto& [shortest, longest] : {std::pair<int64_t, int64_t>{1, 4}, {2, 3}, {3, 3}}) {
    for (int64_t drafted : {1, 5}) {
      const Tensor sampled = source.Indices({6, 3}, 5, at::kInt);
      sampled[1].fill_(-1);
      sampled[2].copy_(at::tensor({3, 1000, -1}, at::kInt));  // 1000 is outside of the vocabulary
      inputs.push_back({source.Indices({6, 20}, 3, at::kInt),
                        at::tensor({17, 9, 12, 20, 0, 18}, at::kInt), sampled,
                        at::tensor({0, 0, 0, 0, 0, 1}, at::kInt), int64_t{100}, shortest, longest,
                        drafted});
    }
  }
  inputs.push_back({at::zeros({0, 4}, at::kInt), at::zeros({0}, at::kInt),
                    at::zeros({0, 2}, at::kInt), at::zeros({0}, at::kInt), int64_t{100}, int64_t{1},
                    int64_t{1}, int64_t{2}});
  return inputs;
}

Args DraftRowByRow(const In& in) {
  const int64_t requests = in[0].size(0), room = in[0].size(1), drafted = in.integer(7);
  const Tensor tokens = in[0].clone(), next = at::zeros({requests}, at::kInt);
  const Tensor draft = at::full({requests, drafted}, -1, at::kInt), valid = at::zeros_like(next);
  for (int64_t r = 0; r < requests; ++r) {
    const int64_t known = in[1][r].item().toLong();
    Ints row;
    for (int64_t i = 0; i < known; ++i) row.push_back(tokens[r][i].item().toLong());
    Ints added;
    for (int64_t i = 0; i < in[2].size(1); ++i) {
      const int64_t token = in[2][r][i].item().toLong();
      if (in[3][r].item().toLong() == 0 && token != -1 && token < in.integer(4)) {
        added.push_back(token);
      }
    }
    added.resize(std::min<int64_t>(static_cast<int64_t>(added.size()), room - known));
    next[r].fill_(added.empty() ? tokens[r][std::max<int64_t>(known - 1, 0)].item().toLong()
                                : added.back());
    if (added.empty()) continue;
    for (size_t i = 0; i < added.size(); ++i) {
      tokens[r][known + static_cast<int64_t>(i)].fill_(added[i]);
    }
    row.insert(row.end(), added.begin(), added.end());
    const auto size = static_cast<int64_t>(row.size());
    int64_t from = -1;  // the first place after the match
    for (int64_t n = in.integer(6); n >= in.integer(5) && from < 0; --n) {
      for (int64_t begin = 0; begin + n < size && from < 0; ++begin) {
        if (std::equal(row.end() - n, row.end(), row.begin() + begin)) from = begin + n;
      }
    }
    for (int64_t i = 0; from >= 0 && i < drafted && from + i < size; ++i) {
      draft[r][i].fill_(row[from + i]);
      valid[r].fill_(i + 1);
    }
  }
  return {tokens, next, draft, valid};
}

}  // namespace

Rows PluginRows() {
  const Tolerance sums = {8, 2e-2, false, "libtorch rounds sums of halves in another order"};
  const Dtypes halves = {at::kHalf, at::kBFloat16};
  Rows rows = {
      {"aclnnHcPreInvRms",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({3, 4, 9}, dtype), 1e-6},
                                  {source.Random({2, 3, 2, 5}, dtype), 0.0},
                                  {source.Random({1, 1, 1}, dtype), 0.5},
                                  {source.Random({5, 4, 3}, dtype).transpose(0, 2), 1e-6}};
       },
       kDtypes, [](const In& in) { return RootsRowByRow(in[0], in.real(1)).to(at::kFloat); },
       kRowwise},
      {"aclnnHcPreSinkhorn",
       Sinkhorns,
       {at::kBFloat16},
       [](const In& in) {
         return Collapsed(in[4], Wide(in[0]), in[1], in[2], in[3], in.integer(6), in.real(7));
       },
       kRowwise},
      {"aclnnHcPre", WholeSteps, {at::kBFloat16}, StepRowByRow, kRowwise},
      {"aclnnHcPost", MixedStreams, kDtypes, StreamByStream, kRowwise},
      {"aclnnMoeGatingTopKHash", Gatings, kDtypes, GatingRowByRow, kRowwise},
      {"aclnnMoeGatingTopKV2", GatingsV2, kDtypes, GatingRowByRow, kRowwise},
      {"aclnnMoeGroupedMatmul", ExpertProducts, halves, ProductRowByRow, sums},
      {"aclnnMoeGroupedMatmulWeightNz", ExpertProducts, halves, ProductRowByRow, sums},
      {"aclnnGroupedMatmulSwigluQuantWeightNzTensorList", QuantizedExperts, kDtypes,
       ExpertsRowByRow, kRowwise},
      {"aclnnLightningIndexerQuant", IndexedKeys, {at::kChar}, KeysTokenByToken},
      {"aclnnVllmQuantLightningIndexer", CompressedKeys, {at::kChar}, CompressedTokenByToken},
      {"aclnnNgramSpecDecode", TokenRows, {at::kInt}, DraftRowByRow},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
