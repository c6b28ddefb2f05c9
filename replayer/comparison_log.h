// Where the outcome of each comparison goes: counts and the first mismatches into the report, rows
// into the table `comparison`.
#pragma once

#include <cstdint>
#include <string>

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

class ComparisonLog {
 public:
  ComparisonLog(const ReplayOptions& options, ReplayReport& report)
      : options_(options), report_(report) {}

  // Rows go to `results` under `run_id`; null: to none.
  void WriteTo(storage::Results* results, int64_t run_id) {
    results_ = results;
    run_id_ = run_id;
  }

  // `difference` is null for equal outputs. `digest_only`: no values were there to look into.
  void Note(const ComparedOutput& output, const Difference* difference, bool digest_only);
  // No reference.
  void NoteNotComparable() { ++report_.not_comparable; }

 private:
  const ReplayOptions& options_;
  ReplayReport& report_;
  storage::Results* results_ = nullptr;
  int64_t run_id_ = 0;
};

}  // namespace acltape::replayer
