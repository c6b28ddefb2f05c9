#include "replayer/engine/step_graph_plan.h"

#include <algorithm>
#include <limits>
#include <set>

#include "analyzer/calls/byte_set.h"
#include "replayer/device/memory_plan.h"
#include "replayer/engine/leaf_writer.h"

namespace acltape::replayer {
namespace {

using analyzer::Access;
using analyzer::LeafKind;
using analyzer::Operand;
using analyzer::OperandPlace;
using analyzer::StepMatch;
using analyzer::StepRange;

}  // namespace

StepGraphPlanner::StepGraphPlanner(Execution& execution, const HomeMemory& homes,
                                   const analyzer::StepTemplate& step_class,
                                   const StepGraphOptions& options)
    : execution_(execution),
      homes_(homes),
      class_(step_class),
      layout_(LayOutStep(execution, step_class, options)) {
  plan_.step_class = &step_class;
  plan_.moves.resize(step_class.matches.size());
  plan_.regions = layout_.regions;
  plan_.varying = layout_.varying;
  PlaceMemory();
  for (size_t m = 0; m < step_class.matches.size(); ++m) CollectMoves(m);
  FindPadding();
  FindConstants();
  if (options.keep == Keep::kEverything) PlanShadows();
  PlanState();
}

void StepGraphPlanner::PlaceMemory() {
  plan_.arena_bytes = layout_.bytes;
  for (const int64_t slot : layout_.slots) {
    plan_.slots.push_back(slot < 0 ? std::nullopt : std::optional(Spot{StepBlock::kArena, slot}));
  }
  for (const auto& [buffer, offset] : layout_.internal)
    plan_.internal[buffer] = {StepBlock::kArena, offset};
}

Spot StepGraphPlanner::Home(int64_t buffer_id, int64_t offset) const {
  return {StepBlock::kHomes, homes_.OffsetOf(buffer_id) + offset};
}

Spot StepGraphPlanner::Place(int64_t buffer_id, const storage::Layout& layout) const {
  const auto internal = plan_.internal.find(buffer_id);
  if (internal != plan_.internal.end()) return internal->second + layout.byte_offset;
  const int index = class_.FindOperand(buffer_id, layout.FirstByte());
  if (index < 0) {
    throw Error(ErrorKind::kDevice,
                "buffer " + std::to_string(buffer_id) + " has no place in the captured step");
  }
  const Operand& operand = class_.operands[index];
  if (!plan_.slots[index]) return Home(buffer_id, layout.byte_offset);
  return *plan_.slots[index] + (layout.byte_offset - operand.first_byte);
}

Spot StepGraphPlanner::Place(const StepMatch& match, int64_t buffer_id,
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
    const Spot first = plan_.slots[i]
                           ? *plan_.slots[i]
                           : Home(class_.operands[i].buffer_id, class_.operands[i].first_byte);
    return first + (layout.byte_offset - place.first_byte);
  }
  throw Error(ErrorKind::kDevice,
              "buffer " + std::to_string(buffer_id) + " has no place in the captured step");
}

void StepGraphPlanner::CollectMoves(size_t m) {
  const analyzer::Program& program = execution_.program();
  const StepMatch& match = class_.matches[m];
  StepMoves& moves = plan_.moves[m];
  const StepRange& range = program.work.steps[match.step_index];
  for (int64_t leaf = range.first; leaf < range.end; ++leaf) {
    for (const Feed& feed : execution_.contents().FeedsOf(leaf)) {
      const auto found = std::lower_bound(match.leaves.begin(), match.leaves.end(), leaf);
      const auto place = static_cast<size_t>(found - match.leaves.begin());
      CollectFeed(match, feed, place, IsEarly(program, match, feed, place), moves);
    }
  }
  CollectResults(match, moves);
  CollectCopies(match, moves);
}

