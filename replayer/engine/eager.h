// Eager execution: the leaves run in order, each prepared and launched separately, at the home
// addresses of its buffers.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "replayer/engine/leaf_writer.h"
#include "replayer/engine/script_machine.h"

namespace acltape::replayer {

class EagerExecution {
 public:
  EagerExecution(Execution& execution, const HomeMemory& homes);

  // Writes and binds the leaves in [first, end) once, before they run.
  void Bind(int64_t first, int64_t end);
  // Forgets all leaves that were bound, to save memory.
  void Forget();
  // From now on, the recorded results of each leaf that is bound replace the results that it
  // computed. The verifier sees the computed results first (Inputs::kGolden). Results that the
  // trace does not hold stay those that were computed.
  void IsolateLeaves() { isolate_ = true; }
  // Loads the recorded values that [first, end) needs, so that Run does not read the trace.
  void Preload(int64_t first, int64_t end);

  // Runs leaves [first, end), which were bound. If `verifier` is not null, it gets the results, and
  // host reads wait for the device as the program did. Such waits are added to `clock` unless it is
  // null.
  void Run(int64_t first, int64_t end, Verifier* verifier, WaitClock* clock);
  // The two parts of a leaf: its recorded inputs are uploaded, then it runs.
  void UploadInputs(int64_t leaf);
  void RunWithoutInputs(int64_t leaf);

 private:
  void WriteLeaf(const analyzer::Leaf& leaf);
  void WriteResults(int64_t leaf, bool held_only = false);
  int AddOutput(const analyzer::Leaf& leaf, int write, const analyzer::TensorUse& use);
  Spot SpotOfUse(const analyzer::TensorUse& use) const;
  // The operations of a bound leaf: [first, work) upload its inputs, [work, end) run it.
  struct Range {
    size_t first = 0;
    size_t work = 0;
    size_t end = 0;
  };
  std::span<const Operation> Operations(size_t first, size_t end) const {
    return std::span<const Operation>(script_.operations).subspan(first, end - first);
  }
  void WriteInputs(const analyzer::Leaf& leaf);

  Execution& execution_;
  const HomeMemory& homes_;
  LeafMemory memory_;
  Script script_;
  ScriptMachine machine_;
  std::unordered_map<int64_t, Range> leaves_;
  bool isolate_ = false;
};

// Returns every buffer that the program uses, with its life in leaves.
std::vector<HomeMemory::Need> EagerNeeds(const analyzer::Program& program);

}  // namespace acltape::replayer
