// Eager execution: the leaves run in order, each prepared and launched separately, at the home
// addresses of its buffers.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replayer/leaf_writer.h"
#include "replayer/script_machine.h"

namespace acltape::replayer {

class EagerExecution {
 public:
  EagerExecution(Execution& execution, const HomeMemory& homes);

  // Writes and binds the leaves in [first, end) once, before they run.
  void Bind(int64_t first, int64_t end);
  // Forgets all leaves that were bound, to save memory.
  void Forget();
  // From now on, the recorded results of each leaf that is bound replace the results that it
  // computed. The verifier sees the computed results first (Inputs::kGolden).
  void IsolateLeaves() { isolate_ = true; }
  // Loads the recorded values that [first, end) needs, so that Run does not read the trace.
  void Preload(int64_t first, int64_t end);

  // Runs leaves [first, end), which were bound. If `verifier` is not null, it gets the results, and
  // host reads wait for the device as the program did. Such waits are added to `clock` unless it is
  // null.
  void Run(int64_t first, int64_t end, Verifier* verifier, WaitClock* clock);

 private:
  class Taker;
  void WriteLeaf(const analyzer::Leaf& leaf);
  void WriteResults(int64_t leaf);
  int AddOutput(const analyzer::Leaf& leaf, int write, const analyzer::TensorUse& use);
  Spot SpotOfUse(const analyzer::TensorUse& use) const;
  std::span<const Operation> OperationsOf(int64_t leaf) const;

  Execution& execution_;
  const HomeMemory& homes_;
  LeafMemory memory_;
  Script script_;
  ScriptMachine machine_;
  // The first operation of each bound leaf, and one past its last.
  std::unordered_map<int64_t, std::pair<size_t, size_t>> leaves_;
  bool isolate_ = false;
};

// Returns every buffer that the program uses, with its life in leaves.
std::vector<HomeMemory::Need> EagerNeeds(const analyzer::Program& program);

}  // namespace acltape::replayer
