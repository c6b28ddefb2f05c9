// Captures the regions of a template step and executes them for every step of its class.
//
// A capture begins on the device's own stream. Side streams are forked from it at the begin of the
// region and joined behind its last task, so that only the events of the plan order leaves of
// different streams. Leaves whose arguments are updated are captured in task groups; their updates
// run on a stream of their own, behind the execution before and ahead of the next (rule UPD-06).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "replayer/captured_graph.h"
#include "replayer/eager.h"
#include "replayer/step_graph_plan.h"

namespace acltape::replayer {

class StepGraph {
 public:
  // The class, the homes and the plan of the options must outlive the graph. Throws Error kUsage
  // when the plan does not fit the step.
  StepGraph(Execution& execution, const HomeMemory& homes, const analyzer::StepTemplate& step_class,
            const StepGraphOptions& options);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

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
  int64_t capture_ns() const { return capture_ns_; }
  // Graphs that a step executes.
  int64_t graph_count() const;

  // Saves and restores the state that steps of the class change in place.
  void SaveState();
  void RestoreState();

 private:
  void Begin(size_t match);
  void RunUploads(const std::vector<StepUpload>& uploads, bool merge);
  void RunCopies(const std::vector<DeviceCopy>& copies);
  void MoveAt(const StepMoves& moves, size_t at);
  void BindVarying();
  void UpdateArguments(size_t match);
  void WarmUp(size_t match);
  void Capture(size_t region);
  // Puts the leaves of a region on their streams, in a capture.
  void IssueRegion(const IssuedRegion& region);
  bool IsLaunched(size_t at) const;  // it becomes device operators
  void LaunchLeaf(const BoundLeaf& bound, size_t at, aclrtStream stream);
  void KeepResults(size_t at, aclrtStream stream);
  uint8_t* TemporariesOf(size_t at) const;  // null: those that eager leaves use
  const BoundLeaf& BoundFor(size_t match, size_t at) const;
  void RunEagerly(size_t match, size_t at, Verifier* verifier, WaitClock* clock);
  void TakeResults(size_t match, size_t first, size_t end, Verifier& verifier);
  void PutRecordedResults(size_t match, const IssuedRegion& region);
  void ReadHost(size_t match, size_t at, Verifier* verifier, WaitClock* clock);
  Bytes Content(const StepUpload& upload);

  Execution& execution_;
  StepGraphPlanner planner_;
  const aclmdlRICaptureMode mode_;
  const bool isolate_regions_;
  std::vector<aclrtStream> streams_;   // that regions use; the first is the device's own
  std::deque<Workspace> workspaces_;   // by stream: captured calls keep the addresses
  std::vector<Block> temporaries_;     // by stream but the first
  std::vector<int> stream_of_;         // by place of the active leaf
  std::vector<BoundLeaf> bound_;       // the same
  std::vector<CapturedGraph> graphs_;  // by region; empty where nothing is captured
  std::vector<int64_t> region_tasks_;  // by region
  std::deque<Event> events_;           // forks, joins and waits of a region; used again by the next
  // The forms of a leaf whose arguments vary.
  struct Variants {
    const VaryingLeaf* leaf = nullptr;
    std::vector<BoundLeaf> bound;  // by value
    aclrtTaskGrp group = nullptr;  // of leaves that are updated in a graph
    int captured = 0;              // the value that the graph holds
  };
  std::map<size_t, Variants> variants_;  // by place
  aclrtStream update_stream_ = nullptr;
  std::unique_ptr<Event> executed_;  // behind the latest execution
  std::unique_ptr<Event> updated_;
  bool has_executed_ = false;
  int64_t updates_ = 0;  // made so far
  Block saved_state_;
  Block host_value_;
  int64_t capture_ns_ = 0;
};

}  // namespace acltape::replayer
