// Weights and double-precision reference of decoder.cpp: a decoder of two layers, small enough that
// the reference is a page of loops. Nothing of ACL but the conversion of half precision.
#ifndef DECODER_WEIGHTS_H_
#define DECODER_WEIGHTS_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "acl/acl.h"

namespace decoder {

constexpr int64_t kVocabulary = 96, kHidden = 64, kLayers = 2;
constexpr int64_t kHeads = 4, kKeyHeads = 2, kWidth = 16;  // grouped queries
constexpr int64_t kProjected = (kHeads + 2 * kKeyHeads) * kWidth;
constexpr int64_t kInner = 96,
                  kPlaces = 32;  // inner size of the feed-forward part; places of the cache
constexpr int64_t kGroup = 64;   // rows of a weight of 4 bits that share a scale
constexpr double kEpsilon = 1e-6;

// The same numbers on every machine: a linear congruence, its upper bits, in [-1, 1).
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 2654435761u + 12345) {}
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / (1 << 23) - 1;
  }

 private:
  uint64_t state_;
};

// A matrix as the device holds it, and the numbers that this means.
struct HalfMatrix {
  int64_t rows, columns;
  std::vector<aclFloat16> bits;
  std::vector<double> values;
};
struct QuantisedMatrix {
  int64_t rows, columns, group;    // group: rows that share a scale
  std::vector<int32_t> whole;      // [rows, columns]
  std::vector<aclFloat16> scales;  // [rows / group, columns]
  std::vector<aclFloat16> offsets;
  std::vector<double> values;  // (whole + offset) * scale
};

inline HalfMatrix MakeHalf(int64_t rows, int64_t columns, double size, Numbers& numbers) {
  HalfMatrix made{rows, columns, {}, {}};
  for (int64_t i = 0; i < rows * columns; ++i) {
    made.bits.push_back(aclFloatToFloat16(static_cast<float>(size * numbers.Next())));
    made.values.push_back(aclFloat16ToFloat(made.bits.back()));
  }
  return made;
}

// Integers of 4 bits in groups, or of 8 bits with a scale and an offset for each column.
inline QuantisedMatrix MakeQuantised(int64_t rows, int64_t columns, int bits, double size,
                                     Numbers& numbers) {
  QuantisedMatrix made{rows, columns, bits == 4 ? kGroup : rows, {}, {}, {}, {}};
  const int limit = 1 << (bits - 1);
  for (int64_t i = 0; i < rows / made.group * columns; ++i) {
    const double scale = size / limit * (1 + 0.25 * numbers.Next());
    made.scales.push_back(aclFloatToFloat16(static_cast<float>(scale)));
    const double offset = bits == 8 ? std::floor(4 * numbers.Next()) : 0;
    made.offsets.push_back(aclFloatToFloat16(static_cast<float>(offset)));
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int whole = static_cast<int>(std::floor(limit * numbers.Next()));
      const auto group = static_cast<size_t>(row / made.group * columns + column);
      made.whole.push_back(whole);
      made.values.push_back((whole + aclFloat16ToFloat(made.offsets[group])) *
                            static_cast<double>(aclFloat16ToFloat(made.scales[group])));
    }
  }
  return made;
}

struct Layer {
  std::vector<float> before_attention, before_feed;  // factors of the norms
  HalfMatrix project;                                // queries, keys and values: mixed product
  HalfMatrix collect;                                // heads to hidden: blocked
  QuantisedMatrix widen;                             // gate and inner part: 4 bits, blocked
  QuantisedMatrix narrow;                            // 8 bits, blocked
};

struct Weights {
  std::vector<float> embedding, last;
  std::vector<float> cosines, sines;  // [kPlaces, kWidth]
  std::vector<Layer> layers;
  HalfMatrix head;
};

inline std::vector<float> MakeFactors(Numbers& numbers) {
  std::vector<float> made;
  for (int64_t i = 0; i < kHidden; ++i) {
    made.push_back(static_cast<float>(1 + 0.2 * numbers.Next()));
  }
  return made;
}

