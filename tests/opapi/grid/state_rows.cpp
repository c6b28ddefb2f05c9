// Operators of models with compressed keys or with a recurrent state: caches of
// normed and turned rows, results of parts of the keys as one, the gated delta rule step by step
// and in chunks. The references go row by row, in double precision.
#include <cmath>

#include "tests/opapi/grid/formula.h"
#include "tests/opapi/grid/quantized.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Dtypes kStateDtypes = {at::kFloat, at::kHalf, at::kBFloat16};
const Tolerance kStateRowwise = {4, 1e-5, false,
                                 "float32 and one rounding, against double precision"};

// Pairs of neighbours turned by angles: first all first ones, then all second ones.
Tensor TurnedPairs(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  const Tensor a = Wide(x).slice(-1, 0, x.size(-1), 2), b = Wide(x).slice(-1, 1, x.size(-1), 2);
  return at::cat({a, b}, -1) * Wide(cosine) + at::cat({-b, a}, -1) * Wide(sine);
}

// --- aclnnKvRmsNormRopeCache

constexpr double kEpsilon = 1e-3;
constexpr int64_t kNormed = 32, kTurned = 16;

std::vector<Args> LatentRows(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (const char* mode : {"PA", "PA_NZ"}) {
    inputs.push_back(
        {source.Random({2, 1, 3, kNormed + kTurned}, dtype), source.Random({kNormed}, dtype),
         source.Random({2, 1, 3, kTurned}, dtype), source.Random({2, 1, 3, kTurned}, dtype),
         at::tensor({7, 0, -1, 5, 2, 11}, at::kLong), source.Random({3, 4, 1, kTurned}, dtype),
         source.Random({3, 4, 1, kNormed}, dtype), Null{}, Null{}, Null{}, Null{}, kEpsilon, mode,
         true});
  }
  return inputs;
}

// The cache [blocks, slots, 1, width] with each row at its slot. In pieces, the 16 columns of a
// piece of all slots of a block lie together.
Tensor WithLatentRows(const Tensor& cache, const Tensor& rows, const Tensor& slots, bool pieces) {
  const Tensor result = cache.clone(at::MemoryFormat::Contiguous);
  const int64_t block = cache.size(1), width = cache.size(3);
  for (int64_t r = 0; r < slots.size(0); ++r) {
    const auto slot = slots[r].item<int64_t>();
    if (slot < 0) continue;
    const Tensor to = result[slot / block];
    if (!pieces) {
      to[slot % block][0].copy_(rows[r]);
      continue;
    }
    const Tensor apart = to.view({width / 16, block, 16});
    for (int64_t p = 0; p < width / 16; ++p) {
      apart[p][slot % block].copy_(rows[r].slice(0, 16 * p, 16 * p + 16));
    }
  }
  return result;
}

Args LatentRowsOneByOne(const In& in) {
  const Tensor kv = Wide(in[0]), normed = kv.slice(-1, 0, kNormed);
  const Tensor root = (normed * normed).mean({-1}, true).add(kEpsilon).sqrt();
  const at::ScalarType dtype = in[0].scalar_type();
  const Tensor keys = (normed / root * Wide(in[1])).to(dtype);
  const Tensor turned =
      TurnedPairs(kv.slice(-1, kNormed, kNormed + kTurned), in[2], in[3]).to(dtype);
  const bool pieces = std::string(in.text(12)) == "PA_NZ";
  return {WithLatentRows(in[5], turned.reshape({-1, kTurned}), in[4], pieces),
          WithLatentRows(in[6], keys.reshape({-1, kNormed}), in[4], pieces), turned, keys};
}

// --- The gated delta rule

constexpr int64_t kRows = 11, kKeyHeads = 2, kHeads = 4, kKeyWidth = 8, kWidth = 6;

Tensor OfKeyHead(const Tensor& heads, int64_t head) { return heads[head / (kHeads / kKeyHeads)]; }

