#include "cli/gate/gate_times.h"

#include <fmt/format.h>

namespace acltape::cli {

TimeRatio RatioOf(const replayer::CompareReport& report) {
  const replayer::Estimate& eager_to_captured = report.host_ratio;
  return {1 / eager_to_captured.median, 1 / eager_to_captured.high, 1 / eager_to_captured.low};
}

TimeVerdict JudgeTimes(const TimeRatio& before, const TimeRatio& now, double limit) {
  const double most = 1 + limit;
  if (now.low / before.high > most) return TimeVerdict::kSlower;
  return now.high / before.low <= most ? TimeVerdict::kNotSlower : TimeVerdict::kNotKnown;
}

std::string RatioText(const TimeRatio& ratio) {
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", ratio.median, ratio.low, ratio.high);
}

}  // namespace acltape::cli
