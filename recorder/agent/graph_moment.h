// Moments in the life of captured graphs that the plug-in of a framework is told of: the tensors
// that it made during a capture live in the graph's memory, and which of them the program still
// holds when the graph is executed says whose results the execution overwrites.
#pragma once

#include <atomic>
#include <cstdint>

#include "recorder/agent/tape.h"

namespace acltape::agent {

enum class GraphMoment : uint8_t { kCaptureBegins, kCaptureEnded, kBeforeExecution };

// Called by the thread that makes the call of the interface, with its tape; null: nobody wants to
// know. Set once.
ACLTAPE_AGENT_API extern std::atomic<void (*)(GraphMoment, Tape&)> g_graph_moment;

inline void TakeGraphMoment(GraphMoment moment, Tape& tape) {
  if (const auto take = g_graph_moment.load(std::memory_order_acquire)) take(moment, tape);
}

}  // namespace acltape::agent
