// Holds the captured host time of a comparison against that of an earlier one.
//
// A machine is never as fast as it was. So what is held against each other is a share: captured
// host time over the eager host time of the same run. The change is the share now over the share
// before; its interval goes from the low end of now over the high end of before to the high end of
// now over the low end of before. Slower, or not slower, is only what lies beyond, or within, the
// limit with the whole interval. All else is not known, and so is a growth below 2 % of the eager
// host time, what was timed of less than 95 % of the leaves that compute, and "not slower" than a
// step with another number of leaves.
#pragma once

#include <string>

#include "cli/terminal/table.h"
#include "replayer/compare.h"
#include "storage/reader.h"

namespace acltape::cli {

// "5%", "5" or "2.5%": a part of the whole, 0.05. Throws Error kUsage for anything else, or when it
// is negative.
double ParsePercent(const std::string& option, const std::string& text);

// The name of a row of the table `setting` of a comparison.
inline constexpr const char* kLeavesPerStep = "leaves per step";

struct RegressionQuestion {
  double limit = 0;      // part that the share may grow by
  std::string baseline;  // a run of the trace by its number, or what `compare --format json`
                         // printed (FILE); empty: the last run of the trace like this one
  std::string plan;      // the plan that was timed; empty: captured on one stream
  double confidence = 0.95;
};

struct RegressionAnswer {
  enum class Verdict { kNotSlower, kSlower, kCannotTell, kNoBaseline };
  Verdict verdict = Verdict::kNoBaseline;
  std::string sentence;
  Table table{{"quantity", "value"}};
  // 1 for kSlower, 0 for kNotSlower, else 125.
  int ExitCode() const;
};

// Looks at a named baseline before anything is measured. Throws Error kUsage when it is not there
// or is no comparison of this kind.
void CheckBaseline(const storage::Reader& trace, const RegressionQuestion& question);

// `report` was just measured on `trace`. Throws Error kUsage as CheckBaseline does, and when the
// baseline was taken on another device.
RegressionAnswer FindRegression(const storage::Reader& trace, const replayer::CompareReport& report,
                                const RegressionQuestion& question);

}  // namespace acltape::cli
