// Eager execution: every leaf in order, each prepared and launched on its own, at the home
// addresses of its buffers.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "replayer/execution.h"

namespace acltape::replayer {

// What a pass over leaves spends waiting for the device (host reads).
struct WaitClock {
  int64_t waited_ns = 0;
};

int64_t NowNs();  // CLOCK_MONOTONIC

class EagerExecution {
 public:
  EagerExecution(Execution& execution, const HomeMemory& homes);

  // Binds the active leaves among [first, end) once, ahead of running them.
  void Bind(int64_t first, int64_t end);
  // From now on the recorded results of a leaf take the place of those that it computed, once these
  // have been given to the verifier (Inputs::kGolden).
  void IsolateLeaves() { isolate_ = true; }
  // Loads the recorded values that [first, end) needs, so that Run reads no trace.
  void Preload(int64_t first, int64_t end);

  // Runs leaves [first, end). Results go to `verifier` unless it is null; host reads then wait for
  // the device as the program did, and the wait is added to `clock` unless that is null.
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

// Every buffer that the program touches, with its life in leaves.
std::vector<HomeMemory::Need> EagerNeeds(const analyzer::Program& program);

}  // namespace acltape::replayer
