// Records the outcome of each comparison: counts and the first mismatches in the report, rows in
// the table `comparison`.
#pragma once

#include <cstdint>
#include <string>

#include "analyzer/metrics/standard.h"
#include "replayer/values/replay_options.h"
#include "replayer/values/replay_report.h"
#include "storage/results.h"

namespace acltape::replayer {

// An output that was compared, and the reference it was compared with.
struct ComparedOutput {
  int64_t call_id = 0;
  std::string op;
  int position = 0;  // position of the argument; -1: a whole buffer
  std::string name;
  int64_t step = -1;      // as numbered in the trace
  std::string reference;  // "recorded" or "eager"
};

// The result of one comparison.
struct ComparisonOutcome {
  enum class Verdict { kEqual, kWithin, kNoise, kDifferent };
  Verdict verdict = Verdict::kEqual;
  bool digest_only = false;  // no values were available, only digests
  analyzer::metrics::TensorMetrics metrics;
  std::string reason;
};

class ComparisonLog {
 public:
  ComparisonLog(const ReplayOptions& options, ReplayReport& report);

  // Writes rows to `results` under `run_id`. Null: no rows are written.
  void WriteTo(storage::Results* results, int64_t run_id) {
    results_ = results;
    run_id_ = run_id;
  }

  // Judges two contents with different digests by the standard of the options.
  ComparisonOutcome Judge(const std::string& op, storage::DType dtype, const uint8_t* expected,
                          const uint8_t* actual, int64_t elements) const;
  // Returns the outcome for different digests without values. No standard can accept these.
  static ComparisonOutcome OtherDigest(int64_t elements);

  void Note(const ComparedOutput& output, const ComparisonOutcome& outcome);
  // Counts an output that has no reference.
  void NoteNotComparable() { ++report_.not_comparable; }
  // All of an output, or a part, depends on what the replay leaves out.
  void NoteInDoubt() { ++report_.acl.in_doubt; }

 private:
  const ReplayOptions& options_;
  const analyzer::metrics::Standard standard_;
  ReplayReport& report_;
  storage::Results* results_ = nullptr;
  int64_t run_id_ = 0;
};

}  // namespace acltape::replayer
