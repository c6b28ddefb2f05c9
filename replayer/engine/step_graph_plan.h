// The plan by which one set of captured graphs serves a class of steps. It has the fixed place of
// every buffer of the template step, the regions with the streams of their leaves, and for each
// step the values to upload, the operands to copy in and the results to copy out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "replayer/engine/leaf_writer.h"
#include "replayer/engine/step_layout.h"

namespace acltape::replayer {

// A recorded value that goes to a fixed place: a range of a buffer's content, or a leaf's result.
struct StepUpload {
  Spot to;
  int64_t bytes = 0;
  const Feed* feed = nullptr;  // else a result
  int64_t feed_offset = 0;
  int64_t leaf = -1;  // leaf of the step at hand
  int write = 0;
  bool strided = false;  // a result that is not dense: uploaded alone
  bool padded = false;   // padding follows its last byte; an upload may overwrite it
  std::string digest;
};

// The blocks of memory that every captured replay of a step has. Blocks for its streams follow.
struct StepBlock {
  enum : int { kNothing, kHomes, kArena, kShadows, kState, kFirstOfStreams };
};

// Moves of one step. "at" are places in the list of active leaves; no captured region holds one but
// as its first.
struct StepMoves {
  std::vector<StepUpload> uploads;  // before the first region
  std::vector<CopyBytes> copies_in;
  std::map<size_t, std::vector<StepUpload>> uploads_at;
  std::map<size_t, std::vector<CopyBytes>> copies_at;
  std::vector<CopyBytes> copies_out;  // after the last region
};

struct StepGraphPlan {
  const analyzer::StepTemplate* step_class = nullptr;
  std::vector<IssuedRegion> regions;
  std::vector<VaryingLeaf> varying;
  std::vector<StepMoves> moves;       // by match of the class
  std::vector<StepUpload> constants;  // equal in every step and never written: uploaded once
  std::vector<CopyBytes> state;  // the homes' bytes that the warm-up changes: from there, to backup
  std::unordered_map<int64_t, Spot> internal;  // by template buffer
  std::vector<std::optional<Spot>> slots;      // by operand; none for stable ones
  // The places where results are kept that the step overwrites later, by (place of the leaf,
  // write).
  KeptResults shadows;
  int64_t arena_bytes = 0;
  int64_t shadow_bytes = 0;
  int64_t state_bytes = 0;
  int64_t device_bytes() const { return arena_bytes + shadow_bytes; }
};

class StepGraphPlanner {
 public:
  // Throws Error kUsage when the plan does not fit the step.
  StepGraphPlanner(Execution& execution, const HomeMemory& homes,
                   const analyzer::StepTemplate& step_class, const StepGraphOptions& options);

  const StepGraphPlan& plan() const { return plan_; }
  StepGraphPlan& plan() { return plan_; }
  // Element 0 of a tensor of the template step.
  Spot Place(int64_t buffer_id, const storage::Layout& layout) const;
  // Element 0 of a tensor of another step of the class.
  Spot Place(const analyzer::StepMatch& match, int64_t buffer_id,
             const storage::Layout& layout) const;

 private:
  void PlaceMemory();
  void CollectMoves(size_t match);
  void CollectFeed(const analyzer::StepMatch& match, const Feed& feed, size_t place, bool early,
                   StepMoves& moves);
  void CollectResults(const analyzer::StepMatch& match, StepMoves& moves);
  Spot Home(int64_t buffer_id, int64_t offset) const;
  std::optional<Spot> UploadTarget(const analyzer::StepMatch& match, int64_t buffer_id,
                                   const storage::Layout& layout, bool early) const;
  void FindPadding();
  void CollectCopies(const analyzer::StepMatch& match, StepMoves& moves);
  void PlanState();
  void FindConstants();
  void PlanShadows();

  Execution& execution_;
  const HomeMemory& homes_;
  const analyzer::StepTemplate& class_;
  const StepLayout layout_;
  StepGraphPlan plan_;
};

}  // namespace acltape::replayer
