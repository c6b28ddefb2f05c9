// Computes the memory that captured graphs take. A captured graph keeps every address that it uses
// for as long as it exists. Its own buffers therefore lie in a pool that no other work may use.
// Buffers that exist before the graph (parameters, state, inputs) are not in the pool.
//
//   const BufferLives lives(work);
//   const PoolSet pools = PlanPools(work, lives, {calls_of_graph_a, calls_of_graph_b});
//   pools.separate_bytes;  // each graph has a pool of its own
//   pools.shared_bytes;    // one pool for all, as long as they execute in this order
//
// An aten trace does not show the workspace that an operator takes on a device, so it is not
// counted. An ACL program places its memory itself. Its pools contain only the memory that it
// allocates inside the graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/memory/buffer_lives.h"

namespace acltape::analyzer::memory {

// A buffer that a call of the graph makes.
struct PoolBlock {
  int64_t buffer = 0;
  int64_t bytes = 0;
  uint32_t first = 0;     // index in Work::calls of the first call that uses it
  uint32_t last = 0;      // index of the last one, or the graph's last call if it lives on
  bool outlives = false;  // a call after the graph uses it: an output
  int64_t offset = 0;     // in the graph's own pool
};

struct GraphPool {
  std::vector<PoolBlock> blocks;  // in order of first use
  int64_t pool_bytes = 0;         // size of a pool of its own, with best fit
  int64_t peak_bytes = 0;         // most bytes in use at one moment; no pool is smaller
  int64_t output_bytes = 0;       // bytes of blocks that outlive the graph
};

struct PoolSet {
  std::vector<GraphPool> graphs;
  int64_t separate_bytes = 0;  // sum of the graphs' own pools
  // One pool for all graphs, executed one after the other as listed. An output keeps its place
  // until its last use. An output that is used after the last graph, in another step, keeps it for
  // ever.
  int64_t shared_bytes = 0;
  int64_t kept_bytes = 0;  // size of outputs that no other graph may overwrite
};

// Allocators of frameworks give out blocks in multiples of 512 bytes.
constexpr int64_t kPoolAlignment = 512;

// `graphs` has for each graph the indices in Work::calls of its calls, ascending. The graphs are in
// order and have no calls in common. Views need not be listed.
PoolSet PlanPools(const Work& work, const BufferLives& lives,
                  std::span<const std::vector<uint32_t>> graphs,
                  int64_t alignment = kPoolAlignment);

}  // namespace acltape::analyzer::memory
