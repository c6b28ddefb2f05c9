// The order of captured calls in a script. Only streams, events and graphs count here, not the
// bytes that the calls touch.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "replayer/engine/script.h"

namespace acltape::replayer::bisect {

class CapturedOrder {
 public:
  explicit CapturedOrder(const Script& script);

  // True if every launch of call `a` ends before any launch of call `b` begins, in the first graph
  // that holds both. Calls of different graphs are ordered by the host, which executes the graphs
  // one after the other. The call ids are those of the launches.
  bool Before(int64_t a, int64_t b) const;

 private:
  // For each stream, the number of launches on it that are certainly done (vector clocks; Fidge
  // 1988, Mattern 1989).
  using Clock = std::vector<int64_t>;
  struct Calls {
    int graph = 0;
    int stream = 0;      // stream of the last launch
    int64_t number = 0;  // number of the last launch on its stream, from 1
    Clock before_first;  // launches that are done when the first launch begins
  };
  std::map<int64_t, Calls> calls_;  // from the first capture of each call
};

}  // namespace acltape::replayer::bisect
