// Makes trials on a device and compares what they compute with the reference: the same steps with
// nothing captured, on the same device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/metrics/standard.h"
#include "replayer/prove/trial.h"
#include "replayer/script/run_script.h"
#include "replayer/script/value_store.h"

namespace acltape::replayer {

// An output that differed from the reference.
struct TrialDifference {
  int64_t call_id = 0;  // in the step that was executed
  int position = 0;     // of the argument
  std::string op;
  std::string output;  // name of the argument
  int64_t step = 0;    // as numbered in the trace
  int execution = 0;   // of the trial, from 0
  std::string how;     // "3 of 64 elements, first [7]: eager 0.5, captured nan"
};

// A trial that failed, all runs of it together.
struct TrialFailure {
  Trial trial;
  int runs = 0;
  int failed_runs = 0;
  int code = 0;           // ACL error code that ended the first failed run; 0: none
  std::string error;      // its message; empty: the run gave other results
  int64_t differing = 0;  // outputs, in the first run that failed
  TrialDifference first;  // of those; nothing in it when the run ended with an error
  std::string message;    // one sentence

  // "different", "unstable" when only some runs failed, "error": the column `verdict` of witness.
  std::string Verdict() const;
};

struct TrialOutcome {
  int64_t compared = 0;  // outputs, in the first run
  std::optional<TrialFailure> failure;
};

// An output on which runs of the reference disagree, so that nothing can be held against it.
struct FlakyOutput {
  int64_t call_id = 0;
  std::string op;
  std::string output;
  int64_t step = 0;  // as numbered in the trace
  int runs = 0;      // of the reference
  int other = 0;     // of those, that gave another content than the most frequent one
};

class TrialRunner {
 public:
  // `reference_runs`: of each step before its first trial, at least 2. All references must outlive
  // the runner.
  TrialRunner(Session& session, const MixedStep& mixed, const analyzer::Standard& standard,
              int reference_runs);

  // Runs the trial; once it has failed, `repetitions` times more. Throws Error kUsage and kTrace as
  // MixedStep::Build does.
  TrialOutcome Run(const Trial& trial, int repetitions);

  // On which the references that were needed so far disagree, in order of call.
  std::vector<FlakyOutput> Flaky() const;

 private:
  using OutputKey = std::pair<int64_t, int>;  // index of the leaf, index in LeafUses::writes
  struct Content {
    storage::DType dtype = storage::DType::kFloat32;
    std::string digest;
    bool kept = false;  // in OneRun::values; else there were too many
  };
  struct Reference {
    int runs = 0;
    std::map<OutputKey, std::map<std::string, int>> digests;  // with the runs that gave them
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
    std::shared_ptr<ValueStore> values = std::make_shared<ValueStore>();
    std::vector<Suspect> suspects;             // in order of execution, then as observed
    std::vector<TrialDifference> differences;  // those of them that count
    std::string fingerprint;                   // of the suspects: equal for equal contents
    bool failed() const { return !error.empty() || !differences.empty(); }
  };

  OneRun RunOnce(const Trial& trial);
  void Judge(OneRun& run);
  const Reference& ReferenceOf(size_t match, int runs);
  std::map<OutputKey, Content> ReferenceContents(size_t match, const std::set<OutputKey>& wanted,
                                                 ValueStore& values);
  bool IsFlaky(size_t match, const OutputKey& key) const;
  TrialDifference Name(const Suspect& suspect) const;
  std::string Sentence(const TrialFailure& failure) const;
  Script BuildReference(size_t match) const;

  Session& session_;
  const MixedStep& mixed_;
  const analyzer::Standard& standard_;
  const int reference_runs_;
  std::map<size_t, Reference> references_;  // by match
};

}  // namespace acltape::replayer
