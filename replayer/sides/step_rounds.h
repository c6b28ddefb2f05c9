// Rounds of an experiment on a step, each of all the steps that it executes, held against a
// reference.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "replayer/bisect/experiment.h"
#include "replayer/script/mixed_step.h"
#include "replayer/script/run_script.h"
#include "replayer/script/step_digests.h"

namespace acltape::replayer {

// By observation of the script.
using Round = std::vector<StepDigests>;
Round RoundOf(std::vector<Observed> observed);

// The first output that is not as the reference.
struct FirstDifference {
  int round = -1;
  int observation = 0;
  int output = 0;               // in Script::outputs
  std::vector<uint8_t> packed;  // what it holds
};

// Counts the rounds that differ; bad when all do alike, unstable when not all are alike.
Outcome JudgeRounds(const Round& reference, const std::vector<Round>& rounds);

// The digest that an output should have.
const std::string& DigestIn(const Round& reference, const Script& script, int observation,
                            int output);

// A JSON object: which output of which call differs, and, when the trace holds the value that the
// reference has, how.
nlohmann::json DifferenceJson(const MixedStep& step, const Script& script, const Round& reference,
                              const FirstDifference& difference);

// "3 of 96 elements differ, the first [5]: 1.25 and 1.5, at most 4 ULP"
std::string DescribeDifference(const storage::Layout& layout, const std::vector<uint8_t>& good,
                               const std::vector<uint8_t>& bad);

}  // namespace acltape::replayer