void StepGraphPlanner::CollectFeed(const StepMatch& match, const Feed& feed, size_t place,
                                   bool early, StepMoves& moves) {
  std::vector<StepUpload>& uploads = early ? moves.uploads : moves.uploads_at[place];
  // Adds the part of the feed that lies in the bytes [first, end) of the buffer. These lie at `to`.
  const auto add = [&](const Spot& to, int64_t first, int64_t end) {
    const int64_t from = std::max(first, feed.first_byte);
    const int64_t until = std::min(end, feed.end_byte());
    if (from >= until) return;
    StepUpload upload;
    upload.to = to + (from - first);
    upload.bytes = until - from;
    upload.feed = &feed;
    upload.feed_offset = from - feed.first_byte;
    upload.digest = feed.digest;
    uploads.push_back(upload);
  };
  for (const auto& [from, to] : match.internal) {
    if (to == feed.buffer_id) {
      add(plan_.internal.at(from), 0, feed.end_byte());
      return;
    }
  }
  const bool homed = layout_.with_home.count(feed.buffer_id) != 0;
  if (homed) add(Home(feed.buffer_id, 0), 0, feed.end_byte());
  for (size_t i = 0; i < class_.operands.size(); ++i) {
    const OperandPlace& operand = match.operands[i];
    if (!plan_.slots[i] || operand.buffer_id != feed.buffer_id) continue;
    if (!homed) {
      add(*plan_.slots[i], operand.first_byte, operand.first_byte + class_.operands[i].bytes());
    } else if (!early) {
      moves.copies_at[place].push_back({*plan_.slots[i],
                                        Home(operand.buffer_id, operand.first_byte),
                                        class_.operands[i].bytes()});
    }
  }
}

// The first execution begins with the memory that the warm-up found. An operand that moves is
// copied from its home when the step begins, and what comes in within the step is put there too.
void StepGraphPlanner::PlanState() {
  analyzer::ByteSet written;  // bytes of the homes
  for (const Operand& operand : class_.operands) {
    if (operand.moving || !operand.written) continue;
    const int64_t first = Home(operand.buffer_id, operand.first_byte).offset;
    written.Add(first, first + operand.bytes());
  }
  for (const StepMoves& moves : plan_.moves) {
    for (const auto& [place, uploads] : moves.uploads_at) {
      for (const StepUpload& upload : uploads) {
        if (upload.to.block != StepBlock::kHomes) continue;
        written.Add(upload.to.offset, upload.to.offset + upload.bytes);
      }
    }
  }
  for (const analyzer::ByteRange& range : written.Within(0, std::numeric_limits<int64_t>::max())) {
    plan_.state.push_back({Spot{StepBlock::kState, plan_.state_bytes},
                           {StepBlock::kHomes, range.first},
                           range.end - range.first});
    plan_.state_bytes += AlignUp(range.end - range.first);
  }
}

// Results of sources are inputs of the step: early ones join the other uploads.
void StepGraphPlanner::CollectResults(const StepMatch& match, StepMoves& moves) {
  const analyzer::Program& program = execution_.program();
  for (size_t place = 0; place < class_.leaves.size(); ++place) {
    const int64_t leaf = match.leaves[place];
    if (program.leaves[leaf].kind != LeafKind::kSource) continue;
    const std::vector<analyzer::TensorUse>& own = program.uses[leaf].writes;
    const std::vector<analyzer::TensorUse>& writes = program.uses[class_.leaves[place]].writes;
    for (size_t w = 0; w < own.size(); ++w) {
      const storage::Layout& layout = *own[w].layout;
      if (layout.ElementCount() == 0) continue;
      const storage::Snapshot* snapshot = analyzer::RecordedResult(program.leaves[leaf], own[w]);
      StepUpload upload;
      const bool early = IsEarly(program, match, own[w], place);
      const std::optional<Spot> target =
          UploadTarget(match, own[w].tensor.buffer_id, layout, early);
      upload.to = target ? *target : Place(writes[w].tensor.buffer_id, *writes[w].layout);
      upload.bytes = ResultBytes(layout);
      upload.leaf = leaf;
      upload.write = static_cast<int>(w);
      upload.strided = IsStrided(program, leaf, w);
      if (snapshot != nullptr) upload.digest = snapshot->digest;
      (early ? moves.uploads : moves.uploads_at[place]).push_back(upload);
    }
  }
}

// Operands with a home are copied from there when the step begins, so an earlier upload goes to the
// home of this step's own buffer. Returns nothing if it goes to the place that the step reads.
std::optional<Spot> StepGraphPlanner::UploadTarget(const StepMatch& match, int64_t buffer_id,
                                                   const storage::Layout& layout,
                                                   bool early) const {
  if (!early || layout_.with_home.count(buffer_id) == 0) return std::nullopt;
  for (size_t i = 0; i < class_.operands.size(); ++i) {
    if (!plan_.slots[i] || match.operands[i].buffer_id != buffer_id) continue;
    return Home(buffer_id, layout.byte_offset);
  }
  return std::nullopt;
}

