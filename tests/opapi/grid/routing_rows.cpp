// Tokens on their way to experts and back: slices of the rows, maps of who goes where, and rows
// that are quantised on the way. References go row by row, in double precision.
#include <algorithm>
#include <numeric>

#include "tests/opapi/grid/quantized.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kRouted = {16, 1e-5, false, "sums of a few products, in float32 and in float64"};
const Dtypes kRoutedDtypes = {at::kFloat, at::kHalf, at::kBFloat16};

int64_t EntryOf(const Tensor& tensor, int64_t i) { return tensor[i].item().toLong(); }

// The flat positions in the order of their experts.
Ints OrderOf(const Tensor& experts) {
  const Tensor flat = experts.reshape(-1);
  Ints order(flat.numel());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return EntryOf(flat, a) < EntryOf(flat, b); });
  return order;
}

Tensor InverseOf(const Ints& order) {
  Ints inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
  return at::tensor(inverse, at::kLong).to(at::kInt);
}

// The numbers that argument `i` gives, or the other ones.
Ints IntsOr(const In& in, int i, const Ints& otherwise) {
  const Ints range = in.maybe_ints(i);
  return range.empty() ? otherwise : range;
}

// --- Slices of the rows in the order of the experts.

// (tokens, indices, probs?, range?, numOutTokens, paddedMode)
Args SlicePermuted(const In& in) {
  const Ints order = OrderOf(in[1]);
  const int64_t rows = in[1].numel(), k = in[1].dim() == 1 ? 1 : in[1].size(1);
  const int64_t wanted = in.integer(4);
  const Ints range = IntsOr(in, 3, {0, wanted > 0 ? std::min(wanted, rows) : rows + wanted});
  const bool weighted = !in.maybe_ints(3).empty() && in.maybe(2);
  const Tensor out = at::zeros({range[1] - range[0], in[0].size(1)}, in[0].options());
  const Tensor probs = weighted ? at::zeros({range[1] - range[0]}, in[2].options()) : Tensor();
  for (int64_t i = range[0]; i < range[1]; ++i) {
    out[i - range[0]].copy_(in[0][order[i] / k]);
    if (weighted) probs[i - range[0]].copy_(in[2].reshape(-1)[order[i]]);
  }
  return {out, InverseOf(order), probs};
}

// (permutedTokensOutputGrad, sortedIndices, permutedProbsOutputGrad?, numTopk, range?, paddedMode)
Args SlicePermutedBack(const In& in) {
  const int64_t k = in.integer(3), rows = in[1].numel();
  const Ints range = IntsOr(in, 4, {0, in[0].size(0)});
  const bool weighted = !in.maybe_ints(4).empty() && in.maybe(2);
  const Tensor sums = at::zeros({rows / k, in[0].size(1)}, at::kDouble);
  const Tensor probs = at::zeros({rows / k, k}, at::kDouble);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = EntryOf(in[1], i) - range[0];
    if (row < 0 || row >= range[1] - range[0]) continue;
    sums[i / k] += Wide(in[0][row]);
    if (weighted) probs[i / k][i % k] = Wide(in[2][row]);
  }
  const at::ScalarType dtype = in[0].scalar_type();
  return {sums.to(dtype), weighted ? probs.to(dtype) : Tensor()};
}

// (permutedTokens, sortedIndices, probs?, numTopk, range?, paddedMode, restoreShape?)
Tensor SliceUnpermuted(const In& in) {
  const bool sliced = !in.maybe_ints(4).empty();
  const int64_t rows = in[1].numel();
  const int64_t k = sliced ? in.integer(3) : in.maybe(2) ? in[2].size(1) : 1;
  const Ints range = IntsOr(in, 4, {0, in[0].size(0)});
  const Tensor sums = at::zeros({rows / k, in[0].size(1)}, at::kDouble);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = EntryOf(in[1], i) - range[0];
    if (row < 0 || row >= range[1] - range[0]) continue;
    const Tensor part = in.maybe(2) ? Wide(in[2][i / k][i % k]) : at::ones({}, at::kDouble);
    sums[i / k] += Wide(in[0][row]) * part;
  }
  return sums.to(in[0].scalar_type());
}

