// Writes the script of a mixed step (mixed_step.h). It decides on which side each call runs and
// cuts the regions into runs of captured calls. It tracks where the latest bytes of every buffer
// lie, so that a value is copied to the other side right before it is used there.
//
// Runs keep the plan's order of issue, not the order of the program. The plan shared memory by its
// order of issue, so no buffer is overwritten too early, however its regions are cut.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/program/given_away.h"
#include "replayer/engine/graph_writer.h"
#include "replayer/engine/leaf_writer.h"
#include "replayer/script/fault_effects.h"
#include "replayer/script/mixed_step.h"
#include "replayer/script/step_places.h"
#include "replayer/script/step_state.h"

namespace acltape::replayer::script {

class FaultSites;

class StepScript {
 public:
  // `workspace_bytes` holds the known sizes by leaf. Sizes that are asked for are added to it.
  StepScript(Session& session, Execution& execution, const analyzer::StepTemplate& step_class,
             std::shared_ptr<StepState> state, std::map<int64_t, uint64_t>& workspace_bytes,
             const MixedStepOptions& options);
  Script Build();
  // Returns the reuses of memory. Must be called instead of Build, not in addition.
  std::vector<MemoryReuse> Reuses();

 private:
  // A run: calls that run one after the other in one graph.
  struct Run {
    IssuedRegion issue;
    std::vector<bool> left_out;  // by leaf of `issue`: true if its tasks are disabled
    int fork_event = 0;          // first number of the events for forks and joins
  };
  struct Piece {
    int run = -1;      // -1: the piece is one call that runs eagerly
    size_t place = 0;  // place of that call
  };
  struct PlannedRegion {
    size_t first = 0;
    bool captured = false;
    std::vector<Piece> pieces;
  };
  // The graphs and groups of one capture.
  struct Capture {
    size_t seen = 0;          // the step whose values it saw
    size_t arguments = 0;     // the step whose host arguments the graphs hold
    std::vector<int> graphs;  // by run
    HeldArguments held;
  };
  enum class Mode { kWarmUp, kExecute };

  // step_script.cpp
  void ChooseCaptures();
  void ChooseSides();
  void CutRuns();
  void CutRegion(const IssuedRegion& region);
  void CutForDisabling(const IssuedRegion& region, PlannedRegion& planned);
  void Prepare();
  bool StaysOnStream(size_t place) const;
  bool Launches(size_t place) const;
  int64_t LeafAt(size_t match, size_t place) const { return class_.matches[match].leaves[place]; }
  int64_t CallAt(size_t match, size_t place) const {
    return program_.leaves[LeafAt(match, place)].call.call_id;
  }
  int64_t CallOf(size_t place) const { return program_.leaves[class_.leaves[place]].call.call_id; }

  // step_script_memory.cpp
  int AddBlock(const std::string& name, int64_t bytes);
  uint64_t WorkspaceBytes(size_t place);
  void FindReusedBuffers();
  void SeparateBuffers();
  void MakeBlocks();
  void AddScratchOfCapturedCalls();
  void PlaceShadows();
  bool Keeps(const MemoryReuse& reuse) const;

  // step_script_faults.cpp
  enum class FaultsOf { kMemory, kOther };
  void PlantFaults(FaultsOf which);
  void Plant(const PlantedFault& fault, const FaultSites& sites);
  size_t PlaceOf(const PlantedFault& fault, int64_t call_id) const;
  bool MayRunAtOnce(const PlantedFault& fault, size_t place, size_t other) const;
  void PlantInMemory(const PlantedFault& fault, size_t place, size_t other,
                     const FaultSites& sites);
  FillBytes WrongByte(const PlantedFault& fault, size_t place);

