// Steps of servers around attention: tokens that are drawn, rows that go to the tensors of a list,
// and keys and values on their way into caches. References go element by element from the formulas
// of the vendor's pages, in double precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tests/opapi/grid/quantized.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;
using RealNumbers = std::vector<double>;

const Dtypes kServedDtypes = {at::kHalf, at::kBFloat16};
const Tolerance kServed = {4, 1e-4, false, "float32 and one rounding, against double precision"};

double Number(const Tensor& tensor) { return tensor.item().toDouble(); }
bool Given(const In& in, int i) { return !std::holds_alternative<Null>(in.arg(i)); }

// --- aclnnScatterList

std::vector<Args> ListRows(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto add = [&](const std::vector<Ints>& vars, const Ints& updates, const Tensor& places,
                       Arg mask, int64_t axis) {
    Tensors list;
    for (const Ints& sizes : vars) list.push_back(source.Random(sizes, dtype));
    inputs.push_back(
        {list, places, source.Random(updates, dtype), std::move(mask), "update", axis});
  };
  const auto bytes = [](const Ints& values) { return at::tensor(values, at::kByte); };
  add({{5, 3}, {5, 3}}, {2, 2, 3}, at::tensor({3, 0}, at::kInt), Null{}, -2);
  add({{5, 3}, {5, 3}, {5, 3}}, {3, 4, 3}, at::tensor({1, 2, 0, 4, 5, 0}, at::kLong).view({3, 2}),
      bytes({1, 1, 0}), 1);
  add({{2, 3, 6}}, {1, 2, 3, 4}, at::tensor({2}, at::kLong), bytes({1}), -1);
  add({{7}, {7}}, {2, 7}, at::tensor({0, 7, 1, 3}, at::kInt).view({2, 2}), Null{}, 1);
  add({{4, 2}}, {1, 0, 2}, at::tensor({4}, at::kInt), Null{}, 1);
  return inputs;
}

Args ListElementByElement(const In& in) {
  Tensors result;
  const Tensor updates = in[2].contiguous();
  const int64_t axis = in.integer(5) < 0 ? in.integer(5) + updates.dim() : in.integer(5);
  for (size_t i = 0; i < in.list(0).size(); ++i) {
    const Tensor var = in.list(0)[i].clone();
    const auto member = static_cast<int64_t>(i);
    if (!Given(in, 3) || in[3][member].item().toLong() != 0) {
      const bool pair = in[1].dim() == 2;
      const int64_t start = (pair ? in[1][member][0] : in[1][member]).item().toLong();
      const int64_t length = pair ? in[1][member][1].item().toLong() : updates.size(axis);
      for (int64_t k = 0; k < length; ++k) {
        var.select(axis - 1, start + k).copy_(updates[member].select(axis - 1, k));
      }
    }
    result.push_back(var);
  }
  return {result};
}

// --- aclnnTopKTopPSample and its second version

constexpr int64_t kDrawnRows = 4, kDrawnTokens = 13;

std::vector<Args> DrawnRows(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto add = [&](const Ints& k, const RealNumbers& p, bool random, bool logits) {
    const Arg q =
        random ? Arg(source.Random({kDrawnRows, kDrawnTokens}, at::kFloat, -3, 3)) : Arg(Null{});
    inputs.push_back({source.Random({kDrawnRows, kDrawnTokens}, dtype), at::tensor(k, at::kInt),
                      at::tensor(p).to(dtype), q, 1e-8, logits, int64_t{32}});
  };
  add({1, 5, 13, 0}, {0.3, 0.7, 0.9, 0.5}, false, true);
  add({4, 14, -1, 2}, {1, 1, 1.5, 0}, true, true);
  add({3, 6, 9, 12}, {0.55, 0.95, -0.5, 0.05}, true, false);
  return inputs;
}