// (unpermutedTokensGrad, sortedIndices, permutedTokens?, probs?, paddedMode, restoreShape?, range?,
// topkNum)
Args SliceUnpermutedBack(const In& in) {
  const int64_t rows = in[1].numel(), k = in.maybe(3) ? in[3].size(1) : 1;
  const Ints range = IntsOr(in, 6, {0, rows});
  const Tensor out = at::zeros({range[1] - range[0], in[0].size(1)}, at::kDouble);
  const Tensor probs = at::zeros({rows / k, k}, at::kDouble);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = EntryOf(in[1], i) - range[0];
    if (row < 0 || row >= range[1] - range[0]) continue;
    Tensor part = at::ones({}, at::kDouble);
    if (in.maybe(3)) {
      part = Wide(in[3][i / k][i % k]);
      probs[i / k][i % k] = (Wide(in[0][i / k]) * Wide(in[2][row])).sum();
    }
    out[row].copy_(Wide(in[0][i / k]) * part);
  }
  const at::ScalarType dtype = in[0].scalar_type();
  return {out.to(dtype), in.maybe(3) ? probs.to(dtype) : Tensor()};
}

Rows Slices() {
  const int64_t none = 0, two = 2, three = 3;
  return {
      {"aclnnMoeTokenPermuteWithEp",
       [=](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         return std::vector<Args>{
             {of({4, 5}), source.Indices({4, 2}, 3, at::kInt), of({4, 2}), Ints{1, 6}, none, false},
             {of({5, 6}).t(), source.Indices({6}, 4), Null{}, Null{}, three, false},
             {of({3, 4}), source.Indices({3, 3}, 5, at::kInt), Null{}, Ints{2, 9}, none, false},
             {of({3, 4}), source.Indices({3, 2}, 5), of({2, 3}).t(), Null{}, -two, false},
             {of({3, 4}), source.Indices({3, 2}, 5), of({3, 2}), Ints{2, 2}, none, false}};
       },
       kRoutedDtypes, SlicePermuted},
      {"aclnnMoeTokenPermuteWithEpGrad",
       [=](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         const auto rows = [&](int64_t count) { return source.Shuffled(count).to(at::kInt); };
         return std::vector<Args>{{of({5, 4}), rows(6), of({5}), two, Ints{0, 5}, false},
                                  {of({3, 6}).t(), rows(6), Null{}, three, Null{}, false},
                                  {of({6, 4}), rows(6), of({6}), int64_t{1}, Null{}, false},
                                  {of({2, 4}), rows(6), Null{}, two, Ints{3, 5}, false}};
       },
       kRoutedDtypes, SlicePermutedBack, kRouted},
      {"aclnnMoeTokenUnpermuteWithEp",
       [=](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         const auto rows = [&](int64_t count) { return source.Shuffled(count).to(at::kInt); };
         return std::vector<Args>{
             {of({4, 5}), rows(6), of({3, 2}), two, Ints{1, 5}, false, Null{}},
             {of({5, 6}).t(), rows(6), Null{}, three, Ints{0, 6}, false, Null{}},
             {of({6, 3}), rows(6), of({3, 2}).t(), none, Null{}, false, Ints{2, 3}},
             {of({4, 3}), rows(4), Null{}, two, Null{}, false, Null{}}};
       },
       kRoutedDtypes, SliceUnpermuted, kRouted},
      {"aclnnMoeTokenUnpermuteWithEpGrad",
       [=](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         const auto rows = [&](int64_t count) { return source.Shuffled(count).to(at::kInt); };
         return std::vector<Args>{
             {of({3, 4}), rows(6), of({4, 4}), of({3, 2}), false, Null{}, Ints{1, 5}, two},
             {of({4, 2}).t(), rows(6), of({6, 4}), of({2, 3}), false, Ints{2, 4}, Null{}, three},
             {of({5, 4}), rows(5), Null{}, Null{}, false, Null{}, Ints{2, 4}, int64_t{1}},
             {of({5, 4}), rows(5), Null{}, Null{}, false, Null{}, Null{}, int64_t{1}}};
       },
       kRoutedDtypes, SliceUnpermutedBack, kRouted},
  };
}

// --- Maps of who goes where.

// A map of [tokens, experts] with k experts for each token, but the first, which has `less` fewer.
Tensor MapOf(Source& source, int64_t tokens, int64_t experts, int64_t k, int64_t less,
             at::ScalarType dtype) {
  const Tensor map = at::zeros({tokens, experts}, dtype);
  for (int64_t t = 0; t < tokens; ++t) {
    const Tensor chosen = source.Shuffled(experts);
    for (int64_t i = 0; i < k - (t == 0 ? less : 0); ++i) map[t][EntryOf(chosen, i)].fill_(1);
  }
  return map;
}

