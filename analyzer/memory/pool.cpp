#include "analyzer/memory/pool.h"

#include <algorithm>
#include <unordered_set>

#include "analyzer/memory/arena.h"

namespace acltape::analyzer::memory {
namespace {

std::vector<PoolBlock> BlocksOf(const Work& work, const BufferLives& lives,
                                const std::vector<uint32_t>& calls) {
  std::vector<PoolBlock> blocks;
  std::unordered_set<int64_t> known;
  for (const uint32_t call : calls) {
    work.VisitAccesses(call, [&](const ByteAccess& access) {
      if (!access.write || !known.insert(access.buffer).second) return;
      const BufferLife& life = *lives.Find(access.buffer);
      if (life.first_access != call || !life.made_by_write) return;
      PoolBlock block;
      block.buffer = access.buffer;
      block.bytes = std::max(life.bytes, work.trace->GetBuffer(access.buffer).bytes);
      block.first = call;
      block.outlives = life.last_use > calls.back();
      block.last = block.outlives ? calls.back() : life.last_use;
      blocks.push_back(block);
    });
  }
  return blocks;
}

}  // namespace

PoolSet PlanPools(const Work& work, const BufferLives& lives,
                  std::span<const std::vector<uint32_t>> graphs, int64_t alignment) {
  PoolSet set;
  uint32_t end = 0;  // the last call of all graphs
  for (const std::vector<uint32_t>& calls : graphs) {
    if (!calls.empty()) end = std::max(end, calls.back());
  }
  std::vector<ArenaBlock> shared;
  for (const std::vector<uint32_t>& calls : graphs) {
    GraphPool& graph = set.graphs.emplace_back();
    graph.blocks = BlocksOf(work, lives, calls);
    std::vector<ArenaBlock> own;
    for (const PoolBlock& block : graph.blocks) {
      own.push_back({block.bytes, block.first, block.last});
      ArenaBlock& common = shared.emplace_back(own.back());
      if (!block.outlives) continue;
      graph.output_bytes += block.bytes;
      const uint32_t last_use = lives.Find(block.buffer)->last_use;
      if (last_use <= end) {
        common.last = last_use;
        continue;
      }
      // Executions before this one must not touch the block either.
      common.first = 0;
      common.last = end;
      set.kept_bytes += block.bytes;
    }
    graph.pool_bytes = PlaceBlocks(own, alignment);
    graph.peak_bytes = PeakBytes(own, alignment);
    for (size_t i = 0; i < own.size(); ++i) graph.blocks[i].offset = own[i].offset;
    set.separate_bytes += graph.pool_bytes;
  }
  // Best fit in order may, in rare cases, need more for all graphs together than for each alone.
  set.shared_bytes = std::min(PlaceBlocks(shared, alignment), set.separate_bytes);
  return set;
}

}  // namespace acltape::analyzer::memory
