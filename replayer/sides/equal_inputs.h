// Executes one call on both sides with the same inputs. This tells if the call's own results
// differ, or only the results of later calls.
//
// All other calls run on the good side, so that the call has the same inputs on both sides. Only
// its own results are compared, right after it. An element is bad if the call gives other results
// on the bad side, and unstable if a side does not agree with itself.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "replayer/sides/sides_experiment.h"

namespace acltape::replayer::sides {

class EqualInputs final : public script::Experiment {
 public:
  // `places` is as for SidesExperiment. The mixed step and the sides must outlive the object.
  EqualInputs(const script::MixedStep& step, std::array<CallSide*, 2> sides,
              const EagerStepOptions& options);

  size_t size() const override { return options_.places.size(); }
  std::string Describe(size_t element) const override;
  // `altered` must hold one element. The evidence is {"sentence": ...} if results differ, or
  // {"error": ...} if a side failed.
  script::Outcome Try(const script::ElementSet& altered) override;
  std::string Command(const script::ElementSet& altered) const override {
    return CommandFor(step_, options_, altered);
  }

  // Executes a step `rounds` times on the good side alone and returns the digests of all its
  // results.
  std::vector<script::StepDigests> GoodRounds(int rounds);
  const Script& script() const { return run_.script(); }

 private:
  // The results of the call at a place, by output.
  struct Results {
    std::map<int, std::string> digests;
    std::map<int, std::vector<uint8_t>> contents;  // contents in the first execution
  };
  Results RunCall(size_t place, int side, bool contents);

  const script::MixedStep& step_;
  const EagerStepOptions options_;
  SidedRun run_;
};

}  // namespace acltape::replayer::sides