std::vector<Args> DrawnRowsV2(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto add = [&](const Ints& k, const RealNumbers& p, Arg least, bool random, bool logits,
                       bool are_logits, bool kept, int64_t most = 1024) {
    const Arg q =
        random ? Arg(source.Random({kDrawnRows, kDrawnTokens}, at::kFloat, -3, 3)) : Arg(Null{});
    Tensor given = source.Random({kDrawnRows, kDrawnTokens}, at::kFloat);
    if (!are_logits) given = at::softmax(given, -1);
    inputs.push_back({given.to(dtype), at::tensor(k, at::kInt), at::tensor(p).to(dtype), q,
                      std::move(least), 1e-8, logits, int64_t{32}, most, are_logits, kept});
  };
  const auto parts = [&](const RealNumbers& values) { return at::tensor(values).to(dtype); };
  add({1, 5, 13, 0}, {0.3, 0.7, 0.9, 0.5}, Null{}, false, true, true, false);
  add({4, 14, -1, 2}, {1, 1, 1.5, 0}, parts({0.3, 0.2, 1.5, -1}), true, true, true, false);
  add({3, 6, 9, 9}, {0.55, 0.95, -0.5, 0.05}, parts({0, 0.4, 0.6, 1}), true, false, false, false);
  add({8, 9, 0, 0}, {1, 1, 1, 0.8}, parts({0.1, -1, 0.25, 2}), false, true, false, true, 3);
  add({8, 9, 5, 0}, {0.6, 1, 0, 0.8}, Null{}, false, false, true, true);
  return inputs;
}

// A row's tokens that are left, with their probabilities.
struct Left {
  Ints places;
  RealNumbers weights;
};

RealNumbers Softmax(const RealNumbers& logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  RealNumbers result;
  double sum = 0;
  for (double logit : logits) sum += std::exp(logit - most);
  for (double logit : logits) result.push_back(std::exp(logit - most) / sum);
  return result;
}

Left TokensLeft(const Tensor& row, int64_t k, double p, double least, int64_t most, bool second,
                bool are_logits) {
  Left left;
  for (int64_t i = 0; i < row.size(0); ++i) left.places.push_back(i);
  const auto value = [&](int64_t i) { return Number(row[i]); };
  const bool counts = k >= 1 && k <= std::min(most, row.size(0));
  const bool sums = second ? p < 1 : p > 0 && p < 1;
  if (counts || sums || least >= 1) {
    std::stable_sort(left.places.begin(), left.places.end(),
                     [&](int64_t a, int64_t b) { return value(a) > value(b); });
  }
  if (counts) left.places.resize(k);
  RealNumbers logits;
  for (int64_t place : left.places) logits.push_back(value(place));
  left.weights = are_logits ? Softmax(logits) : logits;
  if (sums) {
    size_t count = 0;
    double before = 0;
    while (count < left.places.size() && (second ? before < p : before <= p)) {
      before += left.weights[count++];
    }
    count = std::max<size_t>(count, 1);
    left.places.resize(count);
    left.weights.resize(count);
    if (second && p <= 0 && are_logits) left.weights[0] = 1;
    if (!second) left.weights = Softmax({logits.begin(), logits.begin() + left.places.size()});
  }
  const double greatest = *std::max_element(left.weights.begin(), left.weights.end());
  Left result;
  for (size_t i = 0; i < left.places.size(); ++i) {
    const bool kept = least >= 1 ? i == 0 : least <= 0 || left.weights[i] >= greatest * least;
    if (!kept) continue;
    result.places.push_back(left.places[i]);
    result.weights.push_back(left.weights[i]);
  }
  return result;
}

