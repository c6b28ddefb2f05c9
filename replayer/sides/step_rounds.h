// Rounds of an experiment on a step. A round executes all steps of the experiment once, and is
// compared with a reference.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "replayer/script/experiment.h"
#include "replayer/script/mixed_step.h"
#include "replayer/script/run_script.h"
#include "replayer/script/step_digests.h"

namespace acltape::replayer::sides {

// The digests of one round, by observation of the script.
using Round = std::vector<script::StepDigests>;
Round RoundOf(std::vector<script::Observed> observed);

// The first output that differs from the reference.
struct FirstDifference {
  int round = -1;
  int observation = 0;
  int output = 0;               // in Script::outputs
  std::vector<uint8_t> packed;  // its content
};

// Counts the rounds that differ. The outcome is bad if a round differs and all rounds are equal,
// unstable if a round differs and not all are equal.
script::Outcome JudgeRounds(const Round& reference, const std::vector<Round>& rounds);

// Returns the digest that an output should have.
const std::string& DigestIn(const Round& reference, const Script& script, int observation,
                            int output);

// Returns a JSON object that names the output that differs and its call. If the trace holds the
// reference's value, it also says how the output differs.
nlohmann::json DifferenceJson(const script::MixedStep& step, const Script& script,
                              const Round& reference, const FirstDifference& difference);

// Returns a text such as "3 of 96 elements differ, the first [5]: 1.25 and 1.5, at most 4 ULP".
std::string DescribeDifference(const storage::Layout& layout, const std::vector<uint8_t>& good,
                               const std::vector<uint8_t>& bad);

}  // namespace acltape::replayer::sides
