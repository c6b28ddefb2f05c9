// Holds the captured host time of a comparison against that of an earlier one.
//
// The change is now / before. Its interval goes from the low end of now over the high end of before
// to the high end of now over the low end of before, so it is wider than one of the ratio itself
// would be. Only what lies beyond the limit with the whole interval counts as slower.
#pragma once

#include <string>

#include "cli/terminal/table.h"
#include "replayer/compare.h"
#include "storage/reader.h"

namespace acltape::cli {

// "5%", "5" or "2.5%": a part of the whole, 0.05. Throws Error kUsage for anything else, or when it
// is negative.
double ParsePercent(const std::string& option, const std::string& text);

struct RegressionQuestion {
  double limit = 0;      // part that the host time may grow by
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
  // 1 for kSlower, 125 for kNoBaseline, else 0.
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
