// Captures the regions of a template step and executes them for every step of its class.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "replayer/eager.h"
#include "replayer/step_graph_plan.h"

namespace acltape::replayer {

class StepGraph {
 public:
  // `keep_outputs` as in StepGraphPlanner. The classes and homes must outlive the graph.
  StepGraph(Execution& execution, const HomeMemory& homes, const analyzer::StepTemplate& step_class,
            bool keep_outputs);
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
  void LaunchRegion(const analyzer::Region& region);
  void RunBarrier(size_t match, size_t at, Verifier* verifier, WaitClock* clock);
  void TakeResults(size_t match, Verifier& verifier);
  void ReadHost(size_t match, size_t at, Verifier* verifier, WaitClock* clock);
  Bytes Content(const StepUpload& upload);

  Execution& execution_;
  StepGraphPlanner planner_;
  Workspace workspace_;                // captured calls keep its address
  std::vector<BoundLeaf> bound_;       // by place of the active leaf
  std::vector<aclmdlRI> graphs_;       // by region; null where nothing is captured
  std::vector<int64_t> region_tasks_;  // by region
  Block saved_state_;
  Block host_value_;
  int64_t capture_ns_ = 0;
};

}  // namespace acltape::replayer
