#include "analyzer/streams/budget.h"

#include <algorithm>

#include "storage/error.h"

namespace acltape::analyzer::streams {
namespace {

// The published stream limits of aclrtCreateStream by product class.
constexpr SocLimits kSocs[] = {
    {"Ascend310B", "Atlas 200I/500 A2 inference", 512, 16, 1023, 512},
    {"Ascend310P", "Atlas inference", 1024, 32, 1023, 1024},
    {"Ascend310", "Atlas 200/300/500 inference", 1024, 32, 1023, 1024},
    {"Ascend910B", "Atlas A2 training and inference", 1984, 64, 65536, 2048},
    {"Ascend910_93", "Atlas A3 training and inference", 1984, 64, 65536, 2048},
    {"Ascend910", "Atlas training", 2048, 128, 65536, 2048},
};

}  // namespace

const SocLimits* FindSoc(std::string_view name) {
  const SocLimits* found = nullptr;
  for (const SocLimits& soc : kSocs) {
    if (!name.starts_with(soc.name)) continue;
    if (found == nullptr || found->name.size() < soc.name.size()) found = &soc;
  }
  return found;
}

const SocLimits& NeedSoc(std::string_view name) {
  if (const SocLimits* found = FindSoc(name)) return *found;
  std::string known;
  for (const SocLimits& soc : kSocs) {
    known += (known.empty() ? "" : ", ") + std::string(soc.name);
  }
  throw Error(ErrorKind::kUsage,
              "the limits of '" + std::string(name) + "' are not known; take one of " + known);
}

int64_t StreamLoad::numbers() const {
  return std::max<int64_t>(1, (entries() + kQueueEntries - 1) / kQueueEntries);
}

int64_t GraphLoad::stream_numbers() const {
  int64_t numbers = 0;
  for (const StreamLoad& stream : streams) numbers += stream.numbers();
  return numbers;
}

int64_t GraphLoad::entries() const {
  int64_t entries = 0;
  for (const StreamLoad& stream : streams) entries += stream.entries();
  return entries;
}

GraphLoad LoadOf(const StreamAssignment& assignment, std::span<const int32_t> tasks_of) {
  GraphLoad load;
  load.streams.resize(static_cast<size_t>(assignment.streams));
  load.events = assignment.events;
  std::vector<bool> used(load.streams.size(), false);
  for (const int32_t node : assignment.order) {
    const int32_t stream = assignment.stream_of[node];
    load.streams[stream].tasks += tasks_of.empty() ? 1 : tasks_of[node];
    used[stream] = true;
  }
  // Waits for the same record share that record.
  std::vector<std::pair<int32_t, int32_t>> records;
  for (const StreamWait& wait : assignment.waits) {
    ++load.streams[assignment.stream_of[wait.wait_before]].waits;
    records.emplace_back(wait.record_after, wait.event);
  }
  std::sort(records.begin(), records.end());
  records.erase(std::unique(records.begin(), records.end()), records.end());
  for (const auto& [node, event] : records) ++load.streams[assignment.stream_of[node]].records;
  // Stream 0 is the origin, with or without work. Streams without work are not forked.
  bool forked = false;
  for (size_t s = load.streams.size(); s-- > 1;) {
    if (!used[s]) {
      load.streams.erase(load.streams.begin() + static_cast<std::ptrdiff_t>(s));
      continue;
    }
    forked = true;
    ++load.streams[s].waits;    // the wait of the fork
    ++load.streams[s].records;  // the record of the join
    ++load.streams[0].waits;
    ++load.events;
  }
  if (forked) {
    ++load.streams[0].records;  // the one record of all forks
    ++load.events;
  }
  return load;
}

GraphsFit GraphsThatFit(std::span<const GraphLoad> graphs, int64_t streams, int64_t models) {
  GraphsFit fit;
  for (const GraphLoad& graph : graphs) {
    const int64_t numbers = graph.stream_numbers();
    if (fit.graphs == models) {
      fit.models_ran_out = true;
      break;
    }
    if (fit.stream_numbers + numbers > streams) break;
    fit.stream_numbers += numbers;
    ++fit.graphs;
  }
  return fit;
}

}  // namespace acltape::analyzer::streams
