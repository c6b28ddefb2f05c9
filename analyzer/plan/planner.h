// Makes a plan for a trace. It picks the template step, cuts it into regions, puts each captured
// region on streams, lists what must be copied and updated, and predicts the gain.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/memory/pool.h"
#include "analyzer/plan/cuts.h"
#include "analyzer/plan/plan.h"
#include "analyzer/plan/template_step.h"
#include "analyzer/prediction/prediction.h"
#include "analyzer/streams/budget.h"
#include "analyzer/streams/plan_streams.h"

namespace acltape::analyzer::plan {

inline constexpr double kExpectedReplays = 1000;

struct PlanOptions {
  int32_t streams = 4;  // most streams of a region; 0: as many as can run at the same time
  bool spread = false;  // several streams even if predicted not to pay
  std::string capture_mode = "relaxed";
  std::string soc = "Ascend910B1";
  size_t minimum_region = 2;  // calls
  // Stream numbers for all graphs together. 0 means all usable stream numbers of the SoC.
  int64_t budget_streams = 0;
  // Device memory for all graphs together. 0 means no limit. To keep to it, the planner first gives
  // up streams, then the graphs that save least.
  int64_t budget_bytes = 0;
  int64_t most_captures = std::numeric_limits<int64_t>::max();
  // Steps that a capture will serve. Without a value it is kExpectedReplays, and none if every step
  // of the trace has operators and shapes of its own, because no graph is then executed again.
  std::optional<double> expected_replays;
  const prediction::DeviceCosts* costs = nullptr;  // null: those of the recording
};

// The contribution of one region to the plan.
struct RegionFigures {
  CutRegion cut;
  std::vector<size_t> calls;  // indices in Work::calls
  double host_ns = 0;         // time to issue its calls eagerly
  std::string_view edit;      // for eager regions, the change that would make it capturable
  streams::StreamCertificate certificate;  // for captured regions
  streams::GraphLoad load;
  // The conditions under which its graph can serve another step. Some are checked, others are made
  // to hold by copies and updates.
  int64_t copied_inputs = 0;
  int64_t updated_arguments = 0;
  int64_t guarded_addresses = 0;  // inputs that are used where they lie
  int64_t guarded_shapes = 0;     // dimensions of its tensors that vary between steps
};

// The result of one policy for cuts, for comparison.
struct PolicyFigures {
  std::string name;
  int64_t graphs = 0;
  size_t calls = 0;      // captured
  double saving_ns = 0;  // as the problem in cuts.h defines it
};

struct PlannedStep {
  Plan plan;
  std::vector<RegionFigures> regions;   // as in the plan
  std::vector<PolicyFigures> policies;  // this plan first
  std::vector<GuardOutcome> guards;
  prediction::Prediction prediction;
  // Device memory that the graphs keep. A graph on several streams shares no memory between its
  // buffers. `pools` are those of the graphs on one stream.
  int64_t graph_bytes = 0;
  memory::PoolSet pools;
  bool measured = false;  // the costs come from a calibration
  // The numbers of costs that the recording gave; see DeviceCosts.
  int64_t signatures = 0;
  int64_t timed_signatures = 0;
  int64_t launching_signatures = 0;
  size_t steps = 0;        // steps of the trace
  size_t families = 0;     // families of equal operators
  size_t classes = 0;      // classes of equal shapes too
  size_t class_steps = 0;  // steps that the plan serves
  size_t varying_arguments = 0;
  size_t calls = 0;            // active calls of the step
  double host_ns = 0;          // to issue them
  size_t calls_held = 0;       // calls that graphs of the program's own hold already
  size_t graphs_executed = 0;  // executions of such graphs in the step
  // True if no other step could execute the graphs of this one, so that they would save nothing.
  bool served_once = false;
  // Calls of regions that the plan captures and the program does not, their host time, and the
  // number of these regions.
  size_t captured_calls() const;
  double captured_host_ns() const;
  size_t captures() const;
};

// The work must be one of leaves (LoadLeaves in analyzer/steps/steps.h) with steps. Throws Error
// kTrace, one sentence, when it has no steps, and kUsage when the SoC is unknown.
PlannedStep MakePlan(const Work& work, const PlanOptions& options);

}  // namespace acltape::analyzer::plan
