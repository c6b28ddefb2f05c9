// Writes one pass over the step: uploads, copies, eager calls and executions of graphs, in order.
#include <algorithm>
#include <limits>

#include "replayer/script/step_script.h"

namespace acltape::replayer::script {

using analyzer::LeafKind;
using analyzer::StepMatch;
using analyzer::StepRange;
using analyzer::TensorUse;

namespace {

constexpr uint8_t kHome = static_cast<uint8_t>(Side::kHome);
constexpr uint8_t kGraph = static_cast<uint8_t>(Side::kGraph);
constexpr uint8_t kBoth = kHome | kGraph;

}  // namespace

Spot StepScript::SpotOf(Side side, int object, int64_t offset) const {
  const StepObject& own = places_.objects()[object];
  if (side == Side::kGraph && own.graph >= 0) return {graph_, own.graph + offset};
  const bool other = relocated_ && own.other_home >= 0;
  return {home_, (other ? own.other_home : own.home) + offset};
}

int StepScript::AddContent(const std::string& name, int64_t bytes, std::function<Bytes()> load) {
  script_.contents.push_back({name, bytes, std::move(load)});
  return static_cast<int>(script_.contents.size()) - 1;
}

// Uploads the operands as the step found them, and the values that come in during the step if they
// can be uploaded at its start.
void StepScript::UploadState(size_t m) {
  const StepMatch& match = class_.matches[m];
  const StepRange& range = program_.work.steps[match.step_index];
  residence_.assign(places_.objects().size(), Residence());
  for (size_t i = 0; i < class_.operands.size(); ++i) {
    const int object = places_.ObjectOfOperand(i);
    const analyzer::OperandPlace& place = match.operands[i];
    const int64_t first = place.first_byte;
    const int64_t end = first + class_.operands[i].bytes();
    residence_[object].Set(0, end - first, kHome);
    const StepState::Version version = state_->VersionOf(m, i);
    const auto key = std::make_pair(object, relocated_);
    const auto known = uploaded_.find(key);
    if (!class_.operands[i].written && known != uploaded_.end() && known->second == version) {
      continue;
    }
    uploaded_[key] = version;
    const int content =
        AddContent("step " + std::to_string(program_.work.steps[match.step_index].step) +
                       " buffer " + std::to_string(place.buffer_id) + " bytes " +
                       std::to_string(first) + " to " + std::to_string(end),
                   end - first, [state = state_, m, i] {
                     return std::make_shared<const std::vector<uint8_t>>(state->Content(m, i));
                   });
    Emit(UploadTo{SpotOf(Side::kHome, object, 0), content, 0, end - first});
  }
  for (int64_t leaf = range.first; leaf < range.end; ++leaf) {
    for (const Feed& feed : session_.contents().FeedsOf(leaf)) {
      const auto place = static_cast<size_t>(
          std::lower_bound(match.leaves.begin(), match.leaves.end(), leaf) - match.leaves.begin());
      if (IsEarly(program_, match, feed, place)) UploadFeed(m, feed, /*internal_only=*/true);
    }
  }
  for (size_t place = 0; place < match.leaves.size(); ++place) {
    if (program_.leaves[match.leaves[place]].kind != LeafKind::kSource) continue;
    bool early = true;
    for (const TensorUse& use : program_.uses[match.leaves[place]].writes) {
      early = early && (use.layout->ElementCount() == 0 || IsEarly(program_, match, use, place));
    }
    if (early) UploadResults(m, place);
  }
}

void StepScript::UploadFeed(size_t m, const Feed& feed, bool internal_only) {
  for (const StepPlaces::Part& part :
       places_.Parts(m, feed.buffer_id, feed.first_byte, feed.end_byte())) {
    if (internal_only && places_.objects()[part.object].operand >= 0) continue;
    const int content = AddFeed(
        session_.contents(), feed,
        program_.Describe(feed.leaf) + " buffer " + std::to_string(feed.buffer_id), script_);
    Emit(UploadTo{SpotOf(Side::kHome, part.object, part.offset), content,
                  part.first - feed.first_byte, part.bytes});
    residence_[part.object].Set(part.offset, part.offset + part.bytes, kHome);
    uploaded_.erase({part.object, relocated_});
  }
}

// Uploads the values that come in right before a place. They could not come earlier, because the
// step used their memory.
void StepScript::UploadLate(size_t m, size_t place) {
  const StepMatch& match = class_.matches[m];
  const int64_t first =
      place == 0 ? program_.work.steps[match.step_index].first : match.leaves[place - 1] + 1;
  const int64_t until = place < match.leaves.size() ? match.leaves[place] + 1
                                                    : program_.work.steps[match.step_index].end;
  for (int64_t leaf = first; leaf < until; ++leaf) {
    for (const Feed& feed : session_.contents().FeedsOf(leaf)) {
      if (!IsEarly(program_, match, feed, place)) UploadFeed(m, feed, /*internal_only=*/false);
    }
  }
  if (place >= match.leaves.size()) return;
  if (program_.leaves[match.leaves[place]].kind != LeafKind::kSource) return;
  for (const TensorUse& use : program_.uses[match.leaves[place]].writes) {
    if (use.layout->ElementCount() == 0 || IsEarly(program_, match, use, place)) continue;
    UploadResults(m, place);
    return;
  }
}

// Uploads the recorded results of a place to their homes.
void StepScript::UploadResults(size_t m, size_t place) {
  const int64_t leaf = LeafAt(m, place);
  BringFor(m, place, Side::kHome);
  const std::vector<TensorUse>& writes = program_.uses[leaf].writes;
  for (size_t w = 0; w < writes.size(); ++w) {
    if (writes[w].layout->ElementCount() == 0) continue;
    const StepPlaces::Where where = places_.Find(m, writes[w].tensor.buffer_id, *writes[w].layout);
    const std::string name =
        program_.Describe(leaf) + " " + program_.leaves[leaf].arguments[writes[w].argument].name;
    WriteResult(program_, session_.contents(), leaf, w, name,
                SpotOf(Side::kHome, where.object, where.offset), script_, script_.operations);
  }
  NoteWrites(m, place, Side::kHome);
}

// Copies to a side those of these bytes that only the other side has.
void StepScript::BringTo(Side side, int object, int64_t first, int64_t end) {
  if (places_.objects()[object].graph < 0) return;
  const auto mask = static_cast<uint8_t>(side);
  const Side other = side == Side::kHome ? Side::kGraph : Side::kHome;
  for (const Residence::Range& range : residence_[object].Of(first, end)) {
    if (range.sides == 0 || (range.sides & mask) != 0) continue;
    Emit(CopyBytes{SpotOf(side, object, range.first), SpotOf(other, object, range.first),
                   range.end - range.first, 0});
    residence_[object].Set(range.first, range.end, kBoth);
  }
}

// Brings the bytes that a place reads to a side. Also brings the bytes between the elements that it
// writes, because these bytes stay.
void StepScript::BringFor(size_t m, size_t place, Side side) {
  const analyzer::LeafUses& uses = program_.uses[LeafAt(m, place)];
  const auto bring = [&](const TensorUse& use) {
    const StepPlaces::Where where = places_.Find(m, use.tensor.buffer_id, *use.layout);
    BringTo(side, where.object, where.offset,
            where.offset + use.layout->EndByte() - use.layout->FirstByte());
  };
  for (const TensorUse& use : uses.reads) {
    if (use.layout->ElementCount() != 0) bring(use);
  }
  for (const TensorUse& use : uses.writes) {
    if (use.layout->ElementCount() != 0 && !use.layout->IsDense()) bring(use);
  }
}

void StepScript::NoteWrites(size_t m, size_t place, Side side) {
  for (const TensorUse& use : program_.uses[LeafAt(m, place)].writes) {
    if (use.layout->ElementCount() == 0) continue;
    const StepPlaces::Where where = places_.Find(m, use.tensor.buffer_id, *use.layout);
    residence_[where.object].Set(where.offset,
                                 where.offset + use.layout->EndByte() - use.layout->FirstByte(),
                                 static_cast<uint8_t>(side));
  }
}

void StepScript::RunEagerly(size_t m, size_t place) {
  if (golden_[place]) {
    UploadResults(m, place);
  } else if (Launches(place)) {
    BringFor(m, place, Side::kHome);
    LaunchAt(m, place, Side::kHome, 0, /*faulty=*/false);
    NoteWrites(m, place, Side::kHome);
    KeepResults(m, place, Side::kHome, 0);
  } else if (program_.leaves[LeafAt(m, place)].kind == LeafKind::kHostRead) {
    BringFor(m, place, Side::kHome);  // ObserveStep compares the value that the host reads
  }
}

void StepScript::ExecuteRun(size_t m, int number, Mode mode) {
  const Run& run = runs_[number];
  const auto each = [&](const auto& visit) {
    for (size_t i = 0; i < run.issue.leaves.size(); ++i) {
      if (Launches(run.issue.leaves[i].place) && !run.left_out[i]) visit(run.issue.leaves[i].place);
    }
  };
  each([&](size_t place) {
    BringFor(m, place, Side::kGraph);
    NoteWrites(m, place, Side::kGraph);
  });
  if (mode == Mode::kExecute) {
    Emit(ExecuteGraph{captures_[capture_].graphs[number], 0});
    return;
  }
  each([&](size_t place) {
    const auto effects = effects_.find(place);
    if (effects != effects_.end()) {
      for (const CallEffects::Private& own : effects->second.reads) {
        Emit(CopyBytes{{own.blocks[capture_], 0},
                       SpotOf(Side::kGraph, own.object, 0),
                       places_.objects()[own.object].bytes,
                       0});
      }
    }
    LaunchAt(m, place, Side::kGraph, 0, /*faulty=*/false);
  });
}

// Fills all graph memory that holds no needed value with NaN.
void StepScript::PoisonGaps(int piece) {
  std::vector<std::pair<int64_t, int64_t>> live;
  for (size_t object = 0; object < residence_.size(); ++object) {
    const StepObject& own = places_.objects()[object];
    if (own.graph < 0 || last_piece_[object] < piece) continue;
    for (const Residence::Range& range : residence_[object].Of(0, own.bytes)) {
      if ((range.sides & kGraph) != 0) {
        live.push_back({own.graph + range.first, own.graph + range.end});
      }
    }
  }
  std::sort(live.begin(), live.end());
  const int64_t bytes = script_.blocks[graph_].bytes;
  live.push_back({bytes, bytes});
  int64_t reached = 0;
  for (const auto& [first, end] : live) {
    if (reached < first) Emit(FillBytes{{graph_, reached}, 0xFF, first - reached, 0});
    reached = std::max(reached, end);
  }
}

void StepScript::EmitStep(size_t m, Mode mode) {
  UploadState(m);
  FindGiven(m, mode);
  const bool poison = options_.stress.poison_gaps && mode == Mode::kExecute;
  int64_t number = 0;
  if (poison) {
    for (const ScratchBlocks& blocks : scratch_) {
      for (const int block : {blocks.workspace, blocks.temporaries}) {
        Emit(FillBytes{{block, 0}, 0xFF, script_.blocks[block].bytes, 0});
      }
    }
    for (const PlannedRegion& region : regions_) {
      for (const Piece& piece : region.pieces) {
        const auto note = [&](size_t place) {
          const analyzer::LeafUses& uses = program_.uses[LeafAt(m, place)];
          for (const auto* list : {&uses.reads, &uses.writes}) {
            for (const TensorUse& use : *list) {
              if (use.layout->ElementCount() == 0) continue;
              last_piece_[places_.Find(m, use.tensor.buffer_id, *use.layout).object] = number;
            }
          }
        };
        if (piece.run < 0) {
          note(piece.place);
        } else {
          for (const IssuedLeaf& leaf : runs_[piece.run].issue.leaves) note(leaf.place);
        }
        ++number;
      }
    }
    for (size_t object = 0; object < places_.objects().size(); ++object) {
      const StepObject& own = places_.objects()[object];
      if (own.operand >= 0 || layout_.lives_on.count(own.buffer) != 0) {
        last_piece_[object] = std::numeric_limits<int64_t>::max();
      }
    }
    number = 0;
  }
  for (const PlannedRegion& region : regions_) {
    if (region.captured) {
      KeepGiven(m, region.first);
      UploadLate(m, region.first);
    }
    for (const Piece& piece : region.pieces) {
      if (piece.run >= 0) {
        if (poison) PoisonGaps(number);
        ExecuteRun(m, piece.run, mode);
      } else {
        if (!region.captured) {
          KeepGiven(m, piece.place);
          UploadLate(m, piece.place);
        }
        RunEagerly(m, piece.place);
      }
      ++number;
    }
  }
  KeepGiven(m, class_.leaves.size());
  UploadLate(m, class_.leaves.size());
}

// Returns the part of a result that the host reads in this step: the whole result if any read takes
// it, else what the first read takes, such as one element. Null if it reads nothing of it.
const storage::Layout* StepScript::PartReadByHost(size_t m, size_t place, int write) const {
  const StepRange& range = program_.work.steps[class_.matches[m].step_index];
  const TensorUse& result = program_.uses[LeafAt(m, place)].writes[write];
  const storage::Layout* part = nullptr;
  for (const analyzer::Access& access : program_.buffers.at(result.tensor.buffer_id).accesses) {
    if (access.leaf <= LeafAt(m, place) || access.leaf >= range.end || access.write ||
        program_.leaves[access.leaf].kind != LeafKind::kHostRead) {
      continue;
    }
    const int64_t first = result.layout->FirstByte();
    const int64_t end = result.layout->EndByte();
    if (access.first_byte <= first && end <= access.end_byte) return result.layout;
    if (part != nullptr) continue;
    for (const TensorUse& read : program_.uses[access.leaf].reads) {
      const bool inside = read.tensor.buffer_id == result.tensor.buffer_id &&
                          first <= read.layout->FirstByte() && read.layout->EndByte() <= end;
      if (inside) part = read.layout;
    }
  }
  return part;
}

// Returns the part of a result that is compared: all, what the host reads, or nothing (null). Sets
// `overwritten` if the step overwrites the result later; then the shadow of the result is compared.
const storage::Layout* StepScript::WatchedPart(size_t m, size_t place, int write,
                                               bool* overwritten) const {
  const StepRange& range = program_.work.steps[class_.matches[m].step_index];
  const int64_t leaf = LeafAt(m, place);
  const TensorUse& use = program_.uses[leaf].writes[write];
  const storage::Layout& layout = *use.layout;
  *overwritten = false;
  if (layout.ElementCount() == 0) return nullptr;
  bool read = false;
  for (const analyzer::Access& access : program_.buffers.at(use.tensor.buffer_id).accesses) {
    if (access.leaf <= leaf || access.leaf >= range.end) continue;
    if (access.end_byte <= layout.FirstByte() || layout.EndByte() <= access.first_byte) continue;
    (access.write ? *overwritten : read) = true;
  }
  if (options_.watch == Watch::kEveryResult) return &layout;
  if (*overwritten) return nullptr;
  if (!read || layout_.with_home.count(use.tensor.buffer_id) != 0) return &layout;
  const auto& operands = class_.matches[m].operands;
  const bool outlives =
      std::any_of(operands.begin(), operands.end(), [&](const analyzer::OperandPlace& operand) {
        return operand.buffer_id == use.tensor.buffer_id;
      });
  return outlives ? &layout : PartReadByHost(m, place, write);
}

void StepScript::ObserveStep(size_t m) {
  const StepMatch& match = class_.matches[m];
  Observation observation;
  observation.match = m;
  observation.step = program_.work.steps[match.step_index].step;
  observation.first = static_cast<int>(script_.outputs.size());
  for (size_t place = 0; place < match.leaves.size(); ++place) {
    if (!Launches(place) || golden_[place]) continue;
    const int64_t leaf = match.leaves[place];
    for (size_t w = 0; w < program_.uses[leaf].writes.size(); ++w) {
      const int write = static_cast<int>(w);
      bool overwritten = false;
      const bool given = given_now_.contains({place, write});
      const TensorUse& use = program_.uses[leaf].writes[w];
      const storage::Layout* part = given ? use.layout : WatchedPart(m, place, write, &overwritten);
      if (part == nullptr) continue;
      ScriptOutput output{program_.leaves[leaf].call.call_id, leaf, write, {}, *part};
      const auto shadow = shadows_.find({place, write});
      if (given) {
        output.spot = given_.at({place, write});
      } else if (shadow != shadows_.end()) {
        output.spot = shadow->second;
      } else {
        const StepPlaces::Where where = places_.Find(m, use.tensor.buffer_id, *part);
        const int64_t end = where.offset + part->EndByte() - part->FirstByte();
        const auto ranges = residence_[where.object].Of(where.offset, end);
        // Once the host has read the result, the graph may reuse its memory.
        const bool at_home = ranges.size() == 1 && (ranges[0].sides & kHome) != 0 &&
                             PartReadByHost(m, place, write) == part;
        const bool in_graph = !at_home && ranges.size() == 1 && (ranges[0].sides & kGraph) != 0;
        if (!in_graph) BringTo(Side::kHome, where.object, where.offset, end);
        output.spot = SpotOf(in_graph ? Side::kGraph : Side::kHome, where.object, where.offset);
      }
      script_.outputs.push_back(std::move(output));
    }
  }
  observation.end = static_cast<int>(script_.outputs.size());
  Emit(Observe{static_cast<int>(script_.observations.size()), observation.first, observation.end});
  script_.observations.push_back(observation);
}

}  // namespace acltape::replayer::script
