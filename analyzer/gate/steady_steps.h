// The steady steps of a work: the largest group of steps with equal operators in equal order, by
// the calls that a gate counts.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/graph/variation.h"

namespace acltape::analyzer::gate {

struct SteadySteps {
  // The steps and their counted calls. If the work has no steps, one run of all counted calls, with
  // no step in `family.steps`.
  graph::StepFamily family;
  size_t kinds = 0;   // groups of two or more steps with equal operators
  size_t shapes = 0;  // groups of two or more steps of the family with equal shapes

  // The counted calls of its first step.
  std::vector<size_t> First() const {
    const auto begin = family.calls.begin();
    return {begin, begin + static_cast<std::ptrdiff_t>(family.places)};
  }
};

// `counts` says of a call of the work if a gate counts it.
SteadySteps FindSteadySteps(const Work& work, const std::function<bool(size_t call)>& counts);

}  // namespace acltape::analyzer::gate
