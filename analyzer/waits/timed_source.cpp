#include "analyzer/waits/timed_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string_view>

namespace acltape::analyzer::waits {
namespace {

constexpr int64_t kLinesAround = 3;
constexpr int64_t kMostBytes = int64_t{16} << 20;

// Parts of names by which Python takes a time.
constexpr std::string_view kClocks[] = {"perf_counter", "time.time", "time_ns",  "monotonic",
                                        "process_time", "timeit",    "Timer",    "timer(",
                                        "elapsed_time", "clock",     "datetime", "= time()"};

}  // namespace

TimedSource LookForTimes(const SourceLine* line, const std::string& folder, int64_t recorded_ns) {
  if (line == nullptr || line->line <= 0) return TimedSource::kNotRead;
  const std::string path = line->file.starts_with('/') ? line->file : folder + "/" + line->file;
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_size > kMostBytes) {
    return TimedSource::kNotRead;
  }
  if (file.st_mtim.tv_sec > recorded_ns / 1'000'000'000) return TimedSource::kNotRead;
  std::ifstream source(path);
  std::string text;
  for (int64_t number = 1; number <= line->line + kLinesAround && std::getline(source, text);
       ++number) {
    if (number < line->line - kLinesAround) continue;
    const bool timed = std::ranges::any_of(
        kClocks, [&](std::string_view clock) { return text.find(clock) != std::string::npos; });
    if (timed) return TimedSource::kTimed;
  }
  return source.bad() ? TimedSource::kNotRead : TimedSource::kNotTimed;
}

}  // namespace acltape::analyzer::waits
