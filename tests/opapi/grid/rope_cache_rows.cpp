// Rotary positions whose cosines and sines lie in a cache: a formula of doubles, one token at a
// time.
#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kCacheTurned = {4, 4e-6, false,
                                "two products are rounded before they are subtracted"};

// Says which row of the positions column `c` of the cosines takes its angle from.
int64_t PositionRow(const Ints& sections, bool in_turns, int64_t c) {
  if (in_turns) return c < 3 * sections[1] ? c % 3 : 0;
  int64_t row = 0;
  for (int64_t end = sections[0]; c >= end; end += sections[++row]) {
  }
  return row;
}

// `x` of [tokens, heads * width], turned.
Tensor TurnedByCache(const In& in, const Tensor& x, bool in_turns) {
  const Tensor result = x.to(at::kDouble).contiguous().clone(), source = result.clone();
  const Tensor positions = in[0].view({-1, in[0].size(-1)}), cache = in[3].to(at::kDouble);
  Ints sections = in.maybe_ints(4);
  if (!sections.empty() && sections[0] == 0) sections.clear();
  const int64_t width = in.integer(5), half = cache.size(1) / 2;
  const auto from = source.accessor<double, 2>();
  auto to = result.accessor<double, 2>();
  const Tensor dense = cache.contiguous();
  const auto angles = dense.accessor<double, 2>();
  for (int64_t token = 0; token < x.size(0); ++token) {
    for (int64_t c = 0; c < half; ++c) {
      const int64_t row = sections.empty() ? 0 : PositionRow(sections, in_turns, c);
      const auto place = positions[row][token].item<int64_t>();
      const double cosine = angles[place][c], sine = angles[place][half + c];
      for (int64_t begin = 0; begin < x.size(1); begin += width) {
        const int64_t a = begin + (in.flag(6) ? c : 2 * c), b = in.flag(6) ? a + half : a + 1;
        to[token][a] = from[token][a] * cosine - from[token][b] * sine;
        to[token][b] = from[token][b] * cosine + from[token][a] * sine;
      }
    }
  }
  return result.to(x.scalar_type());
}

// Three tokens; a head of `width` columns, of which the first `rotary` turn.
Args RopeCall(Source& source, at::ScalarType dtype, const Arg& sections, int64_t rows,
              int64_t width, int64_t rotary, bool halves) {
  const Tensor positions = source.Indices(rows == 0 ? Ints{3} : Ints{rows, 3}, 5);
  return {positions,
          source.Random({3, 2 * width}, dtype),
          source.Random({3, width}, dtype),
          source.Random({5, rotary}, dtype),
          sections,
          width,
          halves};
}

// The calls that both versions take.
std::vector<Args> RopeCalls(Source& source, at::ScalarType dtype) {
  std::vector<Args> calls;
  for (const bool halves : {true, false}) {
    calls.push_back(RopeCall(source, dtype, Null{}, 0, 64, 64, halves));
    calls.push_back(RopeCall(source, dtype, Ints{0, 0, 0}, 0, 96, 32, halves));
    calls.push_back(RopeCall(source, dtype, Ints{16, 24, 24}, 3, 128, 128, halves));
    calls.push_back(RopeCall(source, dtype, Ints{8, 12, 12}, 3, 96, 64, halves));
  }
  calls.push_back(RopeCall(source, dtype, Ints{24, 20, 20}, 3, 128, 128, true));
  calls.push_back(RopeCall(source, dtype, Ints{16, 16, 16, 16}, 4, 128, 128, true));
  Args apart = RopeCall(source, dtype, Null{}, 0, 32, 32, true);
  apart[0] = source.Indices({3, 2}, 5).select(1, 1);
  apart[1] = source.Random({64, 3}, dtype).transpose(0, 1);
  apart[3] = source.Random({5, 64}, dtype).slice(1, 0, 64, 2);
  calls.push_back(apart);
  return calls;
}

}  // namespace

Rows RopeCacheRows() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  Rows rows = {
      {"aclnnRopeWithSinCosCache", RopeCalls, dtypes,
       [](const In& in) {
         return std::make_tuple(TurnedByCache(in, in[1], false), TurnedByCache(in, in[2], false));
       },
       kCacheTurned},
      {"aclnnRopeWithSinCosCacheV2",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> calls = RopeCalls(source, dtype);
         for (Args& call : calls) call.emplace_back(int64_t{0});
         for (const Ints& sections : {Ints{24, 20, 20}, Ints{11, 11, 10}, Ints{0, 0, 0}}) {
           const int64_t count = 2 * (sections[0] + sections[1] + sections[2]);
           const int64_t rotary = count == 0 ? 64 : count;
           calls.push_back(
               RopeCall(source, dtype, sections, count == 0 ? 0 : 3, 128, rotary, true));
           calls.back().emplace_back(int64_t{1});
         }
         return calls;
       },
       dtypes,
       [](const In& in) {
         const bool in_turns = in.integer(7) == 1;
         return std::make_tuple(TurnedByCache(in, in[1], in_turns),
                                TurnedByCache(in, in[2], in_turns));
       },
       kCacheTurned},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
