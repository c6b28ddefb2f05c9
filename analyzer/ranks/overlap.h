// How long each rank communicates by the device's clock, and how much of that other work hides.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/ranks/meetings.h"

namespace acltape::analyzer::ranks {

// A span of time: [first, second).
using Span = std::pair<int64_t, int64_t>;

// The time in which at least one of the spans runs, as spans apart from each other in order.
std::vector<Span> UnionOf(std::vector<Span> spans);
int64_t TimeOf(const std::vector<Span>& apart);
// The time that lies in both. Each argument is a result of UnionOf.
int64_t CommonTime(const std::vector<Span>& a, const std::vector<Span>& b);

struct RankOverlap {
  int64_t communication_ns = 0;  // a collective or a message runs, or waits for its other ranks
  int64_t hidden_ns = 0;         // the part of it in which the device does other work too
  int64_t exposed_ns() const { return communication_ns - hidden_ns; }
};

struct Overlap {
  std::map<int64_t, RankOverlap> ranks;  // by process
  // Executions of graphs that hold collectives: the device's clock does not tell these apart from
  // the rest of the graph, so both are left out.
  int64_t graphs_left_out = 0;
  // How long each communicator moved data: of each meeting the time of the rank that waited least.
  struct Moved {
    int64_t bytes = 0;  // the larger one of what a rank sent and received, of these meetings
    int64_t ns = 0;
  };
  std::map<const Communicator*, Moved> moved;
};

// Empty where the trace has no times of the device.
Overlap FindOverlap(const storage::Reader& trace, const Communication& all,
                    const std::vector<Communicator>& communicators);

}  // namespace acltape::analyzer::ranks