  // step_script_step.cpp: one pass over the step
  void EmitStep(size_t match, Mode mode);
  void UploadState(size_t match);
  void UploadFeed(size_t match, const Feed& feed, bool internal_only);
  void UploadLate(size_t match, size_t place);
  void UploadResults(size_t match, size_t place);
  void RunEagerly(size_t match, size_t place);
  void ExecuteRun(size_t match, int run, Mode mode);
  void BringTo(Side side, int object, int64_t first, int64_t end);
  void BringFor(size_t match, size_t place, Side side);
  void NoteWrites(size_t match, size_t place, Side side);
  void PoisonGaps(int run);
  void ObserveStep(size_t match);
  const storage::Layout* PartReadByHost(size_t match, size_t place, int write) const;
  const storage::Layout* WatchedPart(size_t match, size_t place, int write,
                                     bool* overwritten) const;
  int AddContent(const std::string& name, int64_t bytes, std::function<Bytes()> load);

  // step_script_given.cpp
  std::vector<analyzer::GivenResult> GivenOf(size_t match) const;
  void PlaceGiven();
  void FindGiven(size_t match, Mode mode);
  void KeepGiven(size_t match, size_t place);

  // step_script_capture.cpp
  void EmitCapture();
  void EmitRegion(const Run& run);
  // A call with a missing wait: its own stream, the events that it waits for there, and the event
  // after it.
  struct Aside {
    int stream = 0;
    std::vector<int> wait_for;
    int done = 0;
  };
  void EmitCapturedLeaf(const IssuedLeaf& leaf, const Aside* aside);
  std::vector<size_t> WaitedFor(const Run& run, size_t index) const;
  void EmitUpdates(size_t match);
  void DisableLeftOut();
  // If `faulty` is true, planted faults take effect.
  void LaunchAt(size_t match, size_t place, Side side, int stream, bool faulty);
  void KeepResults(size_t match, size_t place, Side side, int stream);
  Spot SpotOf(Side side, int object, int64_t offset) const;
  const VaryingLeaf* VaryingAt(size_t place) const;

  template <typename T>
  void Emit(T operation) {
    script_.operations.emplace_back(std::move(operation));
  }

  Session& session_;
  Execution& execution_;
  const analyzer::Program& program_;
  const analyzer::StepTemplate& class_;
  std::shared_ptr<StepState> state_;
  std::map<int64_t, uint64_t>& workspace_bytes_;
  const MixedStepOptions& options_;
  const StepLayout layout_;
  StepPlaces places_;
  FaultEffects effects_;
  Script script_;

  // These lists are by place of the call.
  std::vector<bool> captured_;
  std::vector<bool> golden_;    // the results come from the recording
  std::vector<int> stream_of_;  // stream in the plan

  std::vector<PlannedRegion> regions_;
  std::vector<Run> runs_;
  int streams_ = 1;        // streams that graphs use
  int update_stream_ = 0;  // 0: nothing is updated
  int executed_event_ = 0;
  int updated_event_ = 0;
  bool has_executed_ = false;

  // Numbers of blocks in the script.
  int nothing_ = 0;
  int home_ = 0;
  int graph_ = 0;
  int kept_ = 0;
  int eager_workspace_ = 0;
  int eager_temporaries_ = 0;
  // The blocks with the workspace and the temporaries of captured calls.
  struct ScratchBlocks {
    int workspace = 0;
    int temporaries = 0;
  };
  std::vector<ScratchBlocks> scratch_;  // blocks of captured calls
  std::vector<int> scratch_of_;         // by place, -1 for eager ones
  KeptResults shadows_;
  KeptResults given_;  // copies of results as other processes were given them
  std::vector<MemoryReuse> reuses_;

  std::vector<Capture> captures_;
  std::map<size_t, size_t> capture_of_;  // by executed step

  // The state while a step is written.
  size_t capture_ = 0;                // index in captures_
  std::vector<Residence> residence_;  // by object
  bool relocated_ = false;            // moving operands lie at their other home
  // The content of each operand's home, as buffer, first byte and version.
  std::map<std::pair<int, bool>, StepState::Version> uploaded_;
  std::vector<int64_t> last_piece_;  // last piece of the step that uses an object, by object
  // The results, as places and writes, that this step gives away: all, and by the place before
  // which that happens.
  std::set<std::pair<size_t, int>> given_now_;
  std::multimap<size_t, std::pair<size_t, int>> given_before_;
};

}  // namespace acltape::replayer::script