struct RoutedPlace {
  int64_t token, expert;
};

// The rows by expert, then by token.
std::vector<RoutedPlace> RoutedPlacesOf(const Tensor& map) {
  std::vector<RoutedPlace> places;
  for (int64_t e = 0; e < map.size(1); ++e) {
    for (int64_t t = 0; t < map.size(0); ++t) {
      if (map[t][e].item().toLong() != 0) places.push_back({t, e});
    }
  }
  return places;
}

// With padding: for each expert the tokens that the map gives it, then the others.
std::vector<RoutedPlace> PaddedPlacesOf(const Tensor& map, int64_t capacity) {
  std::vector<RoutedPlace> places;
  for (int64_t e = 0; e < map.size(1); ++e) {
    Ints tokens;
    for (int64_t wanted : {1, 0}) {
      for (int64_t t = 0; t < map.size(0); ++t) {
        if ((map[t][e].item().toLong() != 0) == (wanted == 1)) tokens.push_back(t);
      }
    }
    for (int64_t i = 0; i < capacity; ++i) places.push_back({tokens[i], e});
  }
  return places;
}

// (tokens, routingMap, probs?, numOutTokens, dropAndPad)
Args MapPermuted(const In& in) {
  const int64_t tokens = in[0].size(0), experts = in[1].size(1), wanted = in.integer(3);
  const bool padded = in.flag(4);
  const int64_t k = wanted / tokens, capacity = wanted / experts;
  const std::vector<RoutedPlace> places =
      padded ? PaddedPlacesOf(in[1], capacity) : RoutedPlacesOf(in[1]);
  const int64_t rows = padded ? capacity * experts : k * tokens;
  const Tensor out = at::zeros({rows, in[0].size(1)}, in[0].options());
  const Tensor probs = in.maybe(2) ? at::zeros({rows}, in[2].options()) : Tensor();
  const Tensor where = at::full({rows}, -1, at::kInt);
  Ints used(tokens);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto [token, expert] = places[i];
    const auto row = static_cast<int64_t>(i);
    out[row].copy_(in[0][token]);
    if (in.maybe(2)) probs[row].copy_(in[2][token][expert]);
    if (padded) {
      where[row] = token;
    } else {
      where[token * k + used[token]++] = row;
    }
  }
  return {out, probs, where};
}

// (permutedTokenOutputGrad, permutedProbsOutputGrad?, sortedIndices, routingMap?, numExperts,
// tokensNum, dropAndPad)
Args MapPermutedBack(const In& in) {
  const int64_t experts = in.integer(4), tokens = in.integer(5), rows = in[0].size(0);
  const bool padded = in.flag(6);
  const Tensor sums = at::zeros({tokens, in[0].size(1)}, at::kDouble);
  const Tensor probs = at::zeros({tokens, experts}, at::kDouble);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t index = EntryOf(in[2], i);
    if (padded) {
      sums[index] += Wide(in[0][i]);
      if (in.maybe(1)) probs[index][i / (rows / experts)] = Wide(in[1][i]);
    } else if (index >= 0) {
      sums[i / (rows / tokens)] += Wide(in[0][index]);
    }
  }
  if (!padded && in.maybe(1)) {
    const std::vector<RoutedPlace> places = RoutedPlacesOf(in[3]);
    for (size_t i = 0; i < places.size(); ++i) {
      probs[places[i].token][places[i].expert] = Wide(in[1][static_cast<int64_t>(i)]);
    }
  }
  const at::ScalarType dtype = in[0].scalar_type();
  return {sums.to(dtype), in.maybe(1) ? probs.to(dtype) : Tensor()};
}

// The token of each row and its part; without probabilities the part is 1.
struct Weighted {
  Ints tokens;
  Tensor parts;
};

