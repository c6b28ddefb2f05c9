// Captures the regions of a template step and executes them for every step of its class. The step
// is written as a script (script.h), once for each step of the class, and runs on a machine whose
// addresses are resolved before the first step.
//
// A capture begins on the device's own stream (graph_writer.h). Leaves whose arguments are updated
// are captured in task groups. Their updates run on a stream of their own, after the previous
// execution and before the next one (rule UPD-06).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "replayer/engine/graph_writer.h"
#include "replayer/engine/leaf_writer.h"
#include "replayer/engine/script_machine.h"
#include "replayer/engine/step_graph_plan.h"

namespace acltape::replayer {

class StepGraph {
 public:
  // The class, the homes and the plan of the options must outlive the graph. Throws Error kUsage
  // when the plan does not fit the step.
  StepGraph(Execution& execution, const HomeMemory& homes, const analyzer::StepTemplate& step_class,
            const StepGraphOptions& options);

  // Runs the template once eagerly at the captured addresses, with the values of the step
  // `match`, then puts the state that it changed back; then captures. Call it when the program has
  // reached that step.
  void WarmUpAndCapture(size_t match);

  // Executes step `match`: uploads, copies, graphs, and the barriers between them. Results are
  // given to `verifier` unless it is null; else host reads wait for the device, added to `clock`.
  void Execute(size_t match, Verifier* verifier, WaitClock* clock);

  // Loads the values that Execute uploads, so that it reads no trace.
  void Preload();

  // Fills the figures that the plan and the capture gave.
  void Describe(CaptureReport& report) const;
  const StepGraphPlan& plan() const { return planner_.plan(); }
  // The script's tables, and the operations that capture its graphs.
  const Script& script() const { return script_; }
  std::span<const Operation> captures() const { return captures_; }
  int64_t device_bytes() const { return plan().device_bytes(); }
  int64_t capture_ns() const { return capture_ns_; }
  // Graphs that a step executes.
  int64_t graph_count() const;

 private:
  using Operations = std::vector<Operation>;

  void MakeBlocks();
  void NumberEvents();
  void AddCallsOfLeaves();
  void AddOutputs();
  LeafMemory MemoryOf(size_t place, SpotOf place_of) const;

  // They write operations.
  void WriteCaptures(aclmdlRICaptureMode mode);
  void WriteUploads(const std::vector<StepUpload>& uploads, bool merge, Operations& operations);
  void WriteMovesAt(const StepMoves& moves, size_t place, Operations& operations);
  void WriteBegin(const StepMoves& moves, Operations& operations);
  void WriteKept(size_t place, int stream, Operations& operations) const;
  // `held_only`: leaves out the results that the trace does not hold. Loading one would fail.
  void WriteRecordedResults(size_t match, size_t place, bool held_only, Operations& operations);
  void WriteRecordedResult(size_t match, size_t place, size_t write, Operations& operations);
  void WriteRecordedRegion(size_t match, const IssuedRegion& region, Operations& operations);
  void WriteEagerLeaf(size_t match, size_t place, Operations& operations);
  void WriteStep(size_t match, Operations& operations);

  const analyzer::Leaf& LeafAt(size_t place) const {
    return execution_.program().leaves[plan().step_class->leaves[place]];
  }
  bool IsSubstituted(size_t place) const {
    return execution_.lowered().IsSubstituted(plan().step_class->leaves[place]);
  }
  bool IsLaunched(size_t place) const;  // it becomes device operators
  CallRange CallsFor(size_t match, size_t place) const;
  Observe ObserveOf(size_t match, size_t first, size_t end) const;
  // The outputs that a step gives to other processes, by the place before which that happens.
  std::multimap<size_t, int> GivenOutputs(size_t match) const;

  Execution& execution_;
  StepGraphPlanner planner_;
  const bool isolate_regions_;
  const bool shares_memory_;  // results that the step overwrites have no copies
  Script script_;
  std::deque<Workspace> workspaces_;  // by stream: captured calls keep the addresses
  std::vector<int> stream_of_;        // by place of the active leaf
  std::vector<CallRange> calls_;      // the same: calls of the template step
  // The forms of a leaf whose arguments vary.
  struct Variants {
    const VaryingLeaf* leaf = nullptr;
    std::vector<CallRange> calls;  // by number of the value
  };
  std::map<size_t, Variants> variants_;      // by place
  std::vector<const VaryingLeaf*> updated_;  // leaves that are updated in graphs
  std::vector<int> first_output_;            // by place, and one past the last
  std::map<size_t, int> host_reads_;         // by place: the output that the host reads
  std::vector<int> graph_of_;                // by region; -1 where nothing is captured
  std::vector<int64_t> region_tasks_;        // by region
  HeldArguments held_;
  UpdateOrder order_;
  Operations captures_;
  std::vector<Operations> steps_;  // by match
  Operations updates_;             // updates of the latest step
  int64_t update_count_ = 0;       // made so far
  int64_t capture_ns_ = 0;
  std::optional<ScriptMachine> machine_;
};

}  // namespace acltape::replayer
