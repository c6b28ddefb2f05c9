// Witnesses are failed trials that are stored in the table `witness` and can be run again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "replayer/prove/trial_runner.h"
#include "replayer/replay.h"
#include "storage/results.h"

namespace acltape::replayer::prove {

// The column `options` holds everything about a trial except the plan, which has its own row:
//   {"number": 0, "jitter": 7, "ahead": 0, "standard": "bitwise", "step": {...}}
// mixed_step_json.h describes "step".
struct WitnessedTrial {
  Trial trial;
  std::string standard = "bitwise";
};
std::string WitnessText(const WitnessedTrial& witnessed);
// `kind` is the column `kind`. Throws Error kTrace if WitnessText cannot have written the text.
WitnessedTrial ParseWitness(const std::string& kind, const std::string& options);

struct StoredWitness {
  int64_t witness_id = 0;
  storage::Witness row;
  std::string plan_name;  // file name of the plan it was found with; empty: none
};
// Returns the witnesses of the trace, in order of witness_id. If `witness_id` is not 0, returns
// only that one.
std::vector<StoredWitness> ReadWitnesses(const storage::Reader& trace, int64_t witness_id = 0);

// Returns the plan with which a witness was found, as the trace stores it; null if there was none.
// Throws Error kTrace if the trace does not hold the plan any more.
std::shared_ptr<const ChosenPlan> PlanOfWitness(const storage::Reader& trace,
                                                const StoredWitness& witness);

struct WitnessRun {
  TrialOutcome outcome;
  analyzer::Coverage coverage;  // how much of the step the compared outputs tell of
  // "equal", "different", "unstable", "error", "not compared", "not known"
  std::string verdict;
  std::string message;
};

// Makes the trial of a witness again, with `plan` (null: none). If it fails, makes it `repetitions`
// more times. At most `kept_bytes` of recorded values stay in memory between uses. If the witness
// needs a process (Trial::NeedsProcess), the device must not have been opened in this process
// before.
WitnessRun RunWitness(const storage::Reader& trace, const WitnessedTrial& witnessed,
                      std::shared_ptr<const ChosenPlan> plan, const std::string& device_lib,
                      int repetitions, int64_t kept_bytes = Contents::kKeptBytes);

}  // namespace acltape::replayer::prove
