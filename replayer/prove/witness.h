// Witnesses: failed trials as they are kept in the table `witness`, and run again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "replayer/prove/trial_runner.h"
#include "replayer/replay.h"
#include "storage/results.h"

namespace acltape::replayer {

// The column `options` of a trial: everything but the plan, which is a row of its own.
//   {"number": 0, "jitter": 7, "ahead": 0, "standard": "bitwise", "step": {...}}
// "step" is as in mixed_step_json.h.
struct WitnessedTrial {
  Trial trial;
  std::string standard = "bitwise";
};
std::string WitnessText(const WitnessedTrial& witnessed);
// `kind` is the column of that name. Throws Error kTrace when the text is none that WitnessText
// gives.
WitnessedTrial ParseWitness(const std::string& kind, const std::string& options);

struct StoredWitness {
  int64_t witness_id = 0;
  storage::Witness row;
  std::string plan_name;  // file name of the plan it was found with; empty: none
};
// All of the trace, in order of witness_id; of those with `witness_id` other than 0, that one
// alone.
std::vector<StoredWitness> ReadWitnesses(const storage::Reader& trace, int64_t witness_id = 0);

// The plan that a witness was found with, as the trace keeps it; null: none. Throws Error kTrace
// when the trace has lost it.
std::shared_ptr<const ChosenPlan> PlanOfWitness(const storage::Reader& trace,
                                                const StoredWitness& witness);

struct WitnessRun {
  TrialOutcome outcome;
  std::string verdict;  // "equal", "different", "unstable", "error"
  std::string message;
};

// Makes the trial of a witness again, with `plan` (null: none), `repetitions` times more when it
// fails. `kept_bytes` of recorded values stay in memory. The device must not have been opened in
// this process when the witness needs a process (Trial::NeedsProcess).
WitnessRun RunWitness(const storage::Reader& trace, const WitnessedTrial& witnessed,
                      std::shared_ptr<const ChosenPlan> plan, const std::string& device_lib,
                      int repetitions, int64_t kept_bytes = Contents::kKeptBytes);

}  // namespace acltape::replayer