Args DrawnTokenByToken(const In& in, bool second) {
  const Tensor logits = Wide(in[0]);
  const int eps = second ? 5 : 4;
  const bool are_logits = !second || in.flag(9), kept = second && in.flag(10);
  const int64_t most = second ? (in.integer(8) + 7) / 8 * 8 : 1024;
  const double other = second && are_logits ? -std::numeric_limits<double>::infinity() : 0;
  const Tensor drawn = at::zeros({kDrawnRows}, at::kLong);
  const Tensor selected = at::full({kDrawnRows, kDrawnTokens}, other, at::kFloat);
  const Tensor places = at::zeros({kDrawnRows, kDrawnTokens}, at::kLong);
  const Tensor weights = at::zeros({kDrawnRows, kDrawnTokens}, at::kFloat);
  for (int64_t row = 0; row < kDrawnRows; ++row) {
    const double least = second && Given(in, 4) ? Number(in[4][row]) : 0;
    const Left left = TokensLeft(logits[row], in[1][row].item().toLong(), Number(in[2][row]), least,
                                 most, second, are_logits);
    double best = -1;
    for (size_t i = 0; i < left.places.size(); ++i) {
      const auto place = static_cast<int64_t>(i);
      const double q = Given(in, 3) ? std::abs(Number(in[3][row][place])) + in.real(eps) : 1;
      selected[row][left.places[i]].copy_(in[0][row][left.places[i]]);
      if (kept) {
        places[row][place].fill_(left.places[i]);
        weights[row][place].fill_(left.weights[i]);
      } else if (left.weights[i] / q > best) {
        best = left.weights[i] / q;
        drawn[row].fill_(left.places[i]);
      }
    }
  }
  Args results = {drawn, in.flag(second ? 6 : 5) ? selected : Tensor()};
  if (second) {
    results.emplace_back(kept ? places : Tensor());
    results.emplace_back(kept ? weights : Tensor());
  }
  return results;
}

// --- aclnnDequantRopeQuantKvcache

constexpr int64_t kTurnedQueries = 2, kTurnedKeys = 1, kTurnedWidth = 16;
constexpr int64_t kAllWidth = (kTurnedQueries + 2 * kTurnedKeys) * kTurnedWidth;

std::vector<Args> TurnedKeys(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  const auto factor = [&](double low, double high) {
    return source.Random({kTurnedKeys, kTurnedWidth}, at::kFloat, low, high);
  };
  const auto add = [&](const Tensor& x, const Tensor& indices, const Ints& cache, bool offsets,
                       Arg columns, Arg rows, Arg bias, const char* mode, bool gives) {
    Ints angles = x.sizes().vec();
    angles.back() = kTurnedWidth;
    if (x.dim() == 3) angles.insert(angles.begin() + 2, 1);
    Args args = {
        x,
        source.Random(angles, dtype, -1, 1),
        source.Random(angles, dtype, -1, 1),
        source.Random({cache[0], cache[1], kTurnedKeys, kTurnedWidth}, at::kChar, -100, 100),
        source.Random({cache[0], cache[1], kTurnedKeys, kTurnedWidth}, at::kChar, -100, 100),
        indices.to(at::kInt),
        factor(5, 30),
        factor(5, 30)};
    for (int i = 0; i < 2; ++i) args.push_back(offsets ? Arg(factor(-9, 9)) : Arg(Null{}));
    args.insert(args.end(), {std::move(columns), std::move(rows), std::move(bias),
                             Ints{kTurnedQueries * kTurnedWidth, kTurnedKeys * kTurnedWidth,
                                  kTurnedKeys * kTurnedWidth},
                             "static", "BSND", gives, mode});
    inputs.push_back(std::move(args));
  };
  const auto whole = [&](Ints sizes) {
    sizes.push_back(kAllWidth);
    return source.Random(sizes, at::kInt, -2000, 2000);
  };
  const auto floats = [&](Ints sizes) {
    sizes.push_back(kAllWidth);
    return source.Random(sizes, dtype);
  };
  const auto columns = [&] { return source.Random({kAllWidth}, at::kFloat, 0.0005, 0.002); };
  add(floats({2, 3}), at::tensor({1, 0}), {2, 4}, true, Null{}, Null{}, Null{}, "contiguous", true);
  add(floats({3}), at::tensor({4, 0, 2}), {4, 5}, false, Null{}, Null{}, Null{}, "contiguous",
      false);
  add(floats({2, 3}), at::tensor({7, 0, 5, 2, 9, 1}), {2, 5}, false, Null{}, Null{}, Null{}, "page",
      true);
  add(whole({2, 3}), at::tensor({1, 0}), {2, 4}, true, columns(),
      source.Random({6}, at::kFloat, 0.5, 2), source.Random({kAllWidth}, at::kInt, -500, 500),
      "contiguous", true);
  add(whole({3}), at::tensor({4, 0, 3}), {1, 5}, true, columns(), Null{},
      source.Random({kAllWidth}, dtype), "page", true);
  add(whole({1, 2}), at::tensor({0}), {1, 2}, false, columns(), Null{}, Null{}, "contiguous", true);
  return inputs;
}