std::vector<Args> DeltaSteps(Source& source, at::ScalarType dtype) {
  const auto call = [&](const Tensor& slots, const Tensor& lengths, bool of_heads = true,
                        bool of_keys = false) {
    const auto decay = [&](bool given, const std::vector<int64_t>& sizes) {
      return given ? Arg(source.Random(sizes, at::kFloat, -2, 0)) : Arg(Null{});
    };
    return Args{source.Random({kRows, kKeyHeads, kKeyWidth}, dtype, -0.5, 0.5),
                source.Random({kRows, kKeyHeads, kKeyWidth}, dtype, -0.5, 0.5),
                source.Random({kRows, kHeads, kWidth}, dtype),
                source.Random({kRows, kHeads}, dtype, 0, 1),
                source.Random({13, kHeads, kWidth, kKeyWidth}, at::kFloat),
                lengths,
                slots,
                decay(of_heads, {kRows, kHeads}),
                decay(of_keys, {kRows, kHeads, kKeyWidth}),
                Null{},
                0.4};
  };
  const Tensor slots = source.Shuffled(13).slice(0, 0, kRows);
  const Tensor lengths = at::tensor({3, 2, 6}, at::kInt);
  return {call(slots.to(at::kInt), lengths), call(slots.to(at::kInt), lengths, true, true),
          call(slots.to(at::kInt), lengths, false, true),
          call(slots, at::tensor({0, 5, 6}, at::kLong))};  // begins with the place of row 0
}

Args DeltaStepByStep(const In& in) {
  const Tensor states = in[4].clone(), out = at::zeros(in[2].sizes(), at::kDouble);
  int64_t row = 0;
  for (int64_t s = 0; s < in[5].size(0); ++s) {
    const int64_t end = row + in[5][s].item().toLong();
    Tensor state = row < end ? Wide(states[in[6][row].item().toLong()]) : Tensor();
    for (; row < end; ++row) {
      const Tensor next = state.clone();
      for (int64_t h = 0; h < kHeads; ++h) {
        const Tensor key = Wide(OfKeyHead(in[1][row], h));
        if (in.maybe(7)) next[h] *= std::exp(in[7][row][h].item().toDouble());
        if (in.maybe(8)) next[h] *= Wide(in[8][row][h]).exp();
        const Tensor missing = Wide(in[2][row][h]) - at::mv(next[h], key);
        next[h] += at::outer(missing * in[3][row][h].item().toDouble(), key);
        out[row][h].copy_(at::mv(next[h], Wide(OfKeyHead(in[0][row], h))) * in.real(10));
      }
      state = next;
      states[in[6][row].item().toLong()].copy_(state);
    }
  }
  return {states, out.to(in[2].scalar_type())};
}

// Rows 0 to 4 and 5 to 10 are sequences; chunks have four rows.
constexpr int64_t kChunk = 4;
const Ints kBounds = {0, 5, 11};
const std::vector<std::pair<int64_t, int64_t>> kChunks = {{0, 4}, {4, 5}, {5, 9}, {9, 11}};
const Ints kFirstChunks = {0, 2, 4};

std::vector<Args> ChunkedStates(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (bool gated : {false, true}) {
    inputs.push_back(
        {source.Random({1, kKeyHeads, kRows, kKeyWidth}, dtype, -0.5, 0.5),
         source.Random({1, kHeads, kRows, kKeyWidth}, dtype, -0.5, 0.5),
         source.Random({1, kHeads, kRows, kWidth}, dtype),
         gated ? Arg(source.Random({1, kHeads, kRows}, at::kFloat, -2, 0)) : Arg(Null{}), Null{},
         gated ? Arg(source.Random({2, kHeads, kKeyWidth, kWidth}, at::kFloat)) : Arg(Null{}), true,
         kChunk, true, kBounds, Ints{0, 0, 0, 1, 1, 0, 1, 1}, false, false});
  }
  return inputs;
}

Args StatesChunkByChunk(const In& in) {
  const auto chunks = static_cast<int64_t>(kChunks.size());
  const Tensor before = at::zeros({1, kHeads, chunks, kKeyWidth, kWidth}, at::kDouble);
  const Tensor added = Wide(in[2]).clone();
  const Tensor last = at::zeros({2, kHeads, kKeyWidth, kWidth}, at::kDouble);
  if (in.maybe(5)) last.copy_(in[5]);
  for (int64_t c = 0; c < chunks; ++c) {
    for (int64_t h = 0; h < kHeads; ++h) {
      const auto [first, end] = kChunks[c];
      const Tensor state = last[c < kFirstChunks[1] ? 0 : 1][h];
      before[0][h][c].copy_(state);
      const auto gate = [&](int64_t row) {
        return in.maybe(3) ? in[3][0][h][row].item().toDouble() : 0.0;
      };
      Tensor next = state * std::exp(gate(end - 1));
      for (int64_t row = first; row < end; ++row) {
        added[0][h][row] -= at::mv(state.t(), Wide(in[1][0][h][row]));
        next = next + at::outer(Wide(OfKeyHead(in[0][0], h)[row]),
                                added[0][h][row] * std::exp(gate(end - 1) - gate(row)));
      }
      state.copy_(next);
    }
  }
  const at::ScalarType dtype = in[0].scalar_type();
  return {before.to(dtype), added.to(dtype), last.to(at::kFloat)};
}

