// The recording as the good side: are the results of these calls the recorded ones when they are
// executed, while all others give their recorded results?
//
// Calls that are executed get recorded inputs unless an executed call wrote them. Every result of
// an executed call is compared: one that only a call reads which is not executed would not be seen
// otherwise.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "replayer/sides/sides_experiment.h"

namespace acltape::replayer {

class RecordedExperiment final : public Experiment {
 public:
  // Executes on `bad`, on the device of the session when it is null. Both must outlive it.
  RecordedExperiment(const MixedStep& step, CallSide* bad, EagerStepOptions options);

  size_t size() const override { return options_.places.size(); }
  std::string Describe(size_t element) const override;
  // With nothing altered nothing is executed. Throws Error kTrace when the trace lacks a result.
  Outcome Try(const ElementSet& altered) override;
  std::string Command(const ElementSet& altered) const override {
    return CommandFor(step_, options_, altered);
  }

 private:
  Script ScriptFor(const ElementSet& altered) const;
  Round RecordedRound(const Script& script);
  std::vector<uint8_t> RecordedRowMajor(const ScriptOutput& output) const;
  std::string Sentence(const Script& script, const FirstDifference& difference);
  const std::string& RecordedDigest(const ScriptOutput& output);

  const MixedStep& step_;
  CallSide* const bad_;
  const EagerStepOptions options_;
  std::map<std::pair<int64_t, int>, std::string> digests_;  // by leaf and write
};

}  // namespace acltape::replayer
