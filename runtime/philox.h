// A random number generator whose numbers are a function of a seed and a counter.
//
// It is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): ten
// rounds turn a counter of 128 bits into a block of four words, and the seed is the key.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace acltape {

class Philox {
 public:
  struct Counter {
    uint32_t words[4];  // the least significant first
  };

  Philox(uint64_t seed, const Counter& counter) : seed_(seed), counter_(counter) {}

  uint32_t Next() {
    if (used_ == 4) MakeBlock();
    return block_[used_++];
  }
  uint64_t Next64() {
    const uint64_t high = Next();
    return high << 32 | Next();
  }
  // In [0, 1), exact as float.
  double Unit() { return static_cast<double>(Next() >> 8) / (1 << 24); }
  // Draws from the standard normal distribution, by the method of Box and Muller.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(Fraction()));
    return radius * std::cos(6.283185307179586 * Fraction());
  }
  // The counter of the first block that was not used.
  const Counter& counter() const { return counter_; }

 private:
  // In (0, 1).
  double Fraction() { return (static_cast<double>(Next() >> 8) + 0.5) / (1 << 24); }

  void MakeBlock() {
    std::memcpy(block_, counter_.words, sizeof(block_));
    uint32_t low_key = static_cast<uint32_t>(seed_);
    uint32_t high_key = static_cast<uint32_t>(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t first = uint64_t{0xD2511F53} * block_[0];
      const uint64_t second = uint64_t{0xCD9E8D57} * block_[2];
      block_[0] = static_cast<uint32_t>(second >> 32) ^ block_[1] ^ low_key;
      block_[1] = static_cast<uint32_t>(second);
      block_[2] = static_cast<uint32_t>(first >> 32) ^ block_[3] ^ high_key;
      block_[3] = static_cast<uint32_t>(first);
      low_key += 0x9E3779B9;
      high_key += 0xBB67AE85;
    }
    used_ = 0;
    for (uint32_t& word : counter_.words) {
      if (++word != 0) break;
    }
  }

  const uint64_t seed_;
  Counter counter_;
  uint32_t block_[4];
  int used_ = 4;
};

}  // namespace acltape
