#include "replayer/bisect/captured_order.h"

#include <algorithm>

namespace acltape::replayer::bisect {

CapturedOrder::CapturedOrder(const Script& script) {
  const auto streams = static_cast<size_t>(script.streams);
  std::vector<Clock> clocks;
  std::map<int, Clock> events;
  // Graph that is being captured; -1: none.
  int graph = -1;
  for (const Operation& operation : script.operations) {
    if (const auto* begin = std::get_if<BeginCapture>(&operation)) {
      graph = begin->graph;
      clocks.assign(streams, Clock(streams, 0));
      events.clear();
    } else if (std::holds_alternative<EndCapture>(operation)) {
      graph = -1;
    } else if (graph < 0) {
      continue;
    } else if (const auto* record = std::get_if<RecordEvent>(&operation)) {
      events[record->event] = clocks.at(record->stream);
    } else if (const auto* wait = std::get_if<WaitEvent>(&operation)) {
      const auto recorded = events.find(wait->event);
      if (recorded == events.end()) continue;
      Clock& clock = clocks.at(wait->stream);
      for (size_t s = 0; s < streams; ++s) clock[s] = std::max(clock[s], recorded->second[s]);
    } else if (const auto* launch = std::get_if<Launch>(&operation)) {
      Clock& clock = clocks.at(launch->stream);
      const auto [entry, is_new] = calls_.try_emplace(script.calls[launch->call].call_id);
      Calls& call = entry->second;
      if (is_new) {
        call.graph = graph;
        call.before_first = clock;
      }
      if (call.graph != graph) continue;  // the call was captured before
      call.stream = launch->stream;
      call.number = ++clock[launch->stream];
    }
  }
}

bool CapturedOrder::Before(int64_t a, int64_t b) const {
  const auto first = calls_.find(a);
  const auto second = calls_.find(b);
  if (first == calls_.end() || second == calls_.end()) return false;
  if (first->second.graph != second->second.graph) {
    return first->second.graph < second->second.graph;
  }
  return second->second.before_first[first->second.stream] >= first->second.number;
}

}  // namespace acltape::replayer::bisect
