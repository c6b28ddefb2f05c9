// Where the outcome of each comparison goes: counts and the first mismatches into the report, rows
// into the table `comparison`.
#pragma once

#include <cstdint>
#include <string>

#include "analyzer/metrics/standard.h"
#include "replayer/replay.h"
#include "storage/results.h"

namespace acltape::replayer {

// What was compared with what.
struct ComparedOutput {
  int64_t call_id = 0;
  std::string op;
  int position = 0;  // of the argument; -1: a whole buffer
  std::string name;
  int64_t step = -1;      // as numbered in the trace
  std::string reference;  // "recorded" or "eager"
};

// How it came out.
struct ComparisonOutcome {
  enum class Verdict { kEqual, kWithin, kNoise, kDifferent };
  Verdict verdict = Verdict::kEqual;
  bool digest_only = false;  // no values were there to look into
  analyzer::TensorMetrics metrics;
  std::string reason;
};

class ComparisonLog {
 public:
  ComparisonLog(const ReplayOptions& options, ReplayReport& report);

  // Rows go to `results` under `run_id`; null: to none.
  void WriteTo(storage::Results* results, int64_t run_id) {
    results_ = results;
    run_id_ = run_id;
  }

  // Contents whose digests differ, judged by the standard of the options.
  ComparisonOutcome Judge(const std::string& op, storage::DType dtype, const uint8_t* expected,
                          const uint8_t* actual, int64_t elements) const;
  // Digests that differ without values to look into: no standard accepts that.
  static ComparisonOutcome OtherDigest(int64_t elements);

  void Note(const ComparedOutput& output, const ComparisonOutcome& outcome);
  // No reference.
  void NoteNotComparable() { ++report_.not_comparable; }

 private:
  const ReplayOptions& options_;
  const analyzer::Standard standard_;
  ReplayReport& report_;
  storage::Results* results_ = nullptr;
  int64_t run_id_ = 0;
};

}  // namespace acltape::replayer
