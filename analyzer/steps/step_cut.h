// Chooses the place at which one step ends and the next one begins.
//
// The evidence, the strongest first:
//   1. No cut lies inside a user or module range that lasts about a step or less.
//   2. The fewest bytes lie across the cut (analyzer/steps/live_bytes.h): a step consumes what it
//   made.
//   3. Among equal cuts, most clues name this one. A clue is a place that the caller found likely,
//      such as the end of the last iteration.
//   4. Without a clue, the step ends with the last call that reads something. Calls that make a
//      value from nothing (random numbers, allocations, fills) and views prepare the next step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/steps/operator_sequence.h"

namespace acltape::analyzer {

struct CutQuestion {
  PlaceRange cuts;            // the cut is before one of these, both included
  PlaceRange window;          // calls that count for live bytes
  size_t longest = 0;         // values that live so long are state of the program
  std::vector<size_t> clues;  // likely cuts, the most likely first
};

struct CutAnswer {
  size_t place = 0;   // the next step begins here
  int64_t bytes = 0;  // bytes that lie across the cut
};

// Says for each place whether a cut before it would split a range that is at most `longest` places
// long.
std::vector<uint8_t> PlacesInsideRanges(const OperatorSequence& sequence, size_t longest);

CutAnswer ChooseCut(const OperatorSequence& sequence, const std::vector<uint8_t>& inside_range,
                    const CutQuestion& question);

}  // namespace acltape::analyzer
