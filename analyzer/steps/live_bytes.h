// Counts the bytes that lie across a cut of a program: written before it and read after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/steps/operator_sequence.h"

namespace acltape::analyzer {

// Counts bytes for each cut, from the one before place `cuts.first` to the one before place
// `cuts.second` inclusive. A byte counts if a place of `window` before the cut wrote it, a place of
// `window` after the cut reads it, and nothing writes it between. Not counted are
//   - values that live for `longest` places or more. They are state of the program, such as its
//     parameters, and lie across every cut alike;
//   - constants (a fill that reads nothing). They can be made before or after the cut.
// The time is near-linear in the accesses of the window.
std::vector<int64_t> LiveBytesAcross(const OperatorSequence& sequence, PlaceRange window,
                                     PlaceRange cuts, size_t longest);

}  // namespace acltape::analyzer
