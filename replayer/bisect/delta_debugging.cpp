#include "replayer/bisect/delta_debugging.h"

#include <algorithm>
#include <cstddef>

namespace acltape::replayer::bisect {
namespace {

struct Piece {
  size_t first = 0;
  size_t end = 0;
};

// Splits a set into pieces of nearly equal size. No piece is empty if `pieces` is at most
// set.size().
std::vector<Piece> Split(const script::ElementSet& set, size_t pieces) {
  std::vector<Piece> result;
  for (size_t i = 0; i < pieces; ++i) {
    result.push_back({set.size() * i / pieces, set.size() * (i + 1) / pieces});
  }
  return result;
}

script::ElementSet Inside(const script::ElementSet& set, Piece piece) {
  return {set.begin() + static_cast<std::ptrdiff_t>(piece.first),
          set.begin() + static_cast<std::ptrdiff_t>(piece.end)};
}

script::ElementSet Outside(const script::ElementSet& set, Piece piece) {
  script::ElementSet rest(set.begin(), set.begin() + static_cast<std::ptrdiff_t>(piece.first));
  rest.insert(rest.end(), set.begin() + static_cast<std::ptrdiff_t>(piece.end), set.end());
  return rest;
}

}  // namespace

script::ElementSet MinimizeByDeltaDebugging(
    script::ElementSet set, const std::function<bool(const script::ElementSet&)>& fails) {
  size_t pieces = 2;
  while (set.size() >= 2) {
    const std::vector<Piece> parts = Split(set, pieces);
    const auto failing_part = std::find_if(parts.begin(), parts.end(),
                                           [&](Piece piece) { return fails(Inside(set, piece)); });
    if (failing_part != parts.end()) {
      set = Inside(set, *failing_part);
      pieces = 2;
      continue;
    }
    // With two pieces, each piece is the complement of the other, so the complements need not be
    // asked.
    const auto superfluous_part =
        pieces == 2 ? parts.end() : std::find_if(parts.begin(), parts.end(), [&](Piece piece) {
          return fails(Outside(set, piece));
        });
    if (superfluous_part != parts.end()) {
      set = Outside(set, *superfluous_part);
      pieces = std::max<size_t>(pieces - 1, 2);
      continue;
    }
    if (pieces == set.size()) break;
    pieces = std::min(pieces * 2, set.size());
  }
  return set;
}

}  // namespace acltape::replayer::bisect