// A row of heads, turned by its angles: the two halves of a head belong together.
Tensor TurnedByHalves(const Tensor& heads, const Tensor& cosine, const Tensor& sine) {
  const Tensor result = heads.clone();
  const int64_t half = kTurnedWidth / 2;
  for (int64_t head = 0; head < heads.size(0); ++head) {
    for (int64_t i = 0; i < kTurnedWidth; ++i) {
      const double other =
          i < half ? -Number(heads[head][i + half]) : Number(heads[head][i - half]);
      result[head][i].fill_(Number(heads[head][i]) * Number(cosine[i]) + other * Number(sine[i]));
    }
  }
  return result;
}

Args KeysRowByRow(const In& in) {
  const int64_t rows = in[0].numel() / kAllWidth, batch = in[0].size(0);
  const Tensor cosine = Wide(in[1]).reshape({rows, kTurnedWidth}),
               sine = Wide(in[2]).reshape({rows, kTurnedWidth});
  const Tensor keys = in[3].clone(), values = in[4].clone();
  const Tensor query_out = at::zeros({rows, kTurnedQueries, kTurnedWidth}, at::kDouble);
  const Tensor key_out = at::zeros({rows, kTurnedKeys, kTurnedWidth}, at::kDouble),
               value_out = key_out.clone();
  const int64_t slots = keys.size(1), each = rows / batch;
  for (int64_t row = 0; row < rows; ++row) {
    Tensor x = Wide(in[0].reshape({rows, kAllWidth})[row]);
    if (in[0].scalar_type() == at::kInt) {
      const bool whole = Given(in, 12) && in[12].scalar_type() == at::kInt;
      if (whole) x = x + Wide(in[12]);
      x = x * Wide(in[10]);
      if (Given(in, 11)) x = x * Wide(in[11][row]);
      if (Given(in, 12) && !whole) x = x + Wide(in[12]);
    }
    const Tensor heads = x.reshape({kTurnedQueries + 2 * kTurnedKeys, kTurnedWidth});
    const bool paged = std::string(in.text(17)) == "page";
    const int64_t slot = paged
                             ? in[5][row].item().toLong()
                             : row / each * slots + in[5][row / each].item().toLong() + row % each;
    query_out[row].copy_(TurnedByHalves(heads.slice(0, 0, kTurnedQueries), cosine[row], sine[row]));
    key_out[row].copy_(TurnedByHalves(heads.slice(0, kTurnedQueries, kTurnedQueries + kTurnedKeys),
                                      cosine[row], sine[row]));
    value_out[row].copy_(heads.slice(0, kTurnedQueries + kTurnedKeys));
    const auto quantised = [&](const Tensor& given, int scale, int offset) {
      return ToInt8(given * Wide(in[scale]) +
                    (Given(in, offset) ? Wide(in[offset]) : at::zeros({1})));
    };
    keys[slot / slots][slot % slots].copy_(quantised(key_out[row], 6, 8));
    values[slot / slots][slot % slots].copy_(quantised(value_out[row], 7, 9));
  }
  const auto shaped = [&](const Tensor& out, int64_t heads) {
    Ints sizes = in[0].sizes().vec();
    sizes.back() = heads;
    sizes.push_back(kTurnedWidth);
    return out.to(in[1].scalar_type()).reshape(sizes);
  };
  const bool gives = in.flag(16);
  return {keys, values, shaped(query_out, kTurnedQueries),
          gives ? shaped(key_out, kTurnedKeys) : Tensor(),
          gives ? shaped(value_out, kTurnedKeys) : Tensor()};
}

// --- aclnnKvRmsNormRopeCacheV2

constexpr int64_t kLatentValues = 32;

struct LatentCall {
  const char* mode;
  bool apart, of_batch;  // v of its own; cos and sin serve all tokens of a batch
  int64_t heads;
  bool key_bytes, value_bytes, offsets, of_heads;
};