// Gives the rows of [tokens, experts] maps and probabilities; -1 for rows that nobody goes to.
Weighted WeightedRows(const In& in, int map, int probs, bool padded, const Tensor& padded_tokens,
                      int64_t rows) {
  Weighted weighted{Ints(rows, -1), at::zeros({rows}, at::kDouble)};
  const bool given = in.maybe(probs).has_value();
  if (!given) weighted.parts.fill_(1);
  const std::vector<RoutedPlace> places =
      given && !padded ? RoutedPlacesOf(in[map]) : std::vector<RoutedPlace>();
  for (int64_t i = 0; i < rows; ++i) {
    if (padded) {
      weighted.tokens[i] = EntryOf(padded_tokens, i);
      if (given) {
        weighted.parts[i] = Wide(in[probs][weighted.tokens[i]][i / (rows / in[probs].size(1))]);
      }
    } else if (given && i < static_cast<int64_t>(places.size())) {
      weighted.tokens[i] = places[i].token;
      weighted.parts[i] = Wide(in[probs][places[i].token][places[i].expert]);
    }
  }
  return weighted;
}

// (permutedTokens, sortedIndices, routingMap?, probs?, paddedMode, restoreShape?)
Args MapUnpermuted(const In& in) {
  const bool padded = in.flag(4);
  const int64_t rows = in[0].size(0);
  const Ints shape = IntsOr(in, 5, in.maybe(3) ? Ints{in[3].size(0), in[0].size(1)} : Ints());
  const Weighted weighted = WeightedRows(in, 2, 3, padded, in[1], rows);
  const Tensor sums = at::zeros(shape, at::kDouble);
  const Tensor index = at::zeros({rows}, at::kInt), ids = at::zeros({rows}, at::kInt);
  const Ints order = OrderOf(in[1]);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t k = rows / shape[0];
    const int64_t row = padded ? i : EntryOf(in[1], i);
    const int64_t token = padded ? weighted.tokens[i] : i / k;
    if (row >= 0) sums[token] += Wide(in[0][row]) * weighted.parts[row];
    index[i] = padded ? order[i] : row;
    ids[i] = padded ? weighted.tokens[order[i]] : i / k;
  }
  const at::ScalarType dtype = in[0].scalar_type();
  return {sums.to(dtype), index, ids, in.maybe(3) ? weighted.parts.to(dtype) : Tensor()};
}

// (unpermutedTokensGrad, outIndex, permuteTokenId, routingMap?, permutedTokens?, probs?,
// dropAndPad, restoreShape?)
Args MapUnpermutedBack(const In& in) {
  const bool padded = in.flag(6);
  const int64_t rows = in[1].numel();
  const Tensor out = at::zeros({rows, in[0].size(1)}, at::kDouble);
  const Tensor padded_tokens = at::zeros({rows}, at::kLong);
  if (padded) {
    for (int64_t i = 0; i < rows; ++i) padded_tokens[EntryOf(in[1], i)] = EntryOf(in[2], i);
  }
  const Weighted weighted = WeightedRows(in, 3, 5, padded, padded_tokens, rows);
  const Tensor probs = in.maybe(5) ? at::zeros(in[5].sizes(), at::kDouble) : Tensor();
  const std::vector<RoutedPlace> places =
      in.maybe(5) && !padded ? RoutedPlacesOf(in[3]) : std::vector<RoutedPlace>();
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = EntryOf(in[1], i), token = EntryOf(in[2], i);
    if (row < 0) continue;
    out[row].copy_(Wide(in[0][token]) * weighted.parts[row]);
    if (!in.maybe(5)) continue;
    const int64_t expert = padded ? row / (rows / in[5].size(1)) : places[row].expert;
    probs[token][expert] = (Wide(in[0][token]) * Wide(in[4][row])).sum();
  }
  const at::ScalarType dtype = in[0].scalar_type();
  return {out.to(dtype), in.maybe(5) ? probs.to(dtype) : Tensor()};
}

// The sortedIndices that the forward operator gives for the map.
Tensor WhereOf(const Tensor& map, int64_t wanted, bool padded) {
  const Args args = {at::zeros({map.size(0), 1}), map, Null{}, wanted, padded};
  return std::get<Tensor>(MapPermuted(In(args)).at(2));
}

