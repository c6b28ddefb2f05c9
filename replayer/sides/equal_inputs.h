// Executes exactly one call on both sides with the same inputs: is it the call that differs, or
// only what becomes of it?
//
// All other calls run on the good side, so that the call has the good side's inputs on both. What
// is compared is its own results, right behind it. An element is bad when the call gives other
// results on the bad side in every execution, unstable when a side does not agree with itself.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "replayer/sides/sides_experiment.h"

namespace acltape::replayer {

class EqualInputs final : public Experiment {
 public:
  // `places` as for SidesExperiment. The mixed step and the sides must outlive it.
  EqualInputs(const MixedStep& step, std::array<CallSide*, 2> sides,
              const EagerStepOptions& options);

  size_t size() const override { return options_.places.size(); }
  std::string Describe(size_t element) const override;
  // Of one element. Evidence: {"sentence": how they differ}, or {"error": why a side failed}.
  Outcome Try(const ElementSet& altered) override;
  std::string Command(const ElementSet& altered) const override {
    return CommandFor(step_, options_, altered);
  }

  // Every result of one step, executed so often on the good side alone.
  std::vector<StepDigests> GoodRounds(int rounds);
  const Script& script() const { return run_.script(); }

 private:
  // The results of the call at a place, by output.
  struct Results {
    std::map<int, std::string> digests;
    std::map<int, std::vector<uint8_t>> contents;  // of the first execution
  };
  Results RunCall(size_t place, int side, bool contents);

  const MixedStep& step_;
  const EagerStepOptions options_;
  SidedRun run_;
};

}  // namespace acltape::replayer
