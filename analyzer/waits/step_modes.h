// How the steps of a program ran: inside of graphs that it had captured, eagerly, or both, and the
// reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::waits {

enum class StepMode : uint8_t {
  kGraphs,    // all operators ran in graphs
  kPartly,    // some ran in graphs and others were issued one by one
  kEager,     // none ran in a graph
  kCaptured,  // the step captured a graph
  kNoWork,    // no operator ran
};
std::string_view StepModeName(StepMode mode);

// Steps of one mode for one reason.
struct StepModeRow {
  StepMode mode = StepMode::kNoWork;
  std::string reason;  // empty: there is nothing to explain
  int64_t steps = 0;
  int64_t first_step = 0;
  int64_t in_graphs = 0;  // operators, over all these steps
  int64_t eager = 0;
};

// In order of the number of steps. The work must have its steps.
std::vector<StepModeRow> FindStepModes(const Work& work);

}  // namespace acltape::analyzer::waits
