// The step that a plan is made for, the steps that one graph could serve with it, and how a cache
// of graphs would have fared over the trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/graph/variation.h"
#include "analyzer/program.h"
#include "analyzer/work/work.h"

namespace acltape::analyzer {

// Steps that differ in values and places only: equal operators with equal element types, shapes and
// strides at every place. One graph with input copies and argument updates serves them all.
struct ShapeClass {
  size_t family = 0;   // index in the families it was made of
  StepFamily members;  // its steps; the first one is the template
};

// The classes of all families, in order of their first steps.
std::vector<ShapeClass> FindShapeClasses(const Work& work, const std::vector<StepFamily>& families);

// The class with the most steps, of equals the one that issues the most calls. Precondition: there
// is one.
const ShapeClass& LargestClass(const std::vector<ShapeClass>& classes);

// The calls as a program of their own, for what asks about leaves (lowering); it has no recorded
// values.
Program ProgramOf(const Work& work, const std::vector<size_t>& calls);

// How the recorded steps would have met a cache of graphs under one way to guard them.
struct GuardOutcome {
  std::string policy;
  int64_t captures = 0;  // graphs: the first step of each kind
  int64_t hits = 0;
  // Captures after the first by what the step did not share with the step before it.
  int64_t by_operators = 0;
  int64_t by_shape = 0;
  int64_t by_value = 0;
  int64_t by_address = 0;
};

// A graph is found by operators and shapes; without updates also by every varying host argument,
// without copies also by the place of every input.
std::vector<GuardOutcome> SimulateGuards(const Work& work, const std::vector<ShapeClass>& classes);

}  // namespace acltape::analyzer
