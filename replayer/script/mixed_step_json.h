// Writes mixed steps as JSON, for witnesses, journals and commands that make an experiment again.
//
//   {"captured": "0-41,57", "executed": "all", "places": 120, "capture_match": 0,
//    "run_matches": [1, 3], "plan_updates": true, "disable_tasks": false, "watch": "step",
//    "remedies": ["one_stream"], "stress": {"poison_gaps": true}, "faults": ["wrong_bits@812"]}
//
// Sets are places in the template step; "all" is the empty vector of MixedStepOptions. The plan is
// not included.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "replayer/script/mixed_step.h"

namespace acltape::replayer::script {

nlohmann::json MixedStepJson(const MixedStepOptions& options);
// Throws Error kUsage, one sentence that names the key.
MixedStepOptions ParseMixedStep(const nlohmann::json& json);
// Reads the JSON from a file. Throws Error kUsage, naming the file, also if the file cannot be
// read.
MixedStepOptions ReadMixedStep(const std::string& path);

}  // namespace acltape::replayer::script
