// Finds the steps of a program that trains, by the turns of its phases.
//
// An update is the work of an optimiser after a backward pass. A step ends somewhere between an
// update and the next backward pass; analyzer/steps/step_cut.h chooses the place. A validation that
// the program makes now and then therefore belongs to the step before it, and steps may have
// unequal lengths.
//
//   update        calls of the phase "optimizer". If a trace has none (a program with its own
//                 update), calls outside of the backward pass that read what it wrote.
//   same updates  updates that write the same buffers. Two optimisers that take turns (a GAN) make
//                 a period of two updates, and the step is that period. Calls between backward
//                 passes without an update (accumulated gradients) end no step.
//   turn          the calls between an update and the next backward pass.
//   same turns    turns that have the same operators, or end with those of the usual turn. They
//                 are cut alike.
#pragma once

#include <vector>

#include "analyzer/steps/operator_sequence.h"

namespace acltape::analyzer {

// The steps, in order and without gaps. Empty if fewer than two updates follow a backward pass. The
// time is near-linear in the calls and their accesses.
std::vector<PlaceRange> FindTrainingSteps(const OperatorSequence& sequence);

}  // namespace acltape::analyzer
