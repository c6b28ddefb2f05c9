// How much of a program a verdict saw. "Equal" is said of a program, by any command, only when what
// was compared tells of nineteen in twenty of the leaves that computed.
#pragma once

#include <cstdint>
#include <string>

namespace acltape::analyzer {

// True if `covered` of `all` are too few for a verdict.
constexpr bool TooFew(int64_t covered, int64_t all) { return covered * 20 < all * 19; }

struct Coverage {
  int64_t computed = 0;  // leaves whose operator ran on the device and wrote something
  int64_t covered = 0;   // those of them of which a compared result tells

  // "96 of 100"
  std::string Share() const { return std::to_string(covered) + " of " + std::to_string(computed); }
  bool TooLittle() const { return TooFew(covered, computed); }
};

}  // namespace acltape::analyzer