inline Weights MakeWeights(uint64_t seed) {
  Numbers numbers(seed);
  Weights made;
  for (int64_t i = 0; i < kVocabulary * kHidden; ++i) {
    made.embedding.push_back(static_cast<float>(numbers.Next()));
  }
  for (int64_t place = 0; place < kPlaces; ++place) {
    for (int64_t i = 0; i < kWidth; ++i) {
      const double angle = static_cast<double>(place) *
                           std::pow(10000.0, -2.0 * static_cast<double>(i % (kWidth / 2)) / kWidth);
      made.cosines.push_back(static_cast<float>(std::cos(angle)));
      made.sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  for (int64_t i = 0; i < kLayers; ++i) {
    Layer layer;
    layer.before_attention = MakeFactors(numbers);
    layer.project = MakeHalf(kHidden, kProjected, 0.35, numbers);
    layer.collect = MakeHalf(kHeads * kWidth, kHidden, 0.3, numbers);
    layer.before_feed = MakeFactors(numbers);
    layer.widen = MakeQuantised(kHidden, 2 * kInner, 4, 0.3, numbers);
    layer.narrow = MakeQuantised(kInner, kHidden, 8, 0.2, numbers);
    made.layers.push_back(layer);
  }
  made.last = MakeFactors(numbers);
  made.head = MakeHalf(kHidden, kVocabulary, 0.3, numbers);
  return made;
}

// The decoder in double precision: the logits that follow the tokens seen so far.
class Reference {
 public:
  explicit Reference(const Weights& weights)
      : weights_(weights), keys_(kLayers), values_(kLayers) {}

  std::vector<double> Step(int64_t token, int64_t place) {
    Row x = Part(weights_.embedding, token * kHidden, kHidden);
    for (size_t i = 0; i < weights_.layers.size(); ++i) {
      const Layer& layer = weights_.layers[i];
      const Row rows = Times(Norm(x, layer.before_attention), layer.project);
      Add(x, Times(Attend(i, rows, place), layer.collect));
      const Row wide = Times(Norm(x, layer.before_feed), layer.widen);
      Row gated;
      for (int64_t k = 0; k < kInner; ++k) {
        const double gate = wide[static_cast<size_t>(k)];
        gated.push_back(gate / (1 + std::exp(-gate)) * wide[static_cast<size_t>(k + kInner)]);
      }
      Add(x, Times(gated, layer.narrow));
    }
    return Times(Norm(x, weights_.last), weights_.head);
  }

 private:
  using Row = std::vector<double>;

  template <typename Number>
  static Row Part(const std::vector<Number>& of, int64_t first, int64_t count) {
    return Row(of.begin() + first, of.begin() + first + count);
  }

  static void Add(Row& to, const Row& more) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += more[i];
  }

  static Row Norm(const Row& x, const std::vector<float>& factors) {
    double squares = 0;
    for (double value : x) squares += value * value;
    const double root = std::sqrt(squares / static_cast<double>(x.size()) + kEpsilon);
    Row made;
    for (size_t i = 0; i < x.size(); ++i) made.push_back(x[i] / root * factors[i]);
    return made;
  }

  template <typename Matrix>
  static Row Times(const Row& x, const Matrix& matrix) {
    Row made(static_cast<size_t>(matrix.columns));
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t k = 0; k < made.size(); ++k) made[k] += x[i] * matrix.values[i * made.size() + k];
    }
    return made;
  }

  // One head, turned by the angles of its place.
  Row Turned(const Row& rows, int64_t first, int64_t place) const {
    const Row head = Part(rows, first, kWidth);
    const Row cosines = Part(weights_.cosines, place * kWidth, kWidth);
    const Row sines = Part(weights_.sines, place * kWidth, kWidth);
    Row made;
    for (size_t i = 0; i < kWidth; ++i) {
      const double other = i < kWidth / 2 ? -head[i + kWidth / 2] : head[i - kWidth / 2];
      made.push_back(head[i] * cosines[i] + other * sines[i]);
    }
    return made;
  }

  Row Attend(size_t layer, const Row& rows, int64_t place) {
    for (int64_t head = 0; head < kKeyHeads; ++head) {
      keys_[layer].push_back(Turned(rows, (kHeads + head) * kWidth, place));
      values_[layer].push_back(Part(rows, (kHeads + kKeyHeads + head) * kWidth, kWidth));
    }
    Row made;
    for (int64_t head = 0; head < kHeads; ++head) {
      const Row query = Turned(rows, head * kWidth, place);
      const int64_t of = head / (kHeads / kKeyHeads);
      Row weights;
      double sum = 0;
      for (int64_t past = 0; past <= place; ++past) {
        const Row& key = keys_[layer][static_cast<size_t>(past * kKeyHeads + of)];
        double score = 0;
        for (size_t i = 0; i < kWidth; ++i) score += query[i] * key[i];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(kWidth))));
        sum += weights.back();
      }
      Row result(kWidth);
      for (int64_t past = 0; past <= place; ++past) {
        const Row& value = values_[layer][static_cast<size_t>(past * kKeyHeads + of)];
        for (size_t i = 0; i < kWidth; ++i) {
          result[i] += weights[static_cast<size_t>(past)] / sum * value[i];
        }
      }
      made.insert(made.end(), result.begin(), result.end());
    }
    return made;
  }

  const Weights& weights_;
  std::vector<std::vector<Row>> keys_, values_;  // by layer: one row for each place and head
};

}  // namespace decoder

#endif  // DECODER_WEIGHTS_H_
