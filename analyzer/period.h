// Finds the iterations of a workload in the sequence of its operators, by their period.
//
// The candidate periods are the distances between equal stretches of operators, and the winner is
// the shortest period whose repeated stretch covers almost as much weight as the best. The cut is
// where a program would put it: behind the host read that the longest stretch without another
// follows, else where the repetition begins. Calls before it that resemble a period (a first
// iteration that sets up state) become the first step; a tail of at least half a period becomes the
// last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace acltape::analyzer {

// The calls of a program in order, by what the search looks at. All arrays are of one length.
struct OperatorSequence {
  std::vector<int32_t> symbols;     // equal for equal operators
  std::vector<uint8_t> weights;     // 1 for what executes or reads back, 0 for views and the like
  std::vector<uint8_t> host_reads;  // 1 where the host waits for a value

  size_t size() const { return symbols.size(); }
  void Add(int32_t symbol, bool weight, bool host_read) {
    symbols.push_back(symbol);
    weights.push_back(weight ? 1 : 0);
    host_reads.push_back(host_read ? 1 : 0);
  }
};

// Half-open ranges of places, in order and without gaps between them; none when nothing repeats.
// Time near-linear in the length: a place is looked at a bounded number of times per candidate.
std::vector<std::pair<size_t, size_t>> FindPeriods(const OperatorSequence& sequence);

}  // namespace acltape::analyzer
