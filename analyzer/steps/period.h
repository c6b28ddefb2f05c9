// Finds the iterations of a workload in the sequence of its operators, by their period.
//
// The candidate periods are the distances between equal runs of operators. The winner is the
// shortest period whose repeated stretch covers almost as much weight as the best one. A stretch of
// one operator alone is passed over where its calls would be the steps (one_place_can_be_a_step).
// The evidence of analyzer/steps/step_cut.h decides where in the period a step begins. The clues
// are the end of the repetition, the host read with the longest part without another read after it,
// and the start of the repetition. Calls before the first step that resemble a period (a first
// iteration that sets up state) become the first step. A tail of at least half a period becomes the
// last step.
//
// A program that executes graphs of its own often does so in a loop inside of another one, such as
// tokens of a request, or requests of a batch size. Its steps are the cycles of the inner loop: the
// shortest cycle that executes a graph and reads a result, if such cycles cover almost as much as
// the best repetition does. They may lie in several stretches.
//
// Programs that train are cut by their phases instead (analyzer/steps/training_steps.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/steps/operator_sequence.h"

namespace acltape::analyzer {

// Places [first, end) that consist of equal cycles. The last cycle may be incomplete.
struct Repetition {
  size_t first = 0;
  size_t end = 0;
  size_t period = 0;   // 0: nothing repeats
  int64_t weight = 0;  // calls in it that execute or read back
};

// Finds the best repetition. The time is near-linear in the length, because each candidate visits a
// place a bounded number of times.
Repetition FindRepetition(const OperatorSequence& sequence);

// Finds the stretches in which the steps of a program lie, in order: the best repetition, or those
// of the inner loop of a program that executes graphs. Empty if nothing repeats.
std::vector<Repetition> FindStretches(const OperatorSequence& sequence);

// The steps of a repetition, in order and without gaps, none before the place `earliest`. Empty if
// nothing repeats.
std::vector<PlaceRange> CutRepetition(const OperatorSequence& sequence,
                                      const Repetition& repetition, size_t earliest = 0);

// Finds the start of an iteration before `cut` that resembles the places `like` without matching
// them. It is the place, not before `earliest`, from which the operators up to `cut` have most in
// common with those of `like` (Dice coefficient of the two bags). Returns `cut` if no place reaches
// two thirds.
size_t FirstIteration(const OperatorSequence& sequence, size_t cut, PlaceRange like,
                      size_t earliest);

}  // namespace acltape::analyzer