std::vector<Args> ChunkedReads(Source& source, at::ScalarType dtype) {
  std::vector<int64_t> firsts;  // the chunks of each sequence, which follow from the bounds
  for (const auto& [first, end] : kChunks) firsts.push_back(first);
  std::vector<Args> inputs(
      2, Args{source.Random({1, kKeyHeads, kRows, kKeyWidth}, dtype, -0.5, 0.5),
              source.Random({1, kKeyHeads, kRows, kKeyWidth}, dtype, -0.5, 0.5),
              source.Random({1, kHeads, kRows, kWidth}, dtype),
              source.Random({1, kHeads, static_cast<int64_t>(kChunks.size()), kKeyWidth, kWidth},
                            dtype),
              source.Random({1, kHeads, kRows}, at::kFloat, -2, 0), kBounds, Null{}, 0.4, kChunk});
  inputs[1][6] = firsts;
  return inputs;
}

Tensor ReadsRowByRow(const In& in) {
  const Tensor out = at::zeros(in[2].sizes(), at::kDouble);
  for (size_t c = 0; c < kChunks.size(); ++c) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t row = kChunks[c].first; row < kChunks[c].second; ++row) {
        const Tensor query = Wide(OfKeyHead(in[0][0], h)[row]) * in.real(7);
        const auto gate = [&](int64_t place) { return in[4][0][h][place].item().toDouble(); };
        const Tensor state = Wide(in[3][0][h][static_cast<int64_t>(c)]);
        Tensor sum = at::mv(state.t(), query) * std::exp(gate(row));
        for (int64_t other = kChunks[c].first; other <= row; ++other) {
          const double score = at::dot(query, Wide(OfKeyHead(in[1][0], h)[other])).item<double>();
          sum = sum + Wide(in[2][0][h][other]) * score * std::exp(gate(row) - gate(other));
        }
        out[0][h][row].copy_(sum);
      }
    }
  }
  return out.to(in[2].scalar_type());
}

// --- aclnnCausalConv1d: four rows of a filter, so three of a state

std::vector<Args> ShortConvolutions(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (bool steps : {false, true}) {
    inputs.push_back({source.Random({8, 5}, dtype), source.Random({4, 5}, dtype),
                      steps ? Arg(Null{}) : Arg(source.Random({5}, dtype)),
                      source.Random({6, 3, 5}, dtype), at::tensor({0, 5, 6, 7, 8}, at::kInt),
                      at::tensor({4, -1, 0, 2}, at::kInt).reshape(steps ? Ints{4} : Ints{4, 1}),
                      steps ? Arg(Null{}) : Arg(at::tensor({1, 1, 0, 1}, at::kInt).to(at::kBool)),
                      Null{}, int64_t{steps}, int64_t{-1}, int64_t{steps}});
  }
  return inputs;
}

Args ConvolutionRowByRow(const In& in) {
  const Tensor out = at::zeros(in[0].sizes(), at::kDouble), states = in[3].clone();
  for (int64_t s = 0; s < in[5].size(0); ++s) {
    const int64_t slot = in[5][s].item().toLong(), first = in[4][s].item().toLong();
    if (slot < 0) continue;
    const bool begins = in.maybe(6) ? in[6][s].item().toBool() : true;
    Tensors window;  // this row and the three before it
    for (int64_t i = 0; i < 3; ++i) window.push_back(Wide(in[3][slot][i]) * (begins ? 1.0 : 0.0));
    for (int64_t row = first; row < in[4][s + 1].item().toLong(); ++row) {
      window.push_back(Wide(in[0][row]));
      Tensor sum = in.maybe(2) ? Wide(in[2]) : at::zeros({5}, at::kDouble);
      for (int64_t i = 0; i < 4; ++i) sum = sum + window[i] * Wide(in[1][i]);
      out[row].copy_(in.integer(8) == 1 ? sum / (1 + (-sum).exp()) : sum);
      window.erase(window.begin());
    }
    for (int64_t i = 0; i < 3; ++i) states[slot][i].copy_(window[i]);
  }
  return {states, out.to(in[0].scalar_type())};
}

