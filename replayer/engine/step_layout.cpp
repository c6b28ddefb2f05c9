#include "replayer/engine/step_layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/program/regions.h"
#include "generated/meaning/interface_numbers.h"
#include "replayer/device/memory_plan.h"

namespace acltape::replayer {
namespace {

using analyzer::Access;
using analyzer::LeafKind;
using analyzer::Operand;
using analyzer::StepMatch;
using analyzer::StepRange;

// Returns the steps of a class as indices in Program::steps.
std::set<int64_t> StepsOf(const analyzer::StepTemplate& step_class) {
  std::set<int64_t> steps;
  for (const StepMatch& match : step_class.matches) steps.insert(match.step_index);
  return steps;
}

bool IsUntouchedBefore(const analyzer::Program& program, const StepMatch& match, int64_t buffer_id,
                       int64_t first_byte, int64_t end_byte, size_t place) {
  const StepRange& range = program.work.steps[match.step_index];
  const int64_t until = place < match.leaves.size() ? match.leaves[place] : range.end;
  const auto found = program.buffers.find(buffer_id);
  if (found == program.buffers.end()) return true;
  for (const Access& access : found->second.accesses) {
    if (access.leaf < range.first || access.leaf >= until) continue;
    if (access.first_byte < end_byte && first_byte < access.end_byte) return false;
  }
  return true;
}

class LayoutMaker {
 public:
  LayoutMaker(Execution& execution, const analyzer::StepTemplate& step_class,
              const StepGraphOptions& options)
      : execution_(execution), class_(step_class), options_(options) {}

  StepLayout Make() {
    for (const HomeMemory::Need& need :
         CapturedNeeds(execution_.program(), class_, execution_.contents())) {
      layout_.with_home.insert(need.buffer_id);
    }
    cut_.resize(class_.leaves.size() + 1, false);
    layout_.varying = FindVaryingLeaves(execution_, class_, options_.plan, options_.updates);
    FindCuts();
    CutRegions();
    PlaceMemory();
    return std::move(layout_);
  }

 private:
  void FindCuts();
  void CutRegions();
  std::unordered_map<int64_t, size_t> PlacesOfPlan() const;
  bool IsKept(int64_t buffer) const;
  void PlaceMemory();

