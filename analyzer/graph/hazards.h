// Finds the calls that must stay in order because they touch the same bytes. They are the edges of
// the program graph.
//
//   RAW  the target reads bytes that the source wrote last
//   WAR  the target overwrites bytes that the source read since they were written
//   WAW  the target overwrites bytes that the source wrote last and nobody has read since
//
// Edges that follow from others through the same bytes are left out. The number of edges therefore
// stays near the number of accesses. A reused address is another buffer and gives no edge. Views
// that interleave without sharing a byte, such as the columns of one matrix, do not conflict
// (analyzer/calls/overlap.h). If more than 64 such uses of one range are open, the next write of
// the range counts as a write of all its bytes. This can add edges, but it leaves none out. An ACL
// operator counts as a writer of its workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::graph {

enum class HazardKind : uint8_t { kRaw, kWar, kWaw };
std::string_view HazardKindName(HazardKind kind);  // "RAW", "WAR", "WAW"

struct Hazard {
  uint32_t source = 0;  // indices in Work::calls; source < target
  uint32_t target = 0;
  HazardKind kind = HazardKind::kRaw;
  int64_t buffer = 0;
  int64_t first_byte = 0;  // the range of bytes that both touch
  int64_t end_byte = 0;
};

// Finds the hazards between calls [first, end) of the work, in order of target. Between two calls
// there is at most one hazard of each kind and buffer.
std::vector<Hazard> FindHazards(const Work& work, size_t first, size_t end);

}  // namespace acltape::analyzer::graph
