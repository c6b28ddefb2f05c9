// Eager execution: the leaves run in order, each prepared and launched separately, at the home
// addresses of its buffers.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "replayer/execution.h"

namespace acltape::replayer {

// The time that a pass over leaves spends in waits for the device (host reads).
struct WaitClock {
  int64_t waited_ns = 0;
};

int64_t NowNs();  // CLOCK_MONOTONIC

class EagerExecution {
 public:
  EagerExecution(Execution& execution, const HomeMemory& homes);

  // Binds the active leaves in [first, end) once, before they run.
  void Bind(int64_t first, int64_t end);
  // From now on, the recorded results of each leaf replace the results that it computed. The
  // verifier sees the computed results first (Inputs::kGolden).
  void IsolateLeaves() { isolate_ = true; }
  // Loads the recorded values that [first, end) needs, so that Run does not read the trace.
  void Preload(int64_t first, int64_t end);

  // Runs leaves [first, end). If `verifier` is not null, it gets the results, and host reads wait
  // for the device as the program did. Such waits are added to `clock` unless it is null.
  void Run(int64_t first, int64_t end, Verifier* verifier, WaitClock* clock);

 private:
  void RunLeaf(const analyzer::Leaf& leaf, Verifier* verifier, WaitClock* clock);

  Execution& execution_;
  const HomeMemory& homes_;
  std::unordered_map<int64_t, BoundLeaf> bound_;
  std::vector<Bytes> preloaded_;
  Block host_value_;
  bool isolate_ = false;
};

// Returns every buffer that the program uses, with its life in leaves.
std::vector<HomeMemory::Need> EagerNeeds(const analyzer::Program& program);

}  // namespace acltape::replayer
