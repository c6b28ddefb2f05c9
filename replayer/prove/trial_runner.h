// Makes trials on a device. It compares their results with a reference: the same steps on the same
// device with nothing captured.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/calls/coverage.h"
#include "analyzer/metrics/standard.h"
#include "replayer/prove/trial.h"
#include "replayer/script/run_script.h"
#include "replayer/script/value_store.h"

namespace acltape::replayer::prove {

// An output that differed from the reference.
struct TrialDifference {
  int64_t call_id = 0;  // in the step that was executed
  int position = 0;     // position of the argument
  std::string op;
  std::string output;  // name of the argument
  int64_t step = 0;    // as numbered in the trace
  int execution = 0;   // execution of the trial, from 0
  std::string how;     // "3 of 64 elements, first [7]: eager 0.5, captured nan"
};

// A trial that failed. It summarises all runs of the trial.
struct TrialFailure {
  Trial trial;
  int runs = 0;
  int failed_runs = 0;
  int code = 0;           // ACL error code that ended the first failed run; 0: none
  std::string error;      // its message; empty: results differ
  int64_t differing = 0;  // outputs that differ in the first failed run
  // The first of these outputs. Not set if the run ended with an error.
  TrialDifference first;
  std::string message;  // one sentence

  // Returns the column `verdict` of the table witness: "different", "unstable" if only some runs
  // failed, or "error".
  std::string Verdict() const;
};

struct TrialOutcome {
  int64_t compared = 0;  // outputs, in the first run
  std::optional<TrialFailure> failure;
};

// An output that differs between runs of the reference. It cannot be compared with anything.
struct FlakyOutput {
  int64_t call_id = 0;
  std::string op;
  std::string output;
  int64_t step = 0;  // as numbered in the trace
  int runs = 0;      // runs of the reference
  // Runs that gave another content than the most frequent one.
  int other = 0;
};

class TrialRunner {
 public:
  // `reference_runs` is the number of reference runs of each step before its first trial, at least
  // 2. All references must outlive the runner.
  TrialRunner(Session& session, const script::MixedStep& mixed,
              const analyzer::metrics::Standard& standard, int reference_runs);

  // Runs the trial. If it fails, runs it `repetitions` more times. Throws Error kUsage and kTrace
  // as MixedStep::Build does.
  TrialOutcome Run(const Trial& trial, int repetitions);

  // Returns the outputs on which the references made so far disagree, in order of call.
  std::vector<FlakyOutput> Flaky() const;

  // Returns how much of a step the outputs tell of on which the references agree: of the steps that
  // were tried here, else of the first one.
  analyzer::Coverage Coverage() const;

 private:
  using OutputKey = std::pair<int64_t, int>;  // index of the leaf, index in LeafUses::writes
  struct Content {
    storage::DType dtype = storage::DType::kFloat32;
    std::string digest;
    bool kept = false;  // OneRun::values holds it; false: there were too many
  };
  struct Reference {
    int runs = 0;
    std::map<OutputKey, std::map<std::string, int>> digests;  // digest to number of runs
  };
  // An output of a run with another digest than the reference's.
  struct Suspect {
    size_t match = 0;
    int execution = 0;
    OutputKey key;
    Content content;
  };
  struct OneRun {
    int64_t compared = 0;
    int code = 0;
    std::string error;
    std::shared_ptr<script::ValueStore> values = std::make_shared<script::ValueStore>();
    std::vector<Suspect> suspects;             // in order of execution, then as observed
    std::vector<TrialDifference> differences;  // those suspects that really differ
    std::string fingerprint;                   // equal if the suspects have equal contents
    bool failed() const { return !error.empty() || !differences.empty(); }
  };

  OneRun RunOnce(const Trial& trial);
  void Judge(OneRun& run);
  const Reference& ReferenceOf(size_t match, int runs);
  std::map<OutputKey, Content> ReferenceContents(size_t match, const std::set<OutputKey>& wanted,
                                                 script::ValueStore& values);
  bool IsFlaky(size_t match, const OutputKey& key) const;
  TrialDifference Name(const Suspect& suspect) const;
  std::string Sentence(const TrialFailure& failure) const;
  Script BuildReference(size_t match) const;

  Session& session_;
  const script::MixedStep& mixed_;
  const analyzer::metrics::Standard& standard_;
  const int reference_runs_;
  std::map<size_t, Reference> references_;  // by match
};

}  // namespace acltape::replayer::prove