Rows Maps() {
  return {
      {"aclnnMoeTokenPermuteWithRoutingMap",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         const auto map = [&](int64_t k, int64_t less, at::ScalarType of_map) {
           return MapOf(source, 4, 5, k, less, of_map);
         };
         return std::vector<Args>{
             {of({4, 3}), map(2, 0, at::kBool), of({4, 5}), int64_t{8}, false},
             {of({3, 4}).t(), map(2, 1, at::kChar), of({5, 4}).t(), int64_t{9}, false},
             {of({4, 3}), map(3, 0, at::kChar), Null{}, int64_t{12}, false},
             {of({4, 3}), map(2, 0, at::kBool), of({4, 5}), int64_t{10}, true},
             {of({4, 3}), map(1, 1, at::kBool), Null{}, int64_t{20}, true},
             {of({4, 3}), map(0, 0, at::kBool), of({4, 5}), int64_t{0}, false}};
       },
       kRoutedDtypes, MapPermuted},
      {"aclnnMoeTokenPermuteWithRoutingMapGrad",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         std::vector<Args> inputs;
         for (int64_t less : {0, 1}) {
           const Tensor map = MapOf(source, 4, 5, 2, less, less == 0 ? at::kBool : at::kChar);
           inputs.push_back(
               {of({8, 3}), of({8}), WhereOf(map, 8, false), map, int64_t{5}, int64_t{4}, false});
           inputs.push_back({of({3, 8}).t(), Null{}, WhereOf(map, 8, false), Null{}, int64_t{5},
                             int64_t{4}, false});
           inputs.push_back({of({10, 3}), of({10}), WhereOf(map, 10, true), Null{}, int64_t{5},
                             int64_t{4}, true});
           inputs.push_back(
               {of({5, 3}), Null{}, WhereOf(map, 5, true), map, int64_t{5}, int64_t{4}, true});
         }
         return inputs;
       },
       kRoutedDtypes, MapPermutedBack, kRouted},
      {"aclnnMoeTokenUnpermuteWithRoutingMap",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         std::vector<Args> inputs;
         for (int64_t less : {0, 1}) {
           const Tensor map = MapOf(source, 4, 5, 2, less, less == 0 ? at::kBool : at::kChar);
           inputs.push_back(
               {of({8, 3}), WhereOf(map, 8, false), map, of({4, 5}), false, Ints{4, 3}});
           inputs.push_back(
               {of({3, 8}).t(), WhereOf(map, 8, false), Null{}, Null{}, false, Ints{4, 3}});
           inputs.push_back(
               {of({10, 3}), WhereOf(map, 10, true), map, of({5, 4}).t(), true, Null{}});
           inputs.push_back(
               {of({10, 3}), WhereOf(map, 10, true), Null{}, Null{}, true, Ints{4, 3}});
         }
         return inputs;
       },
       kRoutedDtypes, MapUnpermuted, kRouted},
      {"aclnnMoeTokenUnpermuteWithRoutingMapGrad",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         std::vector<Args> inputs;
         for (int64_t less : {0, 1}) {
           const Tensor map = MapOf(source, 4, 5, 2, less, less == 0 ? at::kBool : at::kChar);
           const Tensor slots = WhereOf(map, 8, false);
           const Tensor ids = at::arange(8, at::kInt).floor_divide(2).to(at::kInt);
           const Tensor padded = WhereOf(map, 10, true);
           const Ints order = OrderOf(padded);
           const Tensor places = at::tensor(order, at::kLong).to(at::kInt);
           const Tensor tokens = padded.index_select(0, places);
           inputs.push_back({of({4, 3}), slots, ids, map, of({8, 3}), of({4, 5}), false, Null{}});
           inputs.push_back(
               {of({3, 4}).t(), slots, ids, Null{}, Null{}, Null{}, false, Ints{4, 3}});
           inputs.push_back(
               {of({4, 3}), places, tokens, map, of({3, 10}).t(), of({4, 5}), true, Ints{4, 3}});
           inputs.push_back({of({4, 3}), places, tokens, Null{}, Null{}, Null{}, true, Null{}});
         }
         return inputs;
       },
       kRoutedDtypes, MapUnpermutedBack, kRouted},
  };
}

// --- Rows that are quantised on the way.

// (x, rowIdx, expertIdx, activeNum, scale, offset)
Args QuantisedOnTheWay(const In& in) {
  const int64_t tokens = in[0].size(0), k = in[2].size(1);
  const int64_t kept = std::min(in.integer(3), tokens) * k;
  const Ints order = OrderOf(in[2]);
  const Tensor rows = in[1].reshape(-1), experts = in[2].reshape(-1);
  Ints from;
  for (int64_t position : order) from.push_back(EntryOf(rows, position));
  const Tensor out = at::zeros({kept, in[0].size(1)}, at::kChar);
  Ints sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.push_back(EntryOf(experts, order[i]));
    if (static_cast<int64_t>(i) >= kept) continue;
    out[static_cast<int64_t>(i)].copy_(
        ToInt8(Wide(in[0][from[i] % tokens]) * in.real(4) + in.real(5)));
  }
  return {out, InverseOf(from), at::tensor(sorted, at::kLong).to(at::kInt)};
}