// --- The rest

std::vector<Args> PartsOfKeys(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (int64_t type : {0, 1}) {
    Tensors sums, parts;
    for (int i = 0; i < 3; ++i) {
      sums.push_back(source.Random({7}, at::kFloat));
      parts.push_back(source.Random({7, 8}, dtype));
    }
    inputs.push_back({sums, parts, type});
  }
  return inputs;
}

Args WeightedByKeys(const In& in) {
  Tensor total = at::zeros({7}, at::kDouble), sum = at::zeros({7, 8}, at::kDouble);
  for (size_t i = 0; i < in.list(0).size(); ++i) {
    const Tensor weight = Wide(in.list(0)[i]).exp();
    total = total + weight;
    sum = sum + Wide(in.list(1)[i]) * weight.unsqueeze(-1);
  }
  return {(sum / total.unsqueeze(-1)).to(in.list(1)[0].scalar_type()),
          in.integer(2) == 1 ? total.log().to(at::kFloat) : Tensor()};
}

}  // namespace

Rows StateRows() {
  Rows rows = {
      {"aclnnKvRmsNormRopeCache", LatentRows, kStateDtypes, LatentRowsOneByOne, kStateRowwise},
      {"aclnnInterleaveRope",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({3, 2, 5, 8}, dtype),
                                   source.Random({3, 1, 5, 8}, dtype),
                                   source.Random({3, 1, 5, 8}, dtype)}};
       },
       kStateDtypes,
       [](const In& in) { return TurnedPairs(in[0], in[1], in[2]).to(in[0].scalar_type()); },
       kStateRowwise},
      {"aclnnAttentionUpdate", PartsOfKeys, kStateDtypes, WeightedByKeys, kStateRowwise},
      {"aclnnTransposeBatchMatMul",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({4, 3, 6}, dtype), source.Random({4, 6, 5}, dtype), Null{}, Null{},
              Ints{0, 1, 2}, Ints{0, 1, 2}, Ints{1, 0, 2}, int64_t{0}, int64_t{1}},
             {source.Random({3, 4, 6}, dtype), source.Random({4, 5, 6}, dtype), Null{}, Null{},
              Ints{1, 0, 2}, Ints{0, 2, 1}, Ints{1, 0, 2}, int64_t{0}, int64_t{1}}};
       },
       kStateDtypes,
       [](const In& in) {
         const Tensor a = Wide(in[0]).permute(in.ints(4)), b = Wide(in[1]).permute(in.ints(5));
         return at::bmm(a, b).permute(in.ints(6)).contiguous().to(in[0].scalar_type());
       },
       {8, 1e-4, false, "libtorch adds up in float32"}},
      {"aclnnFusedGdnGating",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({4}, at::kFloat), source.Random({9, 4}, dtype, -30, 30),
              source.Random({9, 4}, dtype), source.Random({4}, at::kFloat), 1.0, 20.0}};
       },
       kStateDtypes,
       [](const In& in) {
         const auto decay = [](double log, double a, double bias) {
           const double x = a + bias;
           return -std::exp(log) * (x > 20 ? x : std::log1p(std::exp(x)));
         };
         const Tensor weight = Formula([](double b) { return 1 / (1 + std::exp(-b)); }, in[2]);
         return std::make_tuple(Formula(decay, in[0], in[1], in[3]).unsqueeze(0).to(at::kFloat),
                                weight.unsqueeze(0).to(in[2].scalar_type()));
       },
       kStateRowwise},
      {"aclnnCausalConv1d", ShortConvolutions, kStateDtypes, ConvolutionRowByRow, kStateRowwise},
      {"aclnnRecurrentGatedDeltaRule", DeltaSteps, kStateDtypes, DeltaStepByStep, kStateRowwise},
      {"aclnnChunkGatedDeltaRuleFwdH", ChunkedStates, kStateDtypes, StatesChunkByChunk,
       kStateRowwise},
      {"aclnnChunkFwdO", ChunkedReads, kStateDtypes, ReadsRowByRow, kStateRowwise},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
