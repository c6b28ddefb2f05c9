// Finds differences between runs of one reference. Such a difference is noise, and not a mismatch
// of the run that is judged.
//
// First the same eager program runs N times. A result that is not the same in all runs is flaky;
// its usual content is the most frequent one. If a result differs in a run although the inputs of
// its call do not, the call itself deviates in this run. Deviations count for the operator of the
// call, because kernels are flaky and not places in a program. A kernel that deviates once in a
// hundred executions may not have deviated at the place that is judged. The spread of an operator
// is the greatest distance of its deviations from the usual content, for each metric.
//
// A difference of the judged run is noise in three cases: a reference run had exactly that content;
// an input of the call already differs by noise; or the operator is flaky and the difference is at
// most kHeadroom times its spread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/metrics/metrics.h"
#include "analyzer/program/program.h"
#include "replayer/values/contents.h"
#include "replayer/values/replay_options.h"
#include "replayer/values/replay_report.h"

namespace acltape::replayer {

// The flakiness of one result in repeated runs. Results are digests or other texts.
struct Flakiness {
  int runs = 0;
  // Runs with another result than the usual one.
  int deviating = 0;
  std::string usual;
  bool flaky() const { return deviating > 0; }
  double rate() const { return runs == 0 ? 0 : static_cast<double>(deviating) / runs; }
};
Flakiness FlakinessOf(const std::vector<std::string>& results);

class NoiseFloor {
 public:
  // A factor for the spread, because a few samples show less than the whole spread.
  static constexpr double kHeadroom = 2;
  // Most bytes of contents of the first run that are kept. A content is kept if the recording has a
  // different one.
  static constexpr int64_t kKeptBytes = int64_t{256} << 20;

  using GetPayload = std::function<Bytes(const std::string& digest)>;
  // If `carried` is true, calls read the results of earlier calls. Otherwise they read recorded
  // values, and every deviation is the call's own. The program must outlive the object.
  NoiseFloor(const analyzer::Program& program, bool carried, GetPayload get_payload);

  // These are called for the reference runs, one run after the other. `packed` holds the elements
  // in the order of the digest.
  void BeginReference();
  void Observe(int64_t leaf, int write, const std::string& digest, const uint8_t* packed,
               int64_t bytes);
  void EndReferences();

  // These are called for the run that is judged, for each result in the order of the program.
  // Explain returns the reason why a difference is noise; empty if it is not. `metrics` may be null
  // if there are no values.
  void BeginJudged(bool carried);
  void NoteAccepted(int64_t leaf);
  std::string Explain(int64_t leaf, int write, const std::string& digest,
                      const analyzer::metrics::TensorMetrics* metrics);

  int runs() const { return runs_; }
  const std::vector<FlakyOperator>& flaky() const { return flaky_; }

 private:
  using Key = std::pair<int64_t, int>;
  struct Result {
    std::vector<std::string> digests;  // by run
    Bytes first;                       // content of the first run, where it is kept
    std::string usual;
    std::map<int, analyzer::metrics::TensorMetrics> spread;  // by run: against the first
    const std::string& DigestOf(int run) const { return digests.at(static_cast<size_t>(run)); }
  };
  using Results = std::map<Key, Result>;
  std::vector<int64_t> Producers(int64_t leaf) const;
  const analyzer::metrics::TensorMetrics* SpreadOf(const Result& result, int run) const;
  void AddLeaf(Results::iterator first, Results::iterator end,
               std::vector<std::set<int64_t>>& deviating,
               std::map<std::string, FlakyOperator>& operators);
  void AddSpread(const Result& result, int run, FlakyOperator& flaky) const;

  const analyzer::Program& program_;
  bool carried_;
  GetPayload get_payload_;
  int runs_ = 0;
  int64_t kept_bytes_ = 0;
  Results results_;
  std::vector<FlakyOperator> flaky_;
  std::map<std::string, const FlakyOperator*> by_op_;
  std::set<int64_t> noisy_;  // leaves of the judged run with a result that differs by noise
};

}  // namespace acltape::replayer
