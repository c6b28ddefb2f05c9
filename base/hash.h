// Mixing of bits for hash tables, and for numbers that look random and repeat. All code that mixes
// takes its numbers from here, the agents in other people's processes too: nothing allocates, and
// nothing is included but the integer types.
//
// Hashes of one process only, unless a function says more: a trace keeps none of them.
#pragma once

#include <cstdint>

namespace acltape::base {

// 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, section 6.4).
inline constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
// The first multiplier of SplitMix64.
inline constexpr uint64_t kOtherFactor = 0xBF58476D1CE4E5B9;

// A multiplicative hash. Its upper bits depend on all bits of the key, its lower ones do not.
constexpr uint64_t SpreadBits(uint64_t key) { return key * kGoldenRatio; }

// The same for two numbers; 32 bits, all of them good.
constexpr uint64_t SpreadPair(uint64_t a, uint64_t b) {
  return SpreadBits(a ^ (b * kOtherFactor)) >> 32;
}

// Takes one more value into a hash. The order of the values matters.
constexpr uint64_t HashWith(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * kGoldenRatio;
  return hash ^ (hash >> 29);
}

// The last part of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): each bit of the argument
// changes each bit of the result about half of the time. It maps 0 to 0.
constexpr uint64_t Avalanche(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * kOtherFactor;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

// A reproducible draw: equal bits give equal bits, and near ones give unrelated ones. The same in
// every process and version.
constexpr uint64_t MixBits(uint64_t bits) { return Avalanche(bits + kGoldenRatio); }

// FNV-1a over 64 bits, byte by byte (Fowler, Noll, Vo). The same in every process and version.
class Fnv1a {
 public:
  constexpr void Add(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001B3; }
  constexpr uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xCBF29CE484222325;
};

}  // namespace acltape::base