// Three batches of four tokens; blocks of 32 slots.
std::vector<Args> LatentTokens(Source& source, at::ScalarType dtype) {
  constexpr int64_t kBatch = 2, kCount = 3, kBlocks = 3, kSlots = 32;
  std::vector<Args> inputs;
  const auto add = [&](const LatentCall& call) {
    const std::string mode = call.mode;
    const bool norm = mode == "Norm", blocks = mode.find("BLK") != std::string::npos;
    const int64_t turned = call.apart ? 16 : 32, keys = call.apart ? 48 : 32;
    const int64_t width = call.apart ? keys : keys + kLatentValues;
    const auto angles = [&] {
      return source.Random({kBatch, 1, call.of_batch ? 1 : kCount, turned}, dtype, -1, 1);
    };
    const auto cache = [&](int64_t columns, bool bytes) {
      const Ints sizes = norm ? Ints{kBatch, call.heads, kSlots, columns}
                              : Ints{kBlocks, kSlots, call.heads, columns};
      return bytes ? source.Random(sizes, at::kChar, -90, 90) : source.Random(sizes, dtype);
    };
    const auto factor = [&](bool given, int64_t columns, double low, double high) {
      if (!given) return Arg(Null{});
      return call.of_heads ? Arg(source.Random({call.heads, columns}, at::kFloat, low, high))
                           : Arg(source.Random({columns}, at::kFloat, low, high));
    };
    const Tensor index = norm     ? at::tensor({5, -1, 0, 31, 2, 5}).view({kBatch, kCount})
                         : blocks ? at::tensor({64, 7})
                                  : at::tensor({65, 0, -1, 33, 2, 40});
    inputs.push_back(
        {source.Random({kBatch, call.heads, kCount, width}, dtype),
         source.Random({call.apart ? keys : kLatentValues}, dtype), angles(), angles(),
         index.to(at::kLong), cache(keys, call.key_bytes), cache(kLatentValues, call.value_bytes),
         factor(call.key_bytes, keys, 5, 30), factor(call.value_bytes, kLatentValues, 5, 30),
         factor(call.key_bytes && call.offsets, keys, -9, 9),
         factor(call.value_bytes && call.offsets, kLatentValues, -9, 9),
         call.apart ? Arg(source.Random({kBatch, call.heads, kCount, kLatentValues}, dtype))
                    : Arg(Null{}),
         1e-3, call.mode, true});
  };
  add({"Norm", false, false, 1, false, false, false, false});
  add({"PA", false, true, 1, false, false, false, false});
  add({"PA_NZ", false, false, 1, false, true, false, true});
  add({"PA_BLK_NZ", false, false, 1, true, true, false, false});
  add({"Norm", true, false, 2, true, false, true, true});
  add({"PA_BNSD", true, true, 4, true, true, true, false});
  add({"PA_BLK_BNSD", true, false, 2, false, false, false, false});
  return inputs;
}

// Pairs of neighbours are turned; the first ones of all pairs come first.
RealNumbers TurnedNeighbourPairs(const RealNumbers& x, const Tensor& cosine, const Tensor& sine) {
  RealNumbers result(x.size());
  const size_t half = x.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const auto first = static_cast<int64_t>(i), second = static_cast<int64_t>(i + half);
    const double a = x[2 * i], b = x[2 * i + 1];
    result[i] = a * Number(cosine[first]) - b * Number(sine[first]);
    result[i + half] = b * Number(cosine[second]) + a * Number(sine[second]);
  }
  return result;
}

// Writes a row into its slot of a cache, in any of the modes.
void PutLatent(const Tensor& cache, const std::string& mode, int64_t batch, int64_t head,
               int64_t slot, const RealNumbers& row, const Tensor& factor, const Tensor& offset) {
  const auto width = static_cast<int64_t>(row.size());
  const int64_t slots = mode == "Norm" ? cache.size(2) : cache.size(1);
  const int64_t columns = cache.scalar_type() == at::kChar ? 32 : 16;
  for (int64_t i = 0; i < width; ++i) {
    double value = row[i];
    const auto of = [&](const Tensor& given) {
      return Number(given.dim() == 2 ? given[head][i] : given[i]);
    };
    if (factor.defined()) {
      value = value * of(factor) + (offset.defined() ? of(offset) : 0);
      value = std::clamp(std::nearbyint(value), -128.0, 127.0);
    }
    if (mode == "Norm") {
      cache[batch][head][slot][i].fill_(value);
    } else if (mode.find("NZ") == std::string::npos) {
      cache[slot / slots][slot % slots][head][i].fill_(value);
    } else {
      cache[slot / slots]
          .view({-1})[(i / columns * slots + slot % slots) * columns + i % columns]
          .fill_(value);
    }
  }
}