// (x, expertIdx, scale?, offset?, activeNum, expertCapacity, expertNum, dropPadMode,
// countOrCumsumFlag, beforeCapacityFlag, quantMode)
Args QuantisedOnTheWayV2(const In& in) {
  const int64_t k = in[1].size(1), rows = in[1].numel(), width = in[0].size(1);
  const int64_t capacity = in.integer(5), experts = in.integer(6), counting = in.integer(8);
  const bool padded = in.integer(7) == 1, dynamic = in.integer(10) == 1;
  const Tensor flat = in[1].reshape(-1);
  const int64_t active = in.integer(4);
  const int64_t kept = padded ? experts * capacity : active > 0 ? std::min(active, rows) : rows;
  const Tensor out = at::zeros({kept, width}, at::kChar);
  const Tensor where = at::full({rows}, -1, at::kInt), scales = at::zeros({kept});
  Ints counts(std::max<int64_t>(experts, 1));
  int64_t number = 0;
  for (int64_t position : OrderOf(in[1])) {
    const int64_t expert = EntryOf(flat, position);
    int64_t place = number++;
    if (padded) place = counts[expert] < capacity ? expert * capacity + counts[expert] : -1;
    if (experts > 0) ++counts[expert];
    where[position] = place;
    if (place < 0 || place >= kept) continue;
    Tensor x = Wide(in[0][position / k]);
    if (!dynamic) {
      out[place].copy_(ToInt8(x * Wide(in[2]) + Wide(in[3])));
      continue;
    }
    if (in.maybe(2)) x = x * Wide(in[2][in[2].size(0) == 1 ? 0 : expert]);
    const double step = x.abs().max().item<double>() / 127;
    out[place].copy_(ToInt8(x / step));
    scales[place].fill_(step);
  }
  Tensor sums = at::tensor(counts, at::kLong);
  if (counting == 1) sums = sums.cumsum(0);
  const bool before = padded && in.flag(9);
  return {padded ? out.view({experts, capacity, width}) : out, where,
          !padded && counting != 0 ? sums.to(at::kInt) : Tensor(),
          before ? at::tensor(counts, at::kLong).to(at::kInt) : Tensor(),
          dynamic ? scales : Tensor()};
}

Rows QuantisedRoutes() {
  const int64_t none = 0, one = 1, two = 2;
  return {
      {"aclnnMoeInitRoutingQuant",
       [](Source& source, at::ScalarType dtype) {
         const Tensor rows = at::arange(8, at::kInt).view({2, 4}).t();
         return std::vector<Args>{{source.Random({4, 5}, dtype), rows,
                                   source.Indices({4, 2}, 3, at::kInt), int64_t{9}, 11.0, -1.5},
                                  {source.Random({5, 4}, dtype).t(), rows.contiguous(),
                                   source.Indices({4, 2}, 5, at::kInt), int64_t{3}, 60.0, 0.25}};
       },
       kRoutedDtypes, QuantisedOnTheWay},
      {"aclnnMoeInitRoutingQuantV2",
       [=](Source& source, at::ScalarType dtype) {
         const auto x = [&] { return source.Random({4, 5}, dtype); };
         const auto experts = [&] { return source.Indices({4, 2}, 3, at::kInt); };
         const auto factors = [&](const Ints& sizes) {
           return source.Random(sizes, at::kFloat, 5, 20);
         };
         const int64_t three = 3;
         return std::vector<Args>{
             {x(), experts(), factors({1}), factors({1}), none, none, none, none, none, false,
              none},
             {x(), experts(), factors({1}), factors({1}), int64_t{5}, none, three, none, one, false,
              none},
             {source.Random({5, 4}, dtype).t(), experts(), factors({1}), factors({1}), none, two,
              three, one, none, true, none},
             {x(), experts(), Null{}, Null{}, none, none, three, none, two, false, one},
             {x(), experts(), factors({3, 5}), Null{}, int64_t{6}, none, three, none, none, false,
              one},
             {x(), experts(), factors({1, 5}), Null{}, none, two, three, one, none, true, one},
             {x(), experts(), factors({3, 5}), Null{}, none, two, three, one, none, false, one}};
       },
       kRoutedDtypes, QuantisedOnTheWayV2, kOnce},
  };
}

