// Plans the memory of a mixed step: its blocks, and the memory that buffers and workspaces share.
#include <algorithm>
#include <limits>

#include "replayer/device/memory_plan.h"
#include "replayer/script/step_script.h"

namespace acltape::replayer::script {

namespace {

constexpr int kNaNByte = 0xFF;  // a floating number with only such bytes is NaN

}  // namespace

uint64_t StepScript::WorkspaceBytes(size_t place) {
  uint64_t bytes = 0;
  const auto ask = [&](size_t match) {
    const int64_t leaf = LeafAt(match, place);
    auto [entry, created] = workspace_bytes_.try_emplace(leaf, 0);
    if (created) entry->second = execution_.Probe(leaf);
    bytes = std::max(bytes, entry->second);
  };
  ask(options_.capture_match);
  for (const size_t match : options_.run_matches) ask(match);
  return bytes;
}

int StepScript::AddBlock(const std::string& name, int64_t bytes) {
  ScriptBlock block;
  block.name = name;
  block.bytes = bytes;
  block.fill = options_.stress.poison_gaps ? kNaNByte : 0;
  script_.blocks.push_back(block);
  return static_cast<int>(script_.blocks.size()) - 1;
}

bool StepScript::Keeps(const MemoryReuse& reuse) const {
  return !options_.kept_reuses || options_.kept_reuses->Contains(reuse);
}

// Finds reused memory of buffers. Buffers in the graphs' memory are in the order of the first
// captured call that uses them. Of two buffers that share bytes, the later one is the reuse.
void StepScript::FindReusedBuffers() {
  struct Used {
    int object = 0;
    size_t place = 0;
  };
  std::vector<Used> used;  // in order of issue
  std::vector<bool> known(places_.objects().size(), false);
  const auto note = [&](const analyzer::TensorUse& use, size_t place) {
    if (use.layout->ElementCount() == 0) return;
    const int object = places_.Find(0, use.tensor.buffer_id, *use.layout).object;
    if (known[object] || places_.objects()[object].graph < 0) return;
    known[object] = true;
    used.push_back({object, place});
  };
  for (const IssuedRegion& region : layout_.regions) {
    for (const IssuedLeaf& leaf : region.leaves) {
      if (!captured_[leaf.place]) continue;
      const analyzer::LeafUses& uses = program_.uses[class_.leaves[leaf.place]];
      for (const analyzer::TensorUse& read : uses.reads) note(read, leaf.place);
      for (const analyzer::TensorUse& write : uses.writes) note(write, leaf.place);
    }
  }
  for (size_t i = 0; i < used.size(); ++i) {
    const StepObject& own = places_.objects()[used[i].object];
    for (size_t j = i; j-- > 0;) {
      const StepObject& other = places_.objects()[used[j].object];
      if (other.graph + other.bytes <= own.graph || own.graph + own.bytes <= other.graph) continue;
      reuses_.push_back({MemoryReuse::What::kBuffer, own.buffer, used[i].place,
                         MemoryReuse::What::kBuffer, other.buffer, used[j].place});
      break;
    }
  }
}

void StepScript::SeparateBuffers() {
  int64_t& end = script_.blocks[graph_].bytes;
  for (const MemoryReuse& reuse : reuses_) {
    if (reuse.what != MemoryReuse::What::kBuffer || Keeps(reuse)) continue;
    for (StepObject& object : places_.objects()) {
      if (object.buffer != reuse.id || object.operand >= 0) continue;
      object.graph = end;
      end += AlignUp(object.bytes);
    }
  }
}

void StepScript::MakeBlocks() {
  int64_t home_bytes = places_.home_bytes();
  if (options_.stress.relocate_inputs) {
    for (StepObject& object : places_.objects()) {
      if (object.operand < 0 || object.graph < 0) continue;
      object.other_home = home_bytes;
      home_bytes += AlignUp(object.bytes);
    }
  }
  script_.blocks[home_].bytes = home_bytes;
  const int64_t temporaries = std::max(execution_.lowered().temporary_bytes, kDeviceAlignment);
  uint64_t eager_workspace = 0;
  for (size_t place = 0; place < class_.leaves.size(); ++place) {
    if (Launches(place) && !golden_[place]) {
      eager_workspace = std::max(eager_workspace, WorkspaceBytes(place));
    }
  }
  eager_workspace_ = AddBlock("eager workspace", static_cast<int64_t>(eager_workspace));
  eager_temporaries_ = AddBlock("eager temporaries", temporaries);
  AddScratchOfCapturedCalls();
  if (options_.watch == Watch::kEveryResult) {
    PlaceShadows();
  } else {
    PlaceGiven();
  }
}

// Gives each captured call blocks for its workspace and its temporaries. The calls of one stream
// share them, because they run one after the other.
void StepScript::AddScratchOfCapturedCalls() {
  const int64_t temporaries = std::max(execution_.lowered().temporary_bytes, kDeviceAlignment);
  struct Shared {
    int blocks = 0;
    std::optional<size_t> last;  // place of the last call that needs it
  };
  std::map<int, Shared> of_stream;
  const auto make = [&](const std::string& name) {
    ScratchBlocks blocks;
    blocks.workspace = AddBlock("workspace " + name, 0);
    blocks.temporaries = AddBlock("temporaries " + name, temporaries);
    scratch_.push_back(blocks);
    return static_cast<int>(scratch_.size()) - 1;
  };
  // Workspaces that a planted fault puts on a result are already in the list.
  const size_t planted = reuses_.size();
  for (const Run& run : runs_) {
    for (const IssuedLeaf& leaf : run.issue.leaves) {
      if (!Launches(leaf.place)) continue;
      const int64_t call = CallOf(leaf.place);
      const bool needed =
          WorkspaceBytes(leaf.place) != 0 ||
          !execution_.lowered().lowerings[class_.leaves[leaf.place]].temporaries.empty();
      const bool known =
          std::any_of(reuses_.begin(), reuses_.begin() + static_cast<std::ptrdiff_t>(planted),
                      [&](const MemoryReuse& reuse) {
                        return reuse.what == MemoryReuse::What::kWorkspace && reuse.id == call;
                      });
      const auto shared = of_stream.find(leaf.stream);
      MemoryReuse reuse{MemoryReuse::What::kWorkspace, call, leaf.place, {}, 0, 0};
      bool reused = known;
      if (!known && needed && shared != of_stream.end() && shared->second.last) {
        reuse.over = MemoryReuse::What::kWorkspace;
        reuse.over_place = *shared->second.last;
        reuse.over_id = CallOf(reuse.over_place);
        reuses_.push_back(reuse);
        reused = true;
      }
      if (options_.remedies.own_workspace || (reused && !Keeps(reuse))) {
        scratch_of_[leaf.place] = make("of call " + std::to_string(call));
      } else {
        Shared& blocks = shared != of_stream.end()
                             ? shared->second
                             : of_stream[leaf.stream] = {make(std::to_string(leaf.stream)), {}};
        scratch_of_[leaf.place] = blocks.blocks;
        if (needed) blocks.last = leaf.place;
      }
      int64_t& bytes = script_.blocks[scratch_[scratch_of_[leaf.place]].workspace].bytes;
      bytes = std::max(bytes, static_cast<int64_t>(WorkspaceBytes(leaf.place)));
    }
  }
}

// Makes shadows: copies of the results that the step overwrites later.
void StepScript::PlaceShadows() {
  int64_t bytes = 0;
  for (size_t place = 0; place < class_.leaves.size(); ++place) {
    if (!Launches(place) || golden_[place]) continue;
    const std::vector<analyzer::TensorUse>& writes = program_.uses[class_.leaves[place]].writes;
    for (size_t w = 0; w < writes.size(); ++w) {
      bool overwritten = false;
      if (WatchedPart(0, place, static_cast<int>(w), &overwritten) == nullptr || !overwritten)
        continue;
      shadows_[{place, static_cast<int>(w)}] = {0, bytes};
      bytes += AlignUp(writes[w].layout->EndByte() - writes[w].layout->FirstByte());
    }
  }
  if (shadows_.empty()) return;
  kept_ = AddBlock("kept", bytes);
  for (auto& [key, spot] : shadows_) spot.block = kept_;
}

}  // namespace acltape::replayer::script