  Execution& execution_;
  const analyzer::StepTemplate& class_;
  const StepGraphOptions& options_;
  std::vector<bool> cut_;  // by place: a region must begin here
  StepLayout layout_;
};

void LayoutMaker::CutRegions() {
  const analyzer::Program& program = execution_.program();
  std::vector<std::string> barriers(class_.leaves.size());
  analyzer::Barriers of_work(program.work);
  for (size_t place = 0; place < class_.leaves.size(); ++place) {
    const auto leaf = static_cast<size_t>(class_.leaves[place]);
    barriers[place] = execution_.lowered().IsSubstituted(class_.leaves[place])
                          ? "substituted by its recorded results"
                          : of_work.ReasonOf(leaf);
  }
  for (const VaryingLeaf& leaf : layout_.varying) {
    if (leaf.treatment != VaryingLeaf::Treatment::kEager || !barriers[leaf.place].empty()) continue;
    barriers[leaf.place] = "a host argument varies and cannot be updated: " + leaf.reason;
  }
  RegionLimits limits;
  limits.barrier = [&](size_t place) { return barriers[place]; };
  limits.cut_before = [&](size_t place) { return cut_[place]; };
  if (options_.plan == nullptr) {
    layout_.regions = IssueOnOneStream(class_.leaves.size(), limits);
  } else {
    layout_.regions = IssueByPlan(*options_.plan, PlacesOfPlan(), limits);
  }
  // Leaves outside of the graphs always use the values of their own step.
  for (const IssuedRegion& region : layout_.regions) {
    for (VaryingLeaf& leaf : layout_.varying) {
      if (region.captured || leaf.place < region.first || leaf.place >= region.end) continue;
      leaf.treatment = VaryingLeaf::Treatment::kEager;
    }
  }
}

// Returns the place of each call that the plan names. The plan names calls of its own step, which
// may be any step of the class.
std::unordered_map<int64_t, size_t> LayoutMaker::PlacesOfPlan() const {
  const analyzer::Program& program = execution_.program();
  std::unordered_map<int64_t, size_t> place_of;
  for (const StepMatch& match : class_.matches) {
    if (program.work.steps[match.step_index].step != options_.plan->step) continue;
    for (size_t place = 0; place < match.leaves.size(); ++place) {
      place_of[program.leaves[match.leaves[place]].call.call_id] = place;
    }
  }
  return place_of;
}

// Finds values that cannot be uploaded before the step, because the step uses their memory earlier.
// A region must begin where such a value comes in, and after an exchange, which no graph holds.
void LayoutMaker::FindCuts() {
  const analyzer::Program& program = execution_.program();
  for (const StepMatch& match : class_.matches) {
    const StepRange& range = program.work.steps[match.step_index];
    for (int64_t leaf = range.first; leaf < range.end; ++leaf) {
      const auto place = static_cast<size_t>(
          std::lower_bound(match.leaves.begin(), match.leaves.end(), leaf) - match.leaves.begin());
      if (program.leaves[leaf].kind == LeafKind::kExchange) cut_[place] = true;
      for (const Feed& feed : execution_.contents().FeedsOf(leaf)) {
        if (!IsEarly(program, match, feed, place)) cut_[place] = true;
      }
    }
    for (size_t place = 0; place < match.leaves.size(); ++place) {
      if (program.leaves[match.leaves[place]].kind != LeafKind::kSource) continue;
      for (const analyzer::TensorUse& result : program.uses[match.leaves[place]].writes) {
        if (result.layout->ElementCount() != 0 && !IsEarly(program, match, result, place)) {
          cut_[place] = true;
        }
      }
    }
  }
}

// True if a buffer of the template step must keep its results to the end of the step.
bool LayoutMaker::IsKept(int64_t buffer) const {
  if (options_.keep != Keep::kStepOutputs) return options_.keep == Keep::kEverything;
  const StepRange& range = execution_.program().work.steps[class_.step_index];
  const std::vector<Access>& accesses = execution_.program().buffers.at(buffer).accesses;
  for (auto write = accesses.begin(); write != accesses.end(); ++write) {
    if (!write->write || write->leaf >= range.end) continue;
    const bool used = std::any_of(write + 1, accesses.end(), [&](const Access& later) {
      return later.leaf > write->leaf && later.leaf < range.end &&
             later.first_byte < write->end_byte && write->first_byte < later.end_byte;
    });
    if (!used) return true;
  }
  return false;
}

// Places all memory. The slots of moving operands and the buffers that sources fill come first,
// next to each other, so that neighbouring uploads become one copy. The other internal buffers
// follow.
void LayoutMaker::PlaceMemory() {
  const analyzer::Program& program = execution_.program();
  std::unordered_set<int64_t> from_sources;
  const std::vector<Moment> moments = MomentsOf(layout_.regions, class_.leaves.size());
  std::unordered_map<int64_t, Moment> lives;
  for (size_t place = 0; place < class_.leaves.size(); ++place) {
    const int64_t leaf = class_.leaves[place];
    const auto note = [&](int64_t buffer) {
      Moment& life = lives.emplace(buffer, moments[place]).first->second;
      life.begin = std::min(life.begin, moments[place].begin);
      life.end = std::max(life.end, moments[place].end);
    };
    for (const analyzer::TensorUse& use : program.uses[leaf].reads) note(use.tensor.buffer_id);
    for (const analyzer::TensorUse& use : program.uses[leaf].writes) {
      note(use.tensor.buffer_id);
      if (program.leaves[leaf].kind == LeafKind::kSource) {
        from_sources.insert(use.tensor.buffer_id);
      }
    }
  }
  int64_t next = 0;
  layout_.slots.assign(class_.operands.size(), -1);
  for (const bool homed : {false, true}) {
    for (size_t i = 0; i < class_.operands.size(); ++i) {
      const Operand& operand = class_.operands[i];
      if (!operand.moving || (layout_.with_home.count(operand.buffer_id) != 0) != homed) continue;
      layout_.slots[i] = next;
      next += AlignUp(operand.bytes());
    }
  }
  std::vector<Life> others;
  for (const int64_t buffer : class_.internal) {
    if (from_sources.count(buffer) != 0) {
      layout_.internal[buffer] = next;
      next += AlignUp(InternalBytes(program, class_, buffer));
      continue;
    }
    Life life;
    life.buffer_id = buffer;
    life.bytes = InternalBytes(program, class_, buffer);
    life.last = static_cast<int64_t>(class_.leaves.size());
    bool lives_on = IsKept(buffer);
    for (const StepMatch& match : class_.matches) {
      const auto found = match.internal.find(buffer);
      lives_on =
          lives_on || found == match.internal.end() || layout_.with_home.count(found->second) != 0;
    }
    if (lives_on) {
      layout_.lives_on.insert(buffer);
    } else {
      life.first = lives[buffer].begin;
      life.last = lives[buffer].end;
    }
    others.push_back(life);
  }
  const int64_t planned = PlanMemory(others);
  layout_.bytes = std::max<int64_t>(next + planned, kDeviceAlignment);
  for (const Life& life : others) layout_.internal[life.buffer_id] = next + life.offset;
}

}  // namespace

std::vector<HomeMemory::Need> CapturedNeeds(const analyzer::Program& program,
                                            const analyzer::StepTemplate& step_class,
                                            const Contents& contents) {
  const std::set<int64_t> captured = StepsOf(step_class);
  std::set<int64_t> stable;
  for (const Operand& operand : step_class.operands) {
    if (!operand.moving) stable.insert(operand.buffer_id);
  }
  // The steps in which content from the recording is put into a buffer, by buffer.
  std::map<int64_t, std::set<int64_t>> fed;
  for (const analyzer::Leaf& leaf : program.leaves) {
    for (const Feed& feed : contents.FeedsOf(leaf.index)) {
      fed[feed.buffer_id].insert(leaf.step_index);
    }
  }
  std::vector<HomeMemory::Need> needs;
  for (const auto& [id, use] : program.buffers) {
    if (use.accesses.empty() || use.bytes == 0) continue;
    std::set<int64_t> steps;
    bool outside = false;
    for (const Access& access : use.accesses) {
      const int64_t step = program.leaves[access.leaf].step_index;
      steps.insert(step);
      outside = outside || captured.count(step) == 0;
    }
    bool needed = outside || steps.size() > 1 || stable.count(id) != 0;
    if (!needed) {
      const bool internal =
          use.accesses.front().write && program.leaves[use.first_leaf].step_index == *steps.begin();
      const auto found = fed.find(id);
      const bool fed_here = found != fed.end() && found->second == steps;
      needed = !internal && !fed_here;
    }
    if (!needed) continue;
    HomeMemory::Need need{id, use.first_leaf, use.last_leaf};
    const int64_t first_step = program.leaves[use.first_leaf].step_index;
    const int64_t last_step = program.leaves[use.last_leaf].step_index;
    if (captured.count(first_step) != 0) need.first_leaf = program.work.steps[first_step].first;
    if (captured.count(last_step) != 0) need.last_leaf = program.work.steps[last_step].end;
    needs.push_back(need);
  }
  return needs;
}

aclmdlRICaptureMode CaptureModeOf(const analyzer::plan::Plan* plan) {
  for (const meaning::NamedNumber& known : meaning::kAclCaptureModes) {
    if (plan != nullptr && plan->capture_mode == known.name) {
      return static_cast<aclmdlRICaptureMode>(known.number);
    }
  }
  return ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
}

int64_t InternalBytes(const analyzer::Program& program, const analyzer::StepTemplate& step_class,
                      int64_t buffer) {
  int64_t bytes = program.buffers.at(buffer).bytes;
  for (const StepMatch& match : step_class.matches) {
    const auto found = match.internal.find(buffer);
    if (found != match.internal.end()) {
      bytes = std::max(bytes, program.buffers.at(found->second).bytes);
    }
  }
  return std::max<int64_t>(bytes, 1);
}

bool IsEarly(const analyzer::Program& program, const StepMatch& match, const Feed& feed,
             size_t place) {
  return IsUntouchedBefore(program, match, feed.buffer_id, feed.first_byte, feed.end_byte(), place);
}

bool IsEarly(const analyzer::Program& program, const StepMatch& match,
             const analyzer::TensorUse& result, size_t place) {
  return IsUntouchedBefore(program, match, result.tensor.buffer_id, result.layout->FirstByte(),
                           result.layout->EndByte(), place);
}

StepLayout LayOutStep(Execution& execution, const analyzer::StepTemplate& step_class,
                      const StepGraphOptions& options) {
  return LayoutMaker(execution, step_class, options).Make();
}

}  // namespace acltape::replayer
