// What differs between runs of one reference, so that it is not called a mismatch of what is
// judged.
//
// N runs of the same eager program come first. A result that is not the same in all of them is
// flaky; its usual content is the most frequent one. A run in which it differs although nothing
// that its call reads did is a deviation of the call itself, and counts for its operator: kernels
// are flaky, not places in a program, and a kernel that deviates once in a hundred executions may
// not have done so at the place that is judged. The spread is how far deviations lie from the usual
// content, by metric.
//
// A difference of the judged run is noise when a reference run had that very content; when what its
// call reads differs by noise already; or when its operator is flaky and the difference is within
// kHeadroom times the spread of the operator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/metrics/metrics.h"
#include "analyzer/program.h"
#include "replayer/contents.h"
#include "replayer/replay.h"

namespace acltape::replayer {

// Of results of repeated runs, as digests or other texts.
struct Flakiness {
  int runs = 0;
  int deviating = 0;  // with another result than the most frequent one; of several the earliest
  std::string usual;
  bool flaky() const { return deviating > 0; }
  double rate() const { return runs == 0 ? 0 : static_cast<double>(deviating) / runs; }
};
Flakiness FlakinessOf(const std::vector<std::string>& results);

class NoiseFloor {
 public:
  // Few samples show less than the whole spread.
  static constexpr double kHeadroom = 2;
  // Contents of the first run that are kept because the recording has others.
  static constexpr int64_t kKeptBytes = int64_t{256} << 20;

  using GetPayload = std::function<Bytes(const std::string& digest)>;
  // `carried`: calls read what earlier ones computed; otherwise recorded values take their place,
  // and every deviation is a call's own. The program must outlive this.
  NoiseFloor(const analyzer::Program& program, bool carried, GetPayload get_payload);

  // The reference runs, one after the other. `packed`: the elements in the order of the digest.
  void BeginReference();
  void Observe(int64_t leaf, int write, const std::string& digest, const uint8_t* packed,
               int64_t bytes);
  void EndReferences();

  // The run that is judged: each result in the order of the program. Explain says why a difference
  // is noise; empty: it is none. `metrics` may be null when no values are there.
  void BeginJudged(bool carried);
  void NoteAccepted(int64_t leaf);
  std::string Explain(int64_t leaf, int write, const std::string& digest,
                      const analyzer::TensorMetrics* metrics);

  int runs() const { return runs_; }
  const std::vector<FlakyOperator>& flaky() const { return flaky_; }

 private:
  using Key = std::pair<int64_t, int>;
  struct Result {
    std::vector<std::string> digests;  // by run
    Bytes first;                       // content of the first run, where it is kept
    std::string usual;
    std::map<int, analyzer::TensorMetrics> spread;  // by run: against the first
    const std::string& DigestOf(int run) const { return digests.at(static_cast<size_t>(run)); }
  };
  using Results = std::map<Key, Result>;
  std::vector<int64_t> Producers(int64_t leaf) const;
  const analyzer::TensorMetrics* SpreadOf(const Result& result, int run) const;
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
