#include "recorder/collector/spare_time.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace acltape::collector {

namespace {

constexpr int64_t kPeriodNs = 100'000'000;
constexpr int64_t kLeastNs = kPeriodNs / 50;  // so that the trace grows, whatever the load

}  // namespace

// The first tenth is the program's start: nothing is known, nothing is held back.
SpareTime::SpareTime(int64_t now_ns)
    : begin_ns_(now_ns), idle_ns_(IdleNs()), used_ns_(UsedNs()), budget_ns_(kPeriodNs) {}

int64_t SpareTime::Left(int64_t now_ns, bool can_wait) {
  const int64_t used = UsedNs();
  if (now_ns - begin_ns_ >= kPeriodNs) {
    const std::optional<int64_t> idle = IdleNs();
    budget_ns_ = kPeriodNs;
    if (idle && idle_ns_) {
      // The collector keeps half of the time that it used itself. So it gives way within a few
      // periods when no processor is idle, because the time may then be the program's.
      const int64_t spare = *idle - *idle_ns_ + (used - used_ns_) / 2;
      budget_ns_ = std::max(kLeastNs, spare * kPeriodNs / (now_ns - begin_ns_));
    }
    begin_ns_ = now_ns;
    idle_ns_ = idle;
    used_ns_ = used;
  }
  const int64_t budget = can_wait ? std::min(kLeastNs, budget_ns_) : budget_ns_;
  return std::max<int64_t>(0, budget - (used - used_ns_));
}

std::optional<int64_t> SpareTime::IdleNs() {
  // "cpu user nice system idle iowait ...", in ticks, over all processors.
  std::ifstream file("/proc/stat");
  std::string name;
  int64_t user = 0, nice = 0, system = 0, idle = 0, wait = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> wait) || name != "cpu") return {};
  return (idle + wait) * (1'000'000'000 / sysconf(_SC_CLK_TCK));
}

int64_t SpareTime::UsedNs() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace acltape::collector
