// Distributions of random numbers: what is wrong with their parameters, and how to draw (RND-01).
//
// `T` is the type of the numbers and of the parameters. Results may lie at any address.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/philox.h"

namespace acltape::device {

template <typename T>
void StoreAt(void* to, uint64_t index, T value) {
  std::memcpy(static_cast<char*>(to) + index * sizeof(T), &value, sizeof(T));
}

// From `least` to below `most`. Where both are equal, every number is that one.
template <typename T>
struct Uniform {
  static const char* Problem(T least, T most) {
    if constexpr (std::is_integral_v<T>) {
      return least <= most ? nullptr : "min is greater than max";
    } else {
      const auto low = static_cast<float>(least);
      const auto high = static_cast<float>(most);
      if (!std::isfinite(low) || !std::isfinite(high)) return "min or max is not finite";
      return low <= high ? nullptr : "min is greater than max";
    }
  }

  static void Fill(T least, T most, Philox& generator, void* to, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) StoreAt(to, i, Draw(least, most, generator));
  }

 private:
  static T Draw(T least, T most, Philox& generator) {
    if constexpr (std::is_integral_v<T>) {
      const uint64_t width = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
      const uint64_t draw = width == 0 ? 0 : generator.Next64() % width;
      return static_cast<T>(static_cast<uint64_t>(least) + draw);
    } else {
      const auto low = static_cast<float>(least);
      const auto high = static_cast<float>(most);
      const double width = static_cast<double>(high) - low;
      const auto drawn = static_cast<T>(static_cast<float>(low + generator.Unit() * width));
      // Rounding may reach the limit, which does not belong to the range.
      return static_cast<float>(drawn) < high ? drawn : least;
    }
  }
};

template <typename T>
struct Normal {
  static const char* Problem(T mean, T deviation) {
    if (!std::isfinite(static_cast<float>(mean))) return "mean is not finite";
    const auto width = static_cast<float>(deviation);
    return std::isfinite(width) && width >= 0 ? nullptr : "stddev is negative or not finite";
  }

  static void Fill(T mean, T deviation, Philox& generator, void* to, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      StoreAt(to, i, Scale(mean, deviation, generator.Normal()));
    }
  }

  static T Scale(T mean, T deviation, double draw) {
    const double scaled = static_cast<float>(mean) + draw * static_cast<float>(deviation);
    return static_cast<T>(static_cast<float>(scaled));
  }
};

// Draws that lie more than two deviations from the mean are drawn again.
template <typename T>
struct TruncatedNormal {
  static const char* Problem(T mean, T deviation) { return Normal<T>::Problem(mean, deviation); }

  static void Fill(T mean, T deviation, Philox& generator, void* to, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      double draw = generator.Normal();
      while (std::abs(draw) > 2) draw = generator.Normal();
      StoreAt(to, i, Normal<T>::Scale(mean, deviation, draw));
    }
  }
};

// One bit for each number, the lowest bit of a byte first. `ratio` is the probability of a 0, which
// drops an element.
template <typename T>
struct DropoutMask {
  static const char* Problem(T ratio, T) {
    const auto number = static_cast<float>(ratio);
    return number >= 0 && number <= 1 ? nullptr : "the ratio is not between 0 and 1";
  }

  static void Fill(T ratio, T, Philox& generator, void* to, uint64_t count) {
    auto* bytes = static_cast<uint8_t*>(to);
    const auto number = static_cast<float>(ratio);
    std::memset(bytes, 0, (count + 7) / 8);
    for (uint64_t i = 0; i < count; ++i) {
      if (generator.Unit() >= number) bytes[i / 8] |= static_cast<uint8_t>(1 << i % 8);
    }
  }
};

}  // namespace acltape::device
