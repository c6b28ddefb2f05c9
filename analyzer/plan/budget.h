// What captured graphs take of a device, and what a SoC has: the arithmetic of capture failure by
// exhaustion (207005, 207007, 207008, 207010).
//
// Every captured stream takes a stream number until its graph is destroyed (rule LIM-01), and one
// more for each further queue that its entries fill (CAP-04). An entry is a kernel or a record; a
// wait takes four.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/streams/dag.h"

namespace acltape::analyzer {

constexpr int64_t kQueueEntries = 2016;  // of one captured stream, before it is continued
constexpr int64_t kWaitEntries = 4;

// The limits of a device. Streams and events are those that the vendor publishes for the product
// class; `reserved_streams` are left to default streams, communication and the framework.
struct SocLimits {
  std::string_view name;
  std::string_view product;
  int64_t streams = 0;
  int64_t reserved_streams = 0;
  int64_t events = 0;
  int64_t models = 0;
  int64_t usable_streams() const { return streams - reserved_streams; }
};
// By name, such as "Ascend910B1"; the longest row whose name begins it. Null when unknown.
const SocLimits* FindSoc(std::string_view name);
// The same; throws Error kUsage, which lists those that are known, when it is not.
const SocLimits& NeedSoc(std::string_view name);

// What one captured stream stores.
struct StreamLoad {
  int64_t tasks = 0;
  int64_t records = 0;
  int64_t waits = 0;
  int64_t entries() const { return tasks + records + kWaitEntries * waits; }
  // Stream numbers that it takes: at least one.
  int64_t numbers() const;
};

// What one graph takes.
struct GraphLoad {
  std::vector<StreamLoad> streams;
  int64_t events = 0;
  int64_t stream_numbers() const;
  int64_t entries() const;
};

// The load of a captured region. `tasks_of` gives the device tasks of each node (0: its values are
// uploaded; empty: one each). Forks from the origin and joins to it are counted: a record and a
// wait each, and an event.
GraphLoad LoadOf(const StreamAssignment& assignment, std::span<const int32_t> tasks_of);

// How many of the graphs, captured in this order and kept, a device takes with `streams` numbers
// free and room for `models` more graphs: the capture of the next one fails.
struct GraphsFit {
  int64_t graphs = 0;
  int64_t stream_numbers = 0;   // that they take
  bool models_ran_out = false;  // 207010; else, when not all fit, streams (207008)
};
GraphsFit GraphsThatFit(std::span<const GraphLoad> graphs, int64_t streams, int64_t models);

}  // namespace acltape::analyzer
