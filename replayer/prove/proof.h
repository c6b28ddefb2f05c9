// The proof harness. It tests if a plan, or a plain capture of the longest regions, holds in all
// the ways in which a captured step may be used.
//
// Trials of every kind (trial.h) are made on the device and compared with the same steps executed
// with nothing captured. A failed trial becomes a finding, and a witness that can be run again by
// its number. A kind without failures becomes a finding that says how much was tried.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "meaning/command_change.h"
#include "replayer/prove/trial_runner.h"
#include "replayer/replay.h"

namespace acltape::replayer::prove {

// The results of the trials of one kind.
struct KindTally {
  TrialKind kind = TrialKind::kPlain;
  int64_t trials = 0;    // made
  int64_t left_out = 0;  // trials not made
  int64_t compared = 0;  // outputs
  int64_t failures = 0;  // trials
  std::string note;      // the reason if some or all were left out
};

// A failed trial, with the command that runs it again.
struct ProofFailure {
  TrialFailure failure;
  int64_t witness_id = 0;  // 0: no witness was stored
  std::string command;
};

struct ProofReport {
  std::string device;
  int64_t step = 0;    // template step, as numbered in the trace
  int64_t steps = 0;   // steps of its class
  int64_t graphs = 0;  // graphs that a step executes
  std::vector<KindTally> kinds;
  std::vector<ProofFailure> failures;
  std::vector<FlakyOutput> flaky;
  // Says what the outputs of the tried steps tell of. Those on which eager runs disagree tell of
  // nothing.
  analyzer::Coverage coverage;
  bool out_of_time = false;

  int64_t trials() const;
  bool SawTooLittle() const { return failures.empty() && coverage.TooLittle(); }
  int ExitCode() const {
    if (SawTooLittle()) return static_cast<int>(ErrorKind::kCannotJudge);
    return failures.empty() ? 0 : 1;
  }
};

// The result of a trial in another process.
struct RemoteTrial {
  int64_t compared = 0;
  std::optional<TrialFailure> failure;
};

struct ProofOptions {
  std::shared_ptr<const ChosenPlan> plan;     // null: the longest regions, each on one stream
  std::vector<TrialKind> kinds;               // empty: all
  int trials = 4;                             // trials of a kind
  int64_t kept_bytes = Contents::kKeptBytes;  // limit of recorded values in memory
  uint64_t seed = 1;
  double budget_s = 0;  // seconds after which no trial begins; 0: no limit
  std::string standard = "bitwise";
  std::string device_lib;
  int repetitions = 3;     // repetitions of each trial that failed
  int reference_runs = 2;  // reference runs of each step, before its first trial
  // Faults that are planted in every trial, to test that they are found.
  std::vector<script::PlantedFault> faults;
  // Makes a trial in a new process, in which the device opens with the settings of the trial. It is
  // called for trials that need a process (Trial::NeedsProcess). If it is empty, such a trial is
  // made here, with whatever ACLTAPE_SOFT_JITTER and ACLTAPE_SOFT_ORDER this process has.
  std::function<RemoteTrial(const Trial& trial)> elsewhere;
  // An `acltape prove` of this plan, for the command that makes a trial again.
  meaning::GivenCommand command;
  // Called after each trial with the number made so far and the total.
  std::function<void(int64_t done, int64_t total)> progress;
};

// Throws Error kUsage if the trace is not of the aten level or has no two equal steps, kTrace if it
// lacks contents, kDevice if the device fails outside of a trial. If `results` is null, nothing is
// written.
ProofReport ProvePlan(const storage::Reader& trace, const ProofOptions& options,
                      storage::Results* results);

}  // namespace acltape::replayer::prove
