// Finds the step for which a plan is made and the steps that one graph could serve with it, and
// simulates how a cache of graphs would have fared over the trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/graph/variation.h"
#include "analyzer/program/program.h"

namespace acltape::analyzer::plan {

// Steps that differ in values and addresses only. They have equal operators with equal element
// types, shapes and strides at every place. One graph with input copies and argument updates serves
// them all.
struct ShapeClass {
  size_t family = 0;          // index in the families it was made of
  graph::StepFamily members;  // its steps; the first one is the template
};

// Finds the classes of all families, in the order of their first steps.
std::vector<ShapeClass> FindShapeClasses(const Work& work,
                                         const std::vector<graph::StepFamily>& families);

// The class with the most steps. Among equals it is the one that issues the most calls.
// Precondition: there is at least one class.
const ShapeClass& LargestClass(const std::vector<ShapeClass>& classes);

// The calls as a program of their own, for functions that work on leaves, such as lowering. The
// program has no recorded values.
Program ProgramOf(const Work& work, const std::vector<size_t>& calls);

// The captures and hits of a simulated cache of graphs over the recorded steps, under one guard
// policy.
struct GuardOutcome {
  std::string policy;
  int64_t captures = 0;  // number of graphs: the first step of each kind
  int64_t hits = 0;
  // Captures after the first one, by the property in which the step differs from the step before
  // it.
  int64_t by_operators = 0;
  int64_t by_shape = 0;
  int64_t by_value = 0;
  int64_t by_address = 0;
};

// A graph is found by operators and shapes. Without updates every varying host argument must also
// be equal. Without copies the address of every input must also be equal.
std::vector<GuardOutcome> SimulateGuards(const Work& work, const std::vector<ShapeClass>& classes);

}  // namespace acltape::analyzer::plan
