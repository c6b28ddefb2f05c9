// The proof harness: does a plan, or a plain capture of the longest regions, hold when its step is
// captured and executed in all the ways in which it may be in use?
//
// Trials of every kind (trial.h) are made on the device and compared with the same steps run with
// nothing captured. A failed trial becomes a witness, which can be run again by its number, and a
// finding; a kind without a failure becomes a finding that says what was tried.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replayer/prove/trial_runner.h"
#include "replayer/replay.h"

namespace acltape::replayer {

// What trials of one kind came to.
struct KindTally {
  TrialKind kind = TrialKind::kPlain;
  int64_t trials = 0;    // made
  int64_t left_out = 0;  // trials that were not made
  int64_t compared = 0;  // outputs
  int64_t failures = 0;  // trials
  std::string note;      // why there is none, or why some were left out
};

// A failed trial with the way to see it again.
struct ProofFailure {
  TrialFailure failure;
  int64_t witness_id = 0;  // 0: none was kept
  std::string command;
};

struct ProofReport {
  std::string device;
  int64_t step = 0;    // template step, as numbered in the trace
  int64_t steps = 0;   // of its class
  int64_t graphs = 0;  // that a step executes
  std::vector<KindTally> kinds;
  std::vector<ProofFailure> failures;
  std::vector<FlakyOutput> flaky;
  bool out_of_time = false;

  int64_t trials() const;
  int ExitCode() const { return failures.empty() ? 0 : 1; }
};

// A trial as it came out in another process.
struct RemoteTrial {
  int64_t compared = 0;
  std::optional<TrialFailure> failure;
};

struct ProofOptions {
  std::shared_ptr<const ChosenPlan> plan;     // null: the longest regions, each on one stream
  std::vector<TrialKind> kinds;               // empty: all
  int trials = 4;                             // of a kind
  int64_t kept_bytes = Contents::kKeptBytes;  // of recorded values, in memory between uses
  uint64_t seed = 1;
  double budget_s = 0;  // no trial begins later; 0: no limit
  std::string standard = "bitwise";
  std::string device_lib;
  int repetitions = 3;     // of a trial that has failed
  int reference_runs = 2;  // of each step before its first trial
  // Put into every trial on purpose, to see that it is caught.
  std::vector<PlantedFault> faults;
  // Makes a trial that needs a process in one in which the device opens as it asks. Empty: it is
  // made here, as ACLTAPE_SOFT_JITTER and ACLTAPE_SOFT_ORDER ask or as it comes.
  std::function<RemoteTrial(const Trial& trial)> elsewhere;
  // After each trial: how many have been made, of how many.
  std::function<void(int64_t done, int64_t total)> progress;
};

// Throws Error kUsage when the trace is not of the aten level or has no two steps alike, kTrace
// when it lacks contents, kDevice when the device fails outside of a trial. `results` may be null;
// then nothing is written.
ProofReport ProvePlan(const storage::Reader& trace, const ProofOptions& options,
                      storage::Results* results);

}  // namespace acltape::replayer
