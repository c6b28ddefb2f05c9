#include "replayer/engine/eager.h"

#include "replayer/device/memory_plan.h"
#include "replayer/engine/held_results.h"
#include "replayer/engine/verifier_taker.h"

namespace acltape::replayer {

using analyzer::Leaf;
using analyzer::LeafKind;
using analyzer::TensorUse;

namespace {

struct EagerBlock {
  enum : int { kNothing, kHomes, kWorkspace, kTemporaries, kCount };
};

}  // namespace

EagerExecution::EagerExecution(Execution& execution, const HomeMemory& homes)
    : execution_(execution),
      homes_(homes),
      memory_{[this](int64_t buffer_id, const storage::Layout& layout) {
                return Spot{EagerBlock::kHomes, homes_.OffsetOf(buffer_id) + layout.byte_offset};
              },
              {EagerBlock::kNothing, 0},
              {EagerBlock::kTemporaries, 0},
              {EagerBlock::kWorkspace, 0}},
      machine_(execution.device(), execution.uploader(), script_) {
  script_.blocks.resize(EagerBlock::kCount);
  machine_.Give(EagerBlock::kNothing, execution.nothing());
  machine_.Give(EagerBlock::kHomes, homes.base());
  machine_.Give(EagerBlock::kWorkspace, execution.workspace());
  machine_.Give(EagerBlock::kTemporaries, execution.temporaries());
}

void EagerExecution::Bind(int64_t first, int64_t end) {
  for (int64_t i = first; i < end; ++i) {
    if (leaves_.count(i) != 0) continue;
    Range& range = leaves_[i];
    range.first = script_.operations.size();
    WriteInputs(execution_.program().leaves[i]);
    range.work = script_.operations.size();
    WriteLeaf(execution_.program().leaves[i]);
    range.end = script_.operations.size();
  }
  machine_.Prepare();
  machine_.BindCalls();
}

void EagerExecution::Forget() {
  leaves_.clear();
  script_.operations.clear();
  script_.contents.clear();
  script_.calls.clear();
  script_.outputs.clear();
  machine_.Forget();
}

void EagerExecution::Preload(int64_t first, int64_t end) {
  for (int64_t i = first; i < end; ++i) {
    const Range& range = leaves_.at(i);
    machine_.Load(Operations(range.first, range.end));
  }
}

void EagerExecution::Run(int64_t first, int64_t end, Verifier* verifier, WaitClock* clock) {
  std::optional<VerifierTaker> taker;
  if (verifier != nullptr) taker.emplace(script_, *verifier, nullptr);
  for (int64_t i = first; i < end; ++i) {
    const Range& range = leaves_.at(i);
    machine_.Run(Operations(range.first, range.end), taker ? &*taker : nullptr, clock);
  }
}

void EagerExecution::UploadInputs(int64_t leaf) {
  const Range& range = leaves_.at(leaf);
  machine_.Run(Operations(range.first, range.work), nullptr, nullptr);
}

void EagerExecution::RunWithoutInputs(int64_t leaf) {
  const Range& range = leaves_.at(leaf);
  machine_.Run(Operations(range.work, range.end), nullptr, nullptr);
}

Spot EagerExecution::SpotOfUse(const TensorUse& use) const {
  return use.layout->ElementCount() == 0 ? memory_.nothing
                                         : memory_.place(use.tensor.buffer_id, *use.layout);
}

int EagerExecution::AddOutput(const Leaf& leaf, int write, const TensorUse& use) {
  script_.outputs.push_back({leaf.call.call_id, leaf.index, write, SpotOfUse(use), *use.layout});
  return static_cast<int>(script_.outputs.size()) - 1;
}

void EagerExecution::WriteResults(int64_t leaf, bool held_only) {
  const std::vector<TensorUse>& writes = execution_.program().uses[leaf].writes;
  for (size_t w = 0; w < writes.size(); ++w) {
    if (held_only && !HoldsResult(execution_.program(), leaf, w)) continue;
    WriteResult(execution_.program(), execution_.contents(), leaf, w, "", SpotOfUse(writes[w]),
                script_, script_.operations);
  }
}

void EagerExecution::WriteInputs(const Leaf& leaf) {
  for (const Feed& feed : execution_.contents().FeedsOf(leaf.index)) {
    if (homes_.Find(feed.buffer_id) == nullptr) continue;
    const int content = AddFeed(execution_.contents(), feed, "", script_);
    const Spot to{EagerBlock::kHomes, homes_.OffsetOf(feed.buffer_id) + feed.first_byte};
    script_.operations.push_back(UploadTo{to, content, 0, feed.bytes});
  }
}

void EagerExecution::WriteLeaf(const Leaf& leaf) {
  const analyzer::LeafUses& uses = execution_.program().uses[leaf.index];
  // The readers of the results of an exchange get them as inputs.
  if (leaf.kind == LeafKind::kView || leaf.kind == LeafKind::kAllocation ||
      leaf.kind == LeafKind::kExchange) {
    return;
  }
  if (leaf.kind == LeafKind::kSource || execution_.lowered().IsSubstituted(leaf.index)) {
    WriteResults(leaf.index);
    return;
  }
  if (leaf.kind == LeafKind::kHostRead) {
    if (uses.reads.empty()) return;
    script_.operations.push_back(ReadOnHost{0, AddOutput(leaf, -1, uses.reads[0])});
    return;
  }
  WriteLaunches(AddCalls(leaf, execution_.lowered().lowerings[leaf.index], memory_, script_), 0,
                script_.operations);
  const auto first = static_cast<int>(script_.outputs.size());
  for (size_t w = 0; w < uses.writes.size(); ++w) {
    AddOutput(leaf, static_cast<int>(w), uses.writes[w]);
  }
  script_.operations.push_back(Observe{0, first, static_cast<int>(script_.outputs.size())});
  if (isolate_) WriteResults(leaf.index, /*held_only=*/true);
}

std::vector<HomeMemory::Need> EagerNeeds(const analyzer::Program& program) {
  std::vector<HomeMemory::Need> needs;
  for (const auto& [id, use] : program.buffers) {
    if (use.accesses.empty() || use.bytes == 0) continue;
    needs.push_back({id, use.first_leaf, use.last_leaf});
  }
  return needs;
}

}  // namespace acltape::replayer
