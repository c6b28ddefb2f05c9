// Treats host arguments that differ between the steps of a class. Either the leaf's calls are
// captured in a task group, whose arguments are updated before an execution (rules TG-01 to TG-06,
// UPD-01 to UPD-07); or the leaf runs eagerly; or the graph keeps the value that it captured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/program/step_template.h"
#include "replayer/engine/execution.h"

namespace acltape::replayer {

// A leaf whose arguments vary, with their distinct values over the steps of the class.
struct VaryingLeaf {
  enum class Treatment { kUpdate, kEager, kBake };
  size_t place = 0;              // place among the active leaves
  std::vector<int> arguments;    // indices in Leaf::arguments
  std::vector<int> value_of;     // number of the value, by match
  std::vector<size_t> match_of;  // first match with the value, by number of the value
  Treatment treatment = Treatment::kUpdate;
  std::string reason;  // for kEager: why the arguments cannot be updated
};

// Returns the varying leaves of a class, by place. Without a plan all of them are updated, with a
// plan only those that it names. If `updates` is false, none is. A leaf is kEager if it should be
// updated but cannot be, because the steps lower to different operators or the device refuses.
std::vector<VaryingLeaf> FindVaryingLeaves(Execution& execution,
                                           const analyzer::StepTemplate& step_class,
                                           const analyzer::plan::Plan* plan, bool updates);

// Describes two values of a leaf, by match, such as "call 812 aten::add_: argument alpha is -0.1 in
// step 0 and -0.05 in step 3 (call 1014)".
std::string DescribeVariation(const analyzer::Program& program,
                              const analyzer::StepTemplate& step_class, const VaryingLeaf& leaf,
                              size_t match_a, size_t match_b);

}  // namespace acltape::replayer