// Blocks begin at aligned addresses, and nothing lies between the end of one and the next.
void StepGraphPlanner::FindPadding() {
  std::set<Spot> ends;
  const analyzer::Program& program = execution_.program();
  for (size_t i = 0; i < plan_.slots.size(); ++i) {
    if (plan_.slots[i]) ends.insert(*plan_.slots[i] + class_.operands[i].bytes());
  }
  for (const auto& [buffer, spot] : plan_.internal) {
    ends.insert(spot + program.buffers.at(buffer).bytes);
  }
  for (const int64_t buffer : layout_.with_home) {
    ends.insert(Home(buffer, program.buffers.at(buffer).bytes));
  }
  for (StepMoves& moves : plan_.moves) {
    for (StepUpload& upload : moves.uploads) {
      upload.padded = ends.count(upload.to + upload.bytes) != 0;
    }
  }
}

void StepGraphPlanner::CollectCopies(const StepMatch& match, StepMoves& moves) {
  for (size_t i = 0; i < class_.operands.size(); ++i) {
    const OperandPlace& place = match.operands[i];
    if (!plan_.slots[i] || layout_.with_home.count(place.buffer_id) == 0) continue;
    const int64_t bytes = class_.operands[i].bytes();
    const Spot home = Home(place.buffer_id, place.first_byte);
    moves.copies_in.push_back({*plan_.slots[i], home, bytes});
    if (class_.operands[i].written) moves.copies_out.push_back({home, *plan_.slots[i], bytes});
  }
  for (const auto& [from, to] : match.internal) {
    if (layout_.with_home.count(to) == 0) continue;
    moves.copies_out.push_back(
        {Home(to, 0), plan_.internal.at(from), execution_.program().buffers.at(to).bytes});
  }
}

// An upload that every step makes with the same content to a place that no step writes is made
// once.
void StepGraphPlanner::FindConstants() {
  const analyzer::Program& program = execution_.program();
  std::set<Spot> written;
  for (size_t i = 0; i < class_.operands.size(); ++i) {
    if (class_.operands[i].written && plan_.slots[i]) written.insert(*plan_.slots[i]);
  }
  for (const int64_t leaf : class_.leaves) {
    if (program.leaves[leaf].kind == LeafKind::kSource) continue;
    for (const analyzer::TensorUse& use : program.uses[leaf].writes) {
      const auto found = plan_.internal.find(use.tensor.buffer_id);
      if (found != plan_.internal.end()) written.insert(found->second);
    }
  }
  std::map<std::pair<Spot, int64_t>, std::pair<std::string, size_t>> seen;
  for (const StepMoves& moves : plan_.moves) {
    for (const StepUpload& upload : moves.uploads) {
      if (upload.to.block != StepBlock::kArena || upload.strided || upload.digest.empty()) continue;
      const std::string key = upload.digest + "@" + std::to_string(upload.feed_offset);
      auto [entry, created] = seen.try_emplace({upload.to, upload.bytes}, key, 0);
      if (entry->second.first == key) ++entry->second.second;
    }
  }
  const auto constant = [&](const StepUpload& upload) {
    const auto found = seen.find({upload.to, upload.bytes});
    return found != seen.end() && found->second.second == plan_.moves.size() &&
           plan_.moves.size() > 1 && written.count(upload.to) == 0;
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
              [](const StepUpload& a, const StepUpload& b) { return a.to < b.to; });
    plan_.moves[m].uploads = std::move(changing);
  }
}

void StepGraphPlanner::PlanShadows() {
  const analyzer::Program& program = execution_.program();
  const int64_t step_end = program.work.steps[class_.step_index].end;
  for (size_t place = 0; place < class_.leaves.size(); ++place) {
    const int64_t leaf = class_.leaves[place];
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
      plan_.shadows[{place, static_cast<int>(w)}] = {StepBlock::kShadows, plan_.shadow_bytes};
      plan_.shadow_bytes += AlignUp(layout.EndByte() - layout.FirstByte());
    }
  }
}

}  // namespace acltape::replayer
