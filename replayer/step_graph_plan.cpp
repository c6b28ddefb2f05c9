#include "replayer/step_graph_plan.h"

#include <algorithm>
#include <set>

#include "analyzer/regions.h"
#include "replayer/memory_plan.h"

namespace acltape::replayer {
namespace {

using analyzer::Access;
using analyzer::BufferUse;
using analyzer::LeafKind;
using analyzer::Operand;
using analyzer::OperandPlace;
using analyzer::StepMatch;
using analyzer::StepRange;

// Steps of a class by index in Program::steps.
std::set<int64_t> StepsOf(const analyzer::StepTemplate& step_class) {
  std::set<int64_t> steps;
  for (const StepMatch& match : step_class.matches) steps.insert(match.step);
  return steps;
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
  // Buffers by the steps in which content is put into them from the recording.
  std::map<int64_t, std::set<int64_t>> fed;
  for (const analyzer::Leaf& leaf : program.leaves) {
    for (const Feed& feed : contents.FeedsOf(leaf.index)) {
      fed[feed.buffer_id].insert(leaf.step);
    }
  }
  std::vector<HomeMemory::Need> needs;
  for (const auto& [id, use] : program.buffers) {
    if (use.accesses.empty() || use.bytes == 0) continue;
    std::set<int64_t> steps;
    bool outside = false;
    for (const Access& access : use.accesses) {
      const int64_t step = program.leaves[access.leaf].step;
      steps.insert(step);
      outside = outside || captured.count(step) == 0;
    }
    bool needed = outside || steps.size() > 1 || stable.count(id) != 0;
    if (!needed) {
      const bool internal =
          use.accesses.front().write && program.leaves[use.first_leaf].step == *steps.begin();
      const auto found = fed.find(id);
      const bool fed_here = found != fed.end() && found->second == steps;
      needed = !internal && !fed_here;
    }
    if (!needed) continue;
    HomeMemory::Need need{id, use.first_leaf, use.last_leaf};
    const int64_t first_step = program.leaves[use.first_leaf].step;
    const int64_t last_step = program.leaves[use.last_leaf].step;
    if (captured.count(first_step) != 0) need.first_leaf = program.steps[first_step].first_leaf;
    if (captured.count(last_step) != 0) need.last_leaf = program.steps[last_step].end_leaf;
    needs.push_back(need);
  }
  return needs;
}

StepGraphPlanner::StepGraphPlanner(Execution& execution, const HomeMemory& homes,
                                   const analyzer::StepTemplate& step_class,
                                   const StepGraphOptions& options)
    : execution_(execution), homes_(homes), class_(step_class), options_(options) {
  plan_.step_class = &step_class;
  for (const HomeMemory::Need& need :
       CapturedNeeds(execution.program(), step_class, execution.contents())) {
    with_home_.insert(need.buffer_id);
  }
  cut_.resize(step_class.leaves.size() + 1, false);
  plan_.moves.resize(step_class.matches.size());
  plan_.varying = FindVaryingLeaves(execution, step_class, options.plan, options.updates);
  FindCuts();
  CutRegions();
  PlaceMemory();
  for (size_t m = 0; m < step_class.matches.size(); ++m) CollectMoves(m);
  FindConstants();
  if (options.keep == Keep::kEverything) PlanShadows();
  for (const Operand& operand : step_class.operands) {
    if (operand.moving || !operand.written) continue;
    DeviceCopy copy;
    copy.from = homes_.Find(operand.buffer_id) + operand.first_byte;
    copy.bytes = operand.bytes();
    plan_.state.push_back(copy);
  }
}

uint8_t* StepGraphPlanner::Place(int64_t buffer_id, const storage::Layout& layout) const {
  const auto internal = plan_.internal.find(buffer_id);
  if (internal != plan_.internal.end()) return internal->second + layout.byte_offset;
  const int index = class_.FindOperand(buffer_id, layout.FirstByte());
  if (index < 0) {
    throw Error(ErrorKind::kDevice,
                "buffer " + std::to_string(buffer_id) + " has no place in the captured step");
  }
  const Operand& operand = class_.operands[index];
  if (plan_.slots[index] == nullptr) return homes_.Find(buffer_id) + layout.byte_offset;
  return plan_.slots[index] + (layout.byte_offset - operand.first_byte);
}

uint8_t* StepGraphPlanner::Place(const StepMatch& match, int64_t buffer_id,
                                 const storage::Layout& layout) const {
  for (const auto& [from, to] : match.internal) {
    if (to == buffer_id) return plan_.internal.at(from) + layout.byte_offset;
  }
  for (size_t i = 0; i < class_.operands.size(); ++i) {
    const OperandPlace& place = match.operands[i];
    const int64_t offset = layout.FirstByte() - place.first_byte;
    if (place.buffer_id != buffer_id || offset < 0 || offset >= class_.operands[i].bytes()) {
      continue;
    }
    uint8_t* first = plan_.slots[i] != nullptr ? plan_.slots[i]
                                               : homes_.Find(class_.operands[i].buffer_id) +
                                                     class_.operands[i].first_byte;
    return first + (layout.byte_offset - place.first_byte);
  }
  throw Error(ErrorKind::kDevice,
              "buffer " + std::to_string(buffer_id) + " has no place in the captured step");
}

// Whether a buffer of the template step must hold its results to the end of the step.
bool StepGraphPlanner::IsKept(int64_t buffer) const {
  if (options_.keep != Keep::kStepOutputs) return options_.keep == Keep::kEverything;
  const StepRange& range = execution_.program().steps[class_.step];
  const std::vector<Access>& accesses = execution_.program().buffers.at(buffer).accesses;
  for (auto write = accesses.begin(); write != accesses.end(); ++write) {
    if (!write->write || write->leaf >= range.end_leaf) continue;
    const bool used = std::any_of(write + 1, accesses.end(), [&](const Access& later) {
      return later.leaf > write->leaf && later.leaf < range.end_leaf &&
             later.first_byte < write->end_byte && write->first_byte < later.end_byte;
    });
    if (!used) return true;
  }
  return false;
}

// Slots of moving operands and buffers that sources fill come first, one behind the other, so that
// neighbouring uploads become one copy; then the other internal buffers.
void StepGraphPlanner::PlaceMemory() {
  const analyzer::Program& program = execution_.program();
  std::unordered_set<int64_t> from_sources;
  const std::vector<Moment> moments = MomentsOf(plan_.regions, class_.leaves.size());
  std::unordered_map<int64_t, Moment> lives;
  for (size_t at = 0; at < class_.leaves.size(); ++at) {
    const int64_t leaf = class_.leaves[at];
    const auto note = [&](int64_t buffer) {
      Moment& life = lives.emplace(buffer, moments[at]).first->second;
      life.begin = std::min(life.begin, moments[at].begin);
      life.end = std::max(life.end, moments[at].end);
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
  std::vector<int64_t> slot_offsets(class_.operands.size(), -1);
  for (const bool homed : {false, true}) {
    for (size_t i = 0; i < class_.operands.size(); ++i) {
      const Operand& operand = class_.operands[i];
      if (!operand.moving || (with_home_.count(operand.buffer_id) != 0) != homed) continue;
      slot_offsets[i] = next;
      next += AlignUp(operand.bytes());
    }
  }
  const auto bytes_of = [&](int64_t buffer) {
    int64_t bytes = program.buffers.at(buffer).bytes;
    for (const StepMatch& match : class_.matches) {
      const auto found = match.internal.find(buffer);
      if (found != match.internal.end()) {
        bytes = std::max(bytes, program.buffers.at(found->second).bytes);
      }
    }
    return std::max<int64_t>(bytes, 1);
  };
  std::unordered_map<int64_t, int64_t> offsets;
  std::vector<Life> others;
  for (const int64_t buffer : class_.internal) {
    if (from_sources.count(buffer) != 0) {
      offsets[buffer] = next;
      next += AlignUp(bytes_of(buffer));
      continue;
    }
    Life life;
    life.buffer_id = buffer;
    life.bytes = bytes_of(buffer);
    life.last = static_cast<int64_t>(class_.leaves.size());
    bool lives_on = IsKept(buffer);
    for (const StepMatch& match : class_.matches) {
      const auto found = match.internal.find(buffer);
      lives_on = lives_on || found == match.internal.end() || with_home_.count(found->second) != 0;
    }
    if (!lives_on) {
      life.first = lives[buffer].begin;
      life.last = lives[buffer].end;
    }
    others.push_back(life);
  }
  const int64_t planned = PlanMemory(others);
  plan_.device_bytes = std::max<int64_t>(next + planned, kDeviceAlignment);
  arena_ = Block(execution_.device(), Block::Kind::kDevice, plan_.device_bytes);
  plan_.slots.assign(class_.operands.size(), nullptr);
  for (size_t i = 0; i < slot_offsets.size(); ++i) {
    if (slot_offsets[i] >= 0) plan_.slots[i] = arena_.data() + slot_offsets[i];
  }
  for (const auto& [buffer, offset] : offsets) plan_.internal[buffer] = arena_.data() + offset;
  for (const Life& life : others) {
    plan_.internal[life.buffer_id] = arena_.data() + next + life.offset;
  }
}

bool StepGraphPlanner::TouchedBefore(const StepMatch& match, int64_t buffer_id, int64_t first_byte,
                                     int64_t end_byte, size_t at) const {
  const StepRange& range = execution_.program().steps[match.step];
  const int64_t until = at < match.leaves.size() ? match.leaves[at] : range.end_leaf;
  const auto found = execution_.program().buffers.find(buffer_id);
  if (found == execution_.program().buffers.end()) return false;
  for (const Access& access : found->second.accesses) {
    if (access.leaf < range.first_leaf || access.leaf >= until) continue;
    if (access.first_byte < end_byte && first_byte < access.end_byte) return true;
  }
  return false;
}

bool StepGraphPlanner::IsEarly(const StepMatch& match, const Feed& feed, size_t at) const {
  return !TouchedBefore(match, feed.buffer_id, 0, feed.bytes, at);
}

bool StepGraphPlanner::IsEarly(const StepMatch& match, const analyzer::TensorUse& result,
                               size_t at) const {
  return !TouchedBefore(match, result.tensor.buffer_id, result.layout->FirstByte(),
                        result.layout->EndByte(), at);
}

// A value that cannot be uploaded before the step, because the step uses the place before, cuts the
// regions where it comes.
void StepGraphPlanner::FindCuts() {
  const analyzer::Program& program = execution_.program();
  for (const StepMatch& match : class_.matches) {
    const StepRange& range = program.steps[match.step];
    for (int64_t leaf = range.first_leaf; leaf < range.end_leaf; ++leaf) {
      const auto at = static_cast<size_t>(
          std::lower_bound(match.leaves.begin(), match.leaves.end(), leaf) - match.leaves.begin());
      for (const Feed& feed : execution_.contents().FeedsOf(leaf)) {
        if (!IsEarly(match, feed, at)) cut_[at] = true;
      }
    }
    for (size_t at = 0; at < match.leaves.size(); ++at) {
      if (program.leaves[match.leaves[at]].kind != LeafKind::kSource) continue;
      for (const analyzer::TensorUse& result : program.uses[match.leaves[at]].writes) {
        if (result.layout->ElementCount() != 0 && !IsEarly(match, result, at)) cut_[at] = true;
      }
    }
  }
}

void StepGraphPlanner::CollectMoves(size_t m) {
  const analyzer::Program& program = execution_.program();
  const StepMatch& match = class_.matches[m];
  StepMoves& moves = plan_.moves[m];
  const StepRange& range = program.steps[match.step];
  for (int64_t leaf = range.first_leaf; leaf < range.end_leaf; ++leaf) {
    for (const Feed& feed : execution_.contents().FeedsOf(leaf)) {
      const auto place = std::lower_bound(match.leaves.begin(), match.leaves.end(), leaf);
      const auto at = static_cast<size_t>(place - match.leaves.begin());
      CollectFeed(match, feed, at, IsEarly(match, feed, at), moves);
    }
  }
  CollectResults(match, moves);
  CollectCopies(match, moves);
}

void StepGraphPlanner::CollectFeed(const StepMatch& match, const Feed& feed, size_t at, bool early,
                                   StepMoves& moves) {
  std::vector<StepUpload>& uploads = early ? moves.uploads : moves.uploads_at[at];
  const auto add = [&](uint8_t* address, int64_t offset, int64_t bytes) {
    StepUpload upload;
    upload.address = address;
    upload.bytes = static_cast<size_t>(std::min(bytes, feed.bytes - offset));
    upload.feed = &feed;
    upload.feed_offset = static_cast<size_t>(offset);
    upload.digest = feed.digest;
    if (offset < feed.bytes) uploads.push_back(upload);
  };
  for (const auto& [from, to] : match.internal) {
    if (to == feed.buffer_id) {
      add(plan_.internal.at(from), 0, feed.bytes);
      return;
    }
  }
  const bool homed = with_home_.count(feed.buffer_id) != 0;
  if (homed) add(homes_.Find(feed.buffer_id), 0, feed.bytes);
  for (size_t i = 0; i < class_.operands.size(); ++i) {
    const OperandPlace& place = match.operands[i];
    if (plan_.slots[i] == nullptr || place.buffer_id != feed.buffer_id) continue;
    if (!homed) {
      add(plan_.slots[i], place.first_byte, class_.operands[i].bytes());
    } else if (!early) {
      moves.copies_at[at].push_back({plan_.slots[i],
                                     homes_.Find(place.buffer_id) + place.first_byte,
                                     static_cast<size_t>(class_.operands[i].bytes())});
    }
  }
}

// Results of sources are inputs of the step: early ones join the other uploads.
void StepGraphPlanner::CollectResults(const StepMatch& match, StepMoves& moves) {
  const analyzer::Program& program = execution_.program();
  for (size_t at = 0; at < class_.leaves.size(); ++at) {
    const int64_t leaf = match.leaves[at];
    if (program.leaves[leaf].kind != LeafKind::kSource) continue;
    const std::vector<analyzer::TensorUse>& own = program.uses[leaf].writes;
    const std::vector<analyzer::TensorUse>& writes = program.uses[class_.leaves[at]].writes;
    for (size_t w = 0; w < own.size(); ++w) {
      const storage::Layout& layout = *own[w].layout;
      if (layout.ElementCount() == 0) continue;
      const storage::Snapshot* snapshot = analyzer::RecordedResult(program.leaves[leaf], own[w]);
      StepUpload upload;
      upload.address = Place(writes[w].tensor.buffer_id, *writes[w].layout);
      upload.bytes = static_cast<size_t>(layout.ElementCount() * storage::DTypeBytes(layout.dtype));
      upload.leaf = leaf;
      upload.write = static_cast<int>(w);
      upload.strided = snapshot != nullptr ? snapshot->packing != 0 : !layout.IsDense();
      if (snapshot != nullptr) upload.digest = snapshot->digest;
      (IsEarly(match, own[w], at) ? moves.uploads : moves.uploads_at[at]).push_back(upload);
    }
  }
}

void StepGraphPlanner::CollectCopies(const StepMatch& match, StepMoves& moves) {
  for (size_t i = 0; i < class_.operands.size(); ++i) {
    const OperandPlace& place = match.operands[i];
    if (plan_.slots[i] == nullptr || with_home_.count(place.buffer_id) == 0) continue;
    const auto bytes = static_cast<size_t>(class_.operands[i].bytes());
    uint8_t* home = homes_.Find(place.buffer_id) + place.first_byte;
    moves.copies_in.push_back({plan_.slots[i], home, bytes});
    if (class_.operands[i].written) moves.copies_out.push_back({home, plan_.slots[i], bytes});
  }
  for (const auto& [from, to] : match.internal) {
    if (with_home_.count(to) == 0) continue;
    moves.copies_out.push_back({homes_.Find(to), plan_.internal.at(from),
                                static_cast<size_t>(execution_.program().buffers.at(to).bytes)});
  }
}

// An upload that every step makes with the same content to a place that no step writes is made
// once.
void StepGraphPlanner::FindConstants() {
  const analyzer::Program& program = execution_.program();
  std::unordered_set<const uint8_t*> written;
  for (size_t i = 0; i < class_.operands.size(); ++i) {
    if (class_.operands[i].written) written.insert(plan_.slots[i]);
  }
  for (const int64_t leaf : class_.leaves) {
    if (program.leaves[leaf].kind == LeafKind::kSource) continue;
    for (const analyzer::TensorUse& use : program.uses[leaf].writes) {
      const auto found = plan_.internal.find(use.tensor.buffer_id);
      if (found != plan_.internal.end()) written.insert(found->second);
    }
  }
  const uint8_t* arena_end = arena_.data() + arena_.bytes();
  std::map<std::pair<const uint8_t*, size_t>, std::pair<std::string, size_t>> seen;
  for (const StepMoves& moves : plan_.moves) {
    for (const StepUpload& upload : moves.uploads) {
      const bool in_arena = upload.address >= arena_.data() && upload.address < arena_end;
      if (!in_arena || upload.strided || upload.digest.empty()) continue;
      const std::string key = upload.digest + "@" + std::to_string(upload.feed_offset);
      auto [entry, created] = seen.try_emplace({upload.address, upload.bytes}, key, 0);
      if (entry->second.first == key) ++entry->second.second;
    }
  }
  const auto constant = [&](const StepUpload& upload) {
    const auto found = seen.find({upload.address, upload.bytes});
    return found != seen.end() && found->second.second == plan_.moves.size() &&
           plan_.moves.size() > 1 && written.count(upload.address) == 0;
  };
  for (size_t m = 0; m < plan_.moves.size(); ++m) {
    std::vector<StepUpload> changing;
    for (StepUpload& upload : plan_.moves[m].uploads) {
      if (!constant(upload)) {
        changing.push_back(upload);
      } else if (m == 0) {
        plan_.constants.push_back(upload);
      }
    }
    std::sort(changing.begin(), changing.end(),
              [](const StepUpload& a, const StepUpload& b) { return a.address < b.address; });
    plan_.moves[m].uploads = std::move(changing);
  }
}

void StepGraphPlanner::CutRegions() {
  const analyzer::Program& program = execution_.program();
  std::vector<std::string> barriers(class_.leaves.size());
  for (size_t at = 0; at < class_.leaves.size(); ++at) {
    barriers[at] = execution_.lowered().IsSubstituted(class_.leaves[at])
                       ? "substituted by its recorded results"
                       : analyzer::BarrierReason(program.leaves[class_.leaves[at]]);
  }
  for (const VaryingLeaf& leaf : plan_.varying) {
    if (leaf.treatment != VaryingLeaf::Treatment::kEager || !barriers[leaf.at].empty()) continue;
    barriers[leaf.at] = "a host argument varies and cannot be updated: " + leaf.reason;
  }
  RegionLimits limits;
  limits.barrier = [&](size_t at) { return barriers[at]; };
  limits.cut_before = [&](size_t at) { return cut_[at]; };
  if (options_.plan == nullptr) {
    plan_.regions = IssueOnOneStream(class_.leaves.size(), limits);
  } else {
    plan_.regions = IssueByPlan(*options_.plan, PlacesOfPlan(), limits);
  }
  // Whatever is outside of the graphs has the values of its step.
  for (const IssuedRegion& region : plan_.regions) {
    for (VaryingLeaf& leaf : plan_.varying) {
      if (region.captured || leaf.at < region.first || leaf.at >= region.end) continue;
      leaf.treatment = VaryingLeaf::Treatment::kEager;
    }
  }
}

// The plan names the calls of its own step, which is any of the class.
std::unordered_map<int64_t, size_t> StepGraphPlanner::PlacesOfPlan() const {
  const analyzer::Program& program = execution_.program();
  std::unordered_map<int64_t, size_t> place_of;
  for (const StepMatch& match : class_.matches) {
    if (program.steps[match.step].step != options_.plan->step) continue;
    for (size_t at = 0; at < match.leaves.size(); ++at) {
      place_of[program.leaves[match.leaves[at]].call.call_id] = at;
    }
  }
  return place_of;
}

void StepGraphPlanner::PlanShadows() {
  const analyzer::Program& program = execution_.program();
  std::vector<std::pair<std::pair<size_t, int>, int64_t>> wanted;  // key, bytes
  int64_t bytes = 0;
  const int64_t step_end = program.steps[class_.step].end_leaf;
  for (size_t at = 0; at < class_.leaves.size(); ++at) {
    const int64_t leaf = class_.leaves[at];
    if (program.leaves[leaf].kind != LeafKind::kKernel) continue;
    const std::vector<analyzer::TensorUse>& writes = program.uses[leaf].writes;
    for (size_t w = 0; w < writes.size(); ++w) {
      const storage::Layout& layout = *writes[w].layout;
      bool overwritten = false;
      for (const Access& access : program.buffers.at(writes[w].tensor.buffer_id).accesses) {
        overwritten =
            overwritten ||
            (access.write && access.leaf > leaf && access.leaf < step_end &&
             access.first_byte < layout.EndByte() && layout.FirstByte() < access.end_byte);
      }
      if (!overwritten || layout.ElementCount() == 0) continue;
      wanted.push_back({{at, static_cast<int>(w)}, bytes});
      bytes += AlignUp(layout.EndByte() - layout.FirstByte());
    }
  }
  shadow_block_ = Block(execution_.device(), Block::Kind::kDevice, bytes);
  for (const auto& [key, offset] : wanted) plan_.shadows[key] = shadow_block_.data() + offset;
  plan_.device_bytes += bytes;
}

}  // namespace acltape::replayer
