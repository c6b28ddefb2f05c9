// A mixed step: one step of a program, executed partly captured and partly eagerly, as a script.
//
// The step is one of the class that the plan was made for. Captured calls run in graphs at the
// addresses of the plan. The other calls run eagerly at homes, which share no memory with each
// other. A value is copied between the two at the moment of use: a value that a captured call left
// in the graph's memory is copied home right before the first eager call that reads it, or at the
// end if it is compared. So graph memory is read where and when a real replay would read it. With
// no call captured, the step is the eager one.
//
// Every execution begins with the recorded state: the step's inputs and the state that it changes
// have the contents that they had when the recorded program reached that step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/program/step_template.h"
#include "replayer/engine/script.h"
#include "replayer/script/memory_reuse.h"
#include "replayer/script/planted_fault.h"
#include "replayer/script/remedies.h"
#include "replayer/session.h"

namespace acltape::replayer::script {

class StepState;

// Extra conditions under which a right plan must still hold (the proof harness).
struct Stress {
  bool poison_gaps = false;      // memory without a live value holds NaN
  bool relocate_inputs = false;  // homes of inputs move between executions
  // Bytes that are allocated and freed between executions, as an allocator at work would do.
  int64_t churn_bytes = 0;
  bool operator==(const Stress&) const = default;
};

enum class Watch {
  // State that the step changes, and results that outlive the step, that the host reads, or that
  // nothing in the step uses.
  kStepOutputs,
  kEveryResult,  // every result of each call
};

struct MixedStepOptions {
  const analyzer::plan::Plan* plan = nullptr;  // null: the longest regions, one stream
  bool plan_updates = true;                    // false: graphs keep varying arguments
  // Both vectors are by place of the active leaf in the template step. Empty `captured`: every call
  // that the plan captures. Empty `executed`: every call. The results of a call that is not
  // executed come from the recording, so they are golden inputs for the executed calls.
  std::vector<bool> captured;
  std::vector<bool> executed;
  size_t capture_match = 0;            // the step whose values the capture sees
  std::vector<size_t> run_matches{1};  // the steps to execute, in this order
  // Captures everything once, and then disables the tasks of calls that are not in `captured`. This
  // works only for prefixes of one region.
  bool disable_tasks = false;
  // Says for each place whether a captured call runs on the stream of the plan. Other calls run on
  // the main stream of their region (kept_streams.h). Empty: every call runs on its stream.
  std::vector<bool> on_planned_stream;
  // The reuses of memory that stay as planned; the others get memory of their own. Nothing: all
  // stay.
  std::optional<KeptReuses> kept_reuses;
  Remedies remedies;
  Stress stress;
  std::vector<PlantedFault> faults;
  Watch watch = Watch::kStepOutputs;
};

class MixedStep {
 public:
  // Builds the step from the plan's class. The session and the plan must outlive the object. Throws
  // Error kUsage if the class has fewer than `least_steps` steps: where something is captured, one
  // step cannot tell a stale value from the right one. Throws Error kTrace if the trace lacks
  // contents at the start of a step.
  MixedStep(Session& session, Execution& execution, const analyzer::plan::Plan* plan,
            size_t least_steps = 2);

  const analyzer::StepTemplate& step_class() const { return *class_; }
  size_t places() const { return class_->leaves.size(); }
  // The places that the plan captures, in its order of issue. These are the elements of a
  // bisection. In this order every prefix of a region is a part of the graph in which the streams
  // are as in the whole graph.
  const std::vector<size_t>& capturable() const { return capturable_; }
  // CallAt returns the call of the template step at a place. PlaceOf returns the place of a call of
  // any step of the class. It throws Error kUsage if the call is not an active call of such a step.
  int64_t CallAt(size_t place) const;
  size_t PlaceOf(int64_t call_id) const;
  // Returns the call for people, such as "call 812 aten::mm".
  std::string Describe(size_t place) const;
  // Returns the call at a place of the step that the plan names; without a plan, of the template
  // step.
  int64_t PlannedCallAt(size_t place) const;

  // Writes the script. Throws Error kUsage if the options ask for steps that the class does not
  // have, for a fault that cannot be planted, or for a variant that cannot express them.
  Script Build(const MixedStepOptions& options) const;
  // Returns the memory that the captured calls use a second time, with planted faults, in order of
  // issue. It does not depend on `kept_reuses`. Throws as Build does.
  std::vector<MemoryReuse> Reuses(const MixedStepOptions& options) const;

  Session& session() const { return session_; }
  Execution& execution() const { return execution_; }
  const analyzer::plan::Plan* plan() const { return plan_; }

 private:
  void Check(const MixedStepOptions& options) const;

  Session& session_;
  Execution& execution_;
  const analyzer::plan::Plan* plan_;
  const analyzer::StepTemplate* class_ = nullptr;
  std::vector<size_t> capturable_;
  std::shared_ptr<StepState> state_;                     // scripts hold it too
  mutable std::map<int64_t, uint64_t> workspace_bytes_;  // by leaf, filled when asked for
};

}  // namespace acltape::replayer::script
