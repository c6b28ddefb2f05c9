// What the rounds of an experiment on a step come to, and how a difference is written down.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analyzer/metrics/metrics.h"
#include "replayer/bisect/experiment.h"

namespace acltape::replayer {

// Each round as one digest (DigestOfSteps), and the one that it should have. Counts the rounds that
// differ; bad when all do alike, unstable when not all are alike.
Outcome OutcomeOfRounds(const std::string& expected, const std::vector<std::string>& rounds);

// The metrics that evidence holds; a is what was expected.
void AddMetrics(const analyzer::TensorMetrics& compared, nlohmann::json& evidence);

}  // namespace acltape::replayer
