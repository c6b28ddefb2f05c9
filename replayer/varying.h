// How captured graphs follow host arguments that differ between the steps of a class: the leaf's
// calls are captured in a task group, whose arguments are updated before an execution (rules TG-01
// to TG-06, UPD-01 to UPD-07); or it runs eagerly; or the graph keeps the value that it captured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/step_template.h"
#include "replayer/execution.h"

namespace acltape::replayer {

// A leaf with arguments that vary, and its distinct values over the steps of the class.
struct VaryingLeaf {
  enum class Treatment { kUpdate, kEager, kBake };
  size_t at = 0;                 // place in the list of active leaves
  std::vector<int> arguments;    // indices in Leaf::arguments
  std::vector<int> value_of;     // by match: the number of its value
  std::vector<size_t> match_of;  // by value: the first match that has it
  Treatment treatment = Treatment::kUpdate;
  std::string reason;  // of kEager: why the arguments cannot be updated
};

// The varying leaves of a class by place. Without a plan all are updated, else those that the plan
// names; without `updates` none is. What should be updated but cannot be, because the steps lower
// to different operators or the device refuses, is kEager.
std::vector<VaryingLeaf> FindVaryingLeaves(Execution& execution,
                                           const analyzer::StepTemplate& step_class,
                                           const analyzer::Plan* plan, bool updates);

// "call 812 aten::add_: argument alpha is -0.1 in step 0 and -0.05 in step 3 (call 1014)": two
// values of the leaf, by match.
std::string DescribeVariation(const analyzer::Program& program,
                              const analyzer::StepTemplate& step_class, const VaryingLeaf& leaf,
                              size_t match_a, size_t match_b);

}  // namespace acltape::replayer
