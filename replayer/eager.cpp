#include "replayer/eager.h"

#include <ctime>

#include "replayer/memory_plan.h"

namespace acltape::replayer {

using analyzer::Leaf;
using analyzer::LeafKind;

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

EagerExecution::EagerExecution(Execution& execution, const HomeMemory& homes)
    : execution_(execution),
      homes_(homes),
      host_value_(execution.device(), Block::Kind::kPinned, kDeviceAlignment) {}

void EagerExecution::Bind(int64_t first, int64_t end) {
  const auto place = [this](int64_t buffer_id, const storage::Layout& layout) -> uint8_t* {
    uint8_t* home = homes_.Find(buffer_id);
    if (home == nullptr) {
      throw Error(ErrorKind::kDevice,
                  "buffer " + std::to_string(buffer_id) + " has no device memory");
    }
    return home + layout.byte_offset;
  };
  for (int64_t i = first; i < end; ++i) {
    const LeafKind kind = execution_.program().leaves[i].kind;
    if (kind == LeafKind::kView || kind == LeafKind::kAllocation || bound_.count(i) != 0) continue;
    bound_.emplace(i, execution_.Bind(i, place));
  }
}

void EagerExecution::Preload(int64_t first, int64_t end) {
  for (int64_t i = first; i < end; ++i) {
    for (const Feed& feed : execution_.contents().FeedsOf(i)) {
      preloaded_.push_back(execution_.contents().Get(feed));
    }
    const Leaf& leaf = execution_.program().leaves[i];
    if (leaf.kind != LeafKind::kSource && !execution_.lowered().IsSubstituted(i)) continue;
    for (const analyzer::TensorUse& use : execution_.program().uses[i].writes) {
      preloaded_.push_back(execution_.contents().GetResult(leaf, use));
    }
  }
}

void EagerExecution::Run(int64_t first, int64_t end, Verifier* verifier, WaitClock* clock) {
  for (int64_t i = first; i < end; ++i) {
    for (const Feed& feed : execution_.contents().FeedsOf(i)) {
      if (uint8_t* home = homes_.Find(feed.buffer_id)) execution_.Put(feed, home);
    }
    RunLeaf(execution_.program().leaves[i], verifier, clock);
  }
}

void EagerExecution::RunLeaf(const Leaf& leaf, Verifier* verifier, WaitClock* clock) {
  if (leaf.kind == LeafKind::kView || leaf.kind == LeafKind::kAllocation) return;
  if (leaf.kind == LeafKind::kExchange) return;  // the readers of its results get them as inputs
  const BoundLeaf& bound = bound_.at(leaf.index);
  if (leaf.kind == LeafKind::kSource || execution_.lowered().IsSubstituted(leaf.index)) {
    execution_.PutResults(bound, leaf.index);
    return;
  }
  if (leaf.kind == LeafKind::kHostRead) {
    if (bound.reads.empty()) return;
    if (verifier != nullptr) {
      verifier->TakeHostRead(leaf.index, bound.reads[0]);
    } else {
      const int64_t begin = NowNs();
      const analyzer::TensorUse& use = execution_.program().uses[leaf.index].reads[0];
      execution_.device().Download(host_value_.data(), bound.reads[0],
                                   storage::DTypeBytes(use.layout->dtype));
      execution_.device().Synchronize();
      if (clock != nullptr) clock->waited_ns += NowNs() - begin;
    }
    return;
  }
  execution_.Launch(bound);
  for (size_t w = 0; verifier != nullptr && w < bound.writes.size(); ++w) {
    if (verifier->Wants(leaf.index, static_cast<int>(w))) {
      verifier->Take(leaf.index, static_cast<int>(w), bound.writes[w]);
    }
  }
  if (isolate_) execution_.PutResults(bound, leaf.index);
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
