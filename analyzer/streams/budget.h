// The device resources that captured graphs take, and the limits of each SoC. A capture beyond them
// fails with 207005, 207007, 207008 or 207010.
// Every captured stream takes a stream number until its graph is destroyed (rule LIM-01). It takes
// one more number for each further queue that its entries fill (CAP-04). A kernel or a record is
// one entry; a wait takes four.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/streams/dag.h"

namespace acltape::analyzer::streams {

constexpr int64_t kQueueEntries = 2016;  // entries of one queue
constexpr int64_t kWaitEntries = 4;

// The limits of a device. Streams and events are those that the vendor publishes for the product
// class. Default streams, communication and the framework use `reserved_streams` of the streams.
struct SocLimits {
  std::string_view name;
  std::string_view product;
  int64_t streams = 0;
  int64_t reserved_streams = 0;
  int64_t events = 0;
  int64_t models = 0;
  int64_t usable_streams() const { return streams - reserved_streams; }
};
// Finds limits by name, such as "Ascend910B1": the longest row whose name begins it. Returns null
// for an unknown name.
const SocLimits* FindSoc(std::string_view name);
// Finds limits as FindSoc does. For an unknown name it throws Error kUsage, which lists the known
// names.
const SocLimits& NeedSoc(std::string_view name);

// The entries that one captured stream stores.
struct StreamLoad {
  int64_t tasks = 0;
  int64_t records = 0;
  int64_t waits = 0;
  int64_t entries() const { return tasks + records + kWaitEntries * waits; }
  // The number of stream numbers that it takes: at least one.
  int64_t numbers() const;
};

// The resources that one graph takes.
struct GraphLoad {
  std::vector<StreamLoad> streams;
  int64_t events = 0;
  int64_t stream_numbers() const;
  int64_t entries() const;
};

// The load of a captured region. `tasks_of` gives the device tasks of each node. 0 means that the
// values of the node are uploaded; an empty span means one task each. Each fork from the origin and
// each join to it counts as a record, a wait and an event.
GraphLoad LoadOf(const StreamAssignment& assignment, std::span<const int32_t> tasks_of);

// The number of graphs, captured in this order and kept, that fit on a device. The device has
// `streams` stream numbers free and can hold `models` more graphs. The capture of the next graph
// fails.
struct GraphsFit {
  int64_t graphs = 0;
  int64_t stream_numbers = 0;  // stream numbers that these graphs take
  // True if the limit of models ended the count (207010). If it is false and not all graphs fit,
  // streams ran out (207005).
  bool models_ran_out = false;
};
GraphsFit GraphsThatFit(std::span<const GraphLoad> graphs, int64_t streams, int64_t models);

}  // namespace acltape::analyzer::streams
