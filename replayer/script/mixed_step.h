// One step of a program executed partly captured and partly eagerly, as a script.
//
// The step is an iteration of the class that the plan was made for. Calls that are captured run in
// graphs at the addresses of the plan; the others run eagerly at homes of their own, which share
// nothing with each other. A value moves between the two when the other side needs it, at the
// moment of use: what a captured call left in the graph's memory is copied home right before the
// first eager call that reads it, or at the end when it is looked at. A graph is thus read where
// and when the real replay would read it, and with no call captured the step is the eager one.
//
// Every execution begins with the recorded state: contents of the step's inputs and of the state
// that it changes as they were when the recorded program reached that step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/step_template.h"
#include "replayer/script/memory_reuse.h"
#include "replayer/script/planted_fault.h"
#include "replayer/script/remedies.h"
#include "replayer/script/script.h"
#include "replayer/session.h"

namespace acltape::replayer {

class RecordedContent;

// What is done to a healthy plan to see whether it holds (the proof harness).
struct Stress {
  bool poison_gaps = false;      // memory that no live value occupies reads as NaN
  bool relocate_inputs = false;  // inputs lie at other home addresses in every execution
  int64_t churn_bytes = 0;       // an allocator at work between executions
  bool operator==(const Stress&) const = default;
};

enum class Watch {
  // Results that outlive the step, that the host reads, or that nothing in the step uses, and
  // changed state.
  kStepOutputs,
  kEveryResult,  // of each call, as far as its place is not used again
};

struct MixedStepOptions {
  const analyzer::Plan* plan = nullptr;  // null: the longest regions, on one stream
  bool plan_updates = true;              // false: graphs bake host arguments that vary
  // By place of the active leaf in the template step. Empty `captured`: every call that the plan
  // captures. Empty `executed`: every call; the results of one that is not executed are put in its
  // place from the recording (golden inputs for those that are).
  std::vector<bool> captured;
  std::vector<bool> executed;
  size_t capture_match = 0;            // step of the class whose values the capture sees
  std::vector<size_t> run_matches{1};  // steps that are executed, in this order
  // Prefix form: capture everything once, then leave out the calls that are not in `captured` by
  // disabling their tasks. Only for prefixes of one region.
  bool disable_tasks = false;
  // By place: whether a captured call runs on the stream of the plan; the others run on the main
  // stream of their region (kept_streams.h). Empty: every call does.
  std::vector<bool> on_planned_stream;
  // Memory that is used again as planned; the other reuses get memory of their own. Nothing: all
  // are as planned.
  std::optional<KeptReuses> kept_reuses;
  Remedies remedies;
  Stress stress;
  std::vector<PlantedFault> faults;
  Watch watch = Watch::kStepOutputs;
};

class MixedStep {
 public:
  // Of the plan's class. The session and the plan must outlive it. Throws Error kUsage when the
  // class has fewer than `least_steps` (where something is captured, one cannot tell stale from
  // right), kTrace when the trace lacks contents at the begin of a step.
  MixedStep(Session& session, Execution& execution, const analyzer::Plan* plan,
            size_t least_steps = 2);

  const analyzer::StepTemplate& step_class() const { return *class_; }
  size_t places() const { return class_->leaves.size(); }
  // Places that the plan captures, in its order of issue: what there is to bisect. So every prefix
  // of a region is one run of it, in which the streams are as they are in the whole graph.
  const std::vector<size_t>& capturable() const { return capturable_; }
  // The call of the template step at a place, and back. PlaceOf: any step of the class; throws
  // Error kUsage when the call is not one of its active calls.
  int64_t CallAt(size_t place) const;
  size_t PlaceOf(int64_t call_id) const;
  // The same call for people: "call 812 aten::mm".
  std::string Describe(size_t place) const;
  // The call at a place of the step that the plan names, without a plan of the template step.
  int64_t PlannedCallAt(size_t place) const;

  // Throws Error kUsage when the options ask for steps that the class does not have, for a fault
  // that cannot be planted, or for a variant that cannot express them.
  Script Build(const MixedStepOptions& options) const;
  // What the captured calls use a second time, planted faults included, in order of issue; of
  // `kept_reuses` it does not depend. Throws as Build.
  std::vector<MemoryReuse> Reuses(const MixedStepOptions& options) const;

  Session& session() const { return session_; }
  Execution& execution() const { return execution_; }
  const analyzer::Plan* plan() const { return plan_; }

 private:
  void Check(const MixedStepOptions& options) const;

  Session& session_;
  Execution& execution_;
  const analyzer::Plan* plan_;
  const analyzer::StepTemplate* class_ = nullptr;
  std::vector<size_t> capturable_;
  std::shared_ptr<RecordedContent> state_;               // scripts hold it too
  mutable std::map<int64_t, uint64_t> workspace_bytes_;  // by leaf, as far as asked for
};

}  // namespace acltape::replayer
