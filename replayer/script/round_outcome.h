// The outcome of the rounds of an experiment on a step, and the text of a difference.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analyzer/metrics/metrics.h"
#include "replayer/script/experiment.h"

namespace acltape::replayer::script {

// `rounds` holds one digest for each round (DigestOfSteps), and `expected` is the right one. Counts
// the rounds that differ. The outcome is bad if a round differs and all rounds are equal, unstable
// if a round differs and not all are equal.
Outcome OutcomeOfRounds(const std::string& expected, const std::vector<std::string>& rounds);

// Returns the outcome of an experiment without results to compare: it cannot be judged.
Outcome NothingCompared();

// Adds metrics to evidence; side a is the expected result.
void AddMetrics(const analyzer::metrics::TensorMetrics& compared, nlohmann::json& evidence);

}  // namespace acltape::replayer::script
