// An experiment with the recording as the good side. It asks if calls give their recorded results
// when they are executed, while all other calls give their recorded results.
//
// Executed calls get recorded inputs, unless another executed call wrote them. Calls whose results
// the recording lacks, such as those inside a graph of the program, are always executed and never
// an element. Every recorded result of an executed call is compared. Otherwise an error would be
// missed if only calls that are not executed read the result.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/calls/coverage.h"
#include "replayer/sides/sides_experiment.h"

namespace acltape::replayer::sides {

class RecordedExperiment final : public script::Experiment {
 public:
  // Returns the places of calls that are executed and whose results are recorded, in each of the
  // steps. Throws Error kTrace if there are none.
  static std::vector<size_t> JudgedPlaces(const script::MixedStep& step,
                                          const std::vector<size_t>& run_matches);
  // Executes on `bad`, or on the device of the session if `bad` is null. Both must outlive the
  // object.
  RecordedExperiment(const script::MixedStep& step, CallSide* bad, EagerStepOptions options);

  size_t size() const override { return options_.places.size(); }
  std::string Describe(size_t element) const override;
  // With nothing altered, nothing is executed. Throws Error kTrace if the trace lacks a result.
  script::Outcome Try(const script::ElementSet& altered) override;
  std::string Command(const script::ElementSet& altered) const override {
    return CommandFor(step_, options_, altered);
  }
  // With everything altered. A recorded result tells of the calls without one that it was made of.
  analyzer::Coverage Coverage() const;

 private:
  Script ScriptFor(const script::ElementSet& altered) const;
  Round RecordedRound(const Script& script);
  // Takes from a round what the recording lacks, so that it is compared with nothing.
  void LeaveOut(const Script& script, Round& round) const;
  bool Holds(const ScriptOutput& output) const;
  std::vector<uint8_t> RecordedRowMajor(const ScriptOutput& output) const;
  std::string Sentence(const Script& script, const FirstDifference& difference);
  const std::string& RecordedDigest(const ScriptOutput& output);

  const script::MixedStep& step_;
  CallSide* const bad_;
  const EagerStepOptions options_;
  std::vector<size_t> unjudged_;  // places that are executed with nothing altered too
  std::map<std::pair<int64_t, int>, std::string> digests_;  // by leaf and write
};

}  // namespace acltape::replayer::sides