Args LatentOneByOne(const In& in) {
  const Tensor kv = Wide(in[0]), gamma = Wide(in[1]);
  const int64_t batches = kv.size(0), heads = kv.size(1), count = kv.size(2);
  const std::string mode = in.text(13);
  const bool apart = Given(in, 11), norm = mode == "Norm";
  const int64_t keys = apart ? kv.size(3) : kv.size(3) - kLatentValues, normed = gamma.size(0);
  const int64_t turned = in[2].size(3);
  const Tensor key_cache = in[5].clone(), value_cache = in[6].clone();
  const Tensor key_out = at::zeros({batches, heads, count, keys}, at::kDouble);
  const Tensor value_out = at::zeros({batches, heads, count, kLatentValues}, at::kDouble);
  const auto maybe = [&](int i) { return Given(in, i) ? in[i] : Tensor(); };
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t token = 0; token < count; ++token) {
      const int64_t angle = in[2].size(2) == 1 ? 0 : token;
      int64_t slot = norm                 ? in[4][b][token].item().toLong()
                     : in[4].size(0) == 2 ? in[4][b].item().toLong() + token
                                          : in[4][b * count + token].item().toLong();
      for (int64_t head = 0; head < heads; ++head) {
        const Tensor row = kv[b][head][token];
        double squares = 0;
        for (int64_t i = 0; i < normed; ++i) squares += Number(row[i]) * Number(row[i]);
        const double root = std::sqrt(squares / static_cast<double>(normed) + in.real(12));
        RealNumbers scaled, key, value;
        for (int64_t i = 0; i < normed; ++i)
          scaled.push_back(Number(row[i]) / root * Number(gamma[i]));
        for (int64_t i = 0; i < keys; ++i)
          key.push_back(apart ? scaled[i] : Number(row[normed + i]));
        for (int64_t i = 0; i < kLatentValues; ++i) {
          value.push_back(apart ? Number(in[11][b][head][token][i]) : scaled[i]);
        }
        const RealNumbers first = TurnedNeighbourPairs({key.begin(), key.begin() + turned},
                                                       in[2][b][0][angle], in[3][b][0][angle]);
        std::copy(first.begin(), first.end(), key.begin());
        key_out[b][head][token].copy_(at::tensor(key, at::kDouble));
        value_out[b][head][token].copy_(at::tensor(value, at::kDouble));
        if (slot < 0) continue;
        PutLatent(key_cache, mode, b, head, slot, key, maybe(7), maybe(9));
        PutLatent(value_cache, mode, b, head, slot, value, maybe(8), maybe(10));
      }
    }
  }
  const bool written = in.flag(14) && (!norm || (apart && (Given(in, 7) || Given(in, 8))));
  const at::ScalarType dtype = in[0].scalar_type();
  return {key_cache, value_cache, written ? key_out.to(dtype) : Tensor(),
          written ? value_out.to(dtype) : Tensor()};
}

}  // namespace

Rows ServingRows() {
  const auto drawn = [](bool second) {
    return [second](const In& in) { return DrawnTokenByToken(in, second); };
  };
  const Dtypes elements = {at::kChar, at::kShort,    at::kInt,  at::kByte,
                           at::kHalf, at::kBFloat16, at::kFloat};
  Rows rows = {
      {"aclnnScatterList", ListRows, elements, ListElementByElement},
      {"aclnnTopKTopPSample", DrawnRows, kServedDtypes, drawn(false), kServed},
      {"aclnnTopKTopPSampleV2",
       DrawnRowsV2,
       {at::kFloat, at::kHalf, at::kBFloat16},
       drawn(true),
       kServed},
      {"aclnnDequantRopeQuantKvcache", TurnedKeys, kServedDtypes, KeysRowByRow, kServed},
      {"aclnnKvRmsNormRopeCacheV2", LatentTokens, kServedDtypes, LatentOneByOne, kServed},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
