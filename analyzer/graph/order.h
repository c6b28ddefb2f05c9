// The order that a program itself sets between its calls. The order by bytes that calls touch is in
// analyzer/graph/hazards.h.
//
//   stream  the target follows the source on its stream
//   event   the target waits for the event or the notify that the source recorded
//   host    the host waited in between. Edges lead from the last awaited work to the wait, and
//           from the wait to the next work of each stream that the thread issues. In a PyTorch
//           program an edge leads from a host read to the next active call.
//
// A captured call is ordered among the calls of its capture. Relative to other work, a capture is
// ordered where its executions are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::graph {

enum class OrderKind : uint8_t { kStream, kEvent, kHost };
std::string_view OrderKindName(OrderKind kind);  // "stream", "event", "host"

struct OrderEdge {
  uint32_t source = 0;  // indices in Work::calls; source < target
  uint32_t target = 0;
  OrderKind kind = OrderKind::kStream;
};

// Finds the edges between calls [first, end), in order of target.
std::vector<OrderEdge> FindOrder(const Work& work, size_t first, size_t end);

}  // namespace acltape::analyzer::graph
