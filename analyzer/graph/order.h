// The order that a program itself sets among its calls, beside the bytes that they touch
// (analyzer/graph/hazards.h).
//
//   stream  the target follows the source on its stream
//   event   the target waits for the event that the source recorded
//   host    the host waited in between: from the last work of what it waited for to the wait, and
//   from
//           the wait to the next work of each stream that the thread issues; in a program of
//           PyTorch from a host read to the next call that does something
//
// A captured call is ordered among the calls of its capture; the capture's place among other work
// is that of its executions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/work/work.h"

namespace acltape::analyzer {

enum class OrderKind : uint8_t { kStream, kEvent, kHost };
std::string_view OrderKindName(OrderKind kind);  // "stream", "event", "host"

struct OrderEdge {
  uint32_t source = 0;  // indices in Work::calls; source < target
  uint32_t target = 0;
  OrderKind kind = OrderKind::kStream;
};

// The edges among calls [first, end), in order of target.
std::vector<OrderEdge> FindOrder(const Work& work, size_t first, size_t end);

}  // namespace acltape::analyzer
