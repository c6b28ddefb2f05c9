// Where in a captured step faults can be planted (planted_fault.h), from what its calls read and
// write, where their results lie and how the recorded values differ between steps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "replayer/recorded_content.h"
#include "replayer/script/mixed_step.h"
#include "replayer/script/step_places.h"

namespace acltape::replayer {

// Faults of a kind that can be planted in the step, one for each call at which that is possible,
// the other call named where there is one. A fault changes values; whether that reaches an output
// that is looked at, only an execution tells (step_experiment.h: IsVisible).
std::vector<PlantedFault> PossibleFaults(const MixedStep& step, FaultKind kind);

class FaultSites {
 public:
  // Faults are to show in executions of step `run_match` with graphs captured at `capture_match`.
  FaultSites(Session& session, Execution& execution, const analyzer::StepTemplate& step_class,
             const StepLayout& layout, StepPlaces& places, RecordedContent& state,
             size_t capture_match, size_t run_match);

  // A fault at a place, with `other_call` chosen; nothing when it cannot be planted there.
  std::optional<PlantedFault> At(FaultKind kind, size_t place) const;
  // The input of a call that stale inputs and moved addresses are about: an object.
  std::optional<int> InputThatChanges(size_t place) const;
  // The result of `other` that a call at `place` can be made to overwrite: an object.
  std::optional<int> ResultToOverwrite(size_t place, size_t other, bool by_output) const;
  // The object of the first result of a place that the step makes anew there; nothing when it has
  // none.
  std::optional<int> NewResult(size_t place) const;

 private:
  struct Touch {
    int object = 0;
    int64_t first = 0;
    int64_t end = 0;
    bool floating = false;
    bool whole = false;  // every byte in between
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
  RecordedContent& state_;
  const size_t capture_match_;
  const size_t run_match_;
  std::vector<Call> calls_;                      // by place
  std::map<int, std::vector<size_t>> users_;     // by object: places
  mutable std::map<int, bool> operand_differs_;  // as far as asked for
};

}  // namespace acltape::replayer
