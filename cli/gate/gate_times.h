// Times of a gate: the host time of captured steps as a part of that of eager ones, both replayed
// in turns in one run, so that a machine which is slow as a whole changes nothing.
#pragma once

#include <string>

#include "replayer/compare.h"

namespace acltape::cli {

struct TimeRatio {
  double median = 0;
  double low = 0;  // the ends of its confidence interval
  double high = 0;
};

// Captured over eager. The report must have both.
TimeRatio RatioOf(const replayer::CompareReport& report);

enum class TimeVerdict { kNotSlower, kSlower, kNotKnown };

// Says how the ratio changed: slower or not slower only if the whole interval of the change lies on
// one side of the limit, which is a part such as 0.1. That interval goes from the low end of now
// over the high end of before to the high end of now over the low end of before.
TimeVerdict JudgeTimes(const TimeRatio& before, const TimeRatio& now, double limit);

// "0.31 [0.30, 0.33]"
std::string RatioText(const TimeRatio& ratio);

}  // namespace acltape::cli
