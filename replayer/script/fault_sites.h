// Finds the calls of a captured step at which faults can be planted (planted_fault.h). It uses what
// the calls read and write, where their results lie, and how the recorded values differ between
// steps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "replayer/script/mixed_step.h"
#include "replayer/script/step_places.h"
#include "replayer/script/step_state.h"

namespace acltape::replayer::script {

// Returns the faults of a kind that can be planted in the step: one for each possible call, with
// the other call named if there is one. A fault changes values. Only an execution tells if the
// change reaches an output.
std::vector<PlantedFault> PossibleFaults(const MixedStep& step, FaultKind kind);

class FaultSites {
 public:
  // Faults must show when step `run_match` is executed with graphs that were captured at
  // `capture_match`.
  FaultSites(Session& session, Execution& execution, const analyzer::StepTemplate& step_class,
             const StepLayout& layout, StepPlaces& places, StepState& state, size_t capture_match,
             size_t run_match);

  // Returns a fault at a place, with `other_call` chosen. Nothing if it cannot be planted there.
  std::optional<PlantedFault> At(FaultKind kind, size_t place) const;
  // Returns an input of a call, as an object, whose value differs between the two steps. A moving
  // operand is preferred. Stale inputs and moved addresses use it.
  std::optional<int> InputThatChanges(size_t place) const;
  // Returns the result of `other`, as an object, that a call at `place` can overwrite too early.
  std::optional<int> ResultToOverwrite(size_t place, size_t other, bool by_output) const;
  // Returns the object of the first result of a place, if the step creates it there. Else nothing.
  std::optional<int> NewResult(size_t place) const;

 private:
  struct Touch {
    int object = 0;
    int64_t first = 0;
    int64_t end = 0;
    bool floating = false;
    bool whole = false;  // the call touches every byte
  };
  struct Call {
    bool capturable = false;
    int region = 0;
    int64_t position = 0;  // in the order of issue over all regions
    std::vector<Touch> reads;
    std::vector<Touch> writes;
  };
  static bool Touches(const std::vector<Touch>& touches, int object);
  std::optional<size_t> Producer(size_t place, const Touch& read) const;
  std::optional<size_t> OtherToWaitFor(size_t place) const;
  std::optional<size_t> OtherToOverwrite(size_t place, bool by_output) const;
  bool ResultDiffers(size_t place) const;
  bool OperandDiffers(int operand) const;
  int64_t LastUse(int object) const;
  bool LivesOn(int object) const;

  Session& session_;
  Execution& execution_;
  const analyzer::StepTemplate& class_;
  const StepLayout& layout_;
  StepPlaces& places_;
  StepState& state_;
  const size_t capture_match_;
  const size_t run_match_;
  std::vector<Call> calls_;                      // by place
  std::map<int, std::vector<size_t>> users_;     // by object: places
  mutable std::map<int, bool> operand_differs_;  // filled when asked for
};

}  // namespace acltape::replayer::script