// --- Rows of other ranks, and gradients of the experts' matrices.

// (tokens, expertTokenNumPerRank, perTokenScales?, expertTokenNumType, idxType)
Args ReRouted(const In& in) {
  const int64_t ranks = in[1].size(0), experts = in[1].size(1);
  const Tensor out = at::zeros(in[0].sizes(), in[0].options());
  const Tensor from = at::zeros({in[0].size(0)}, at::kInt);
  const Tensor scales = at::zeros({in[0].size(0)});
  int64_t place = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      int64_t row = 0;  // the first row that the expert has from the rank
      for (int64_t i = 0; i < rank * experts + expert; ++i) {
        row += EntryOf(in[1][i / experts], i % experts);
      }
      for (int64_t left = EntryOf(in[1][rank], expert); left > 0; --left, ++row, ++place) {
        out[place].copy_(in[0][row]);
        from[place].fill_(row);
        if (in.maybe(2)) scales[place].copy_(in[2][row]);
      }
    }
  }
  return {out, scales, from, in[1].sum(at::IntArrayRef({0})).to(in[1].scalar_type())};
}

// (x, weight, groupList, yRef, transposeX, transposeWeight, groupType)
Tensor ProductsAdded(const In& in) {
  const int64_t groups = in[2].numel();
  const Tensor sums = Wide(in[3]).contiguous().clone();
  const Tensor each = sums.view({groups, in[0].size(1), in[1].size(1)});
  for (int64_t g = 0, row = 0; g < groups; ++g) {
    for (; row < EntryOf(in[2], g); ++row) {
      each[g] += Wide(in[0][row]).unsqueeze(1) * Wide(in[1][row]).unsqueeze(0);
    }
  }
  return sums.to(at::kFloat);
}

Rows OtherRoutes() {
  const int64_t none = 0, one = 1, by_rows = 2;
  return {
      {"aclnnMoeReRouting",
       [=](Source& source, at::ScalarType dtype) {
         const auto counts = [](Ints numbers, at::ScalarType of_counts) {
           return at::tensor(numbers, at::kLong).to(of_counts).view({2, 3});
         };
         return std::vector<Args>{
             {source.Random({9, 5}, dtype, -9, 9), counts({2, 0, 3, 1, 2, 1}, at::kInt),
              source.Random({9}, at::kFloat), one, none},
             {source.Random({3, 7}, dtype, -9, 9).t(), counts({0, 4, 0, 0, 1, 2}, at::kLong),
              Null{}, one, none},
             {source.Random({0, 4}, dtype), counts({0, 0, 0, 0, 0, 0}, at::kInt), Null{}, one,
              none},
             {source.Random({4, 1}, dtype, -9, 9), at::tensor({3, 0, 1}, at::kLong).view({3, 1}),
              source.Random({8}, at::kFloat).slice(0, 0, 8, 2), one, none}};
       },
       {at::kHalf, at::kBFloat16, at::kChar},
       ReRouted},
      {"aclnnGroupedMatmulAdd",
       [=](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         const auto sums = [&](const Ints& sizes) { return source.Random(sizes, at::kFloat); };
         const auto ends = [](Ints numbers) { return at::tensor(numbers, at::kLong); };
         return std::vector<Args>{
             {of({9, 5}), of({9, 3}), ends({2, 2, 9}), sums({3, 5, 3}), true, false, by_rows},
             {of({5, 9}).t(), of({3, 9}).t(), ends({4, 7}), sums({10, 3}), true, false, by_rows},
             {of({4, 1}), of({4, 2}), ends({4}), sums({1, 1, 2}), true, false, by_rows},
             {of({0, 2}), of({0, 2}), ends({0}), sums({1, 2, 2}), true, false, by_rows}};
       },
       {at::kHalf, at::kBFloat16},
       ProductsAdded,
       kRouted},
  };
}

}  // namespace

Rows RoutingRows() {
  Rows rows = Slices();
  for (const Rows& more : {Maps(), QuantisedRoutes(), OtherRoutes()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
