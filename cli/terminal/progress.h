// A progress bar on stderr, with the rate and the time that is left, for work that takes over a
// second; silent when stderr is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace acltape::cli {

// "replay [####    ] 1200/2400, 400/s, 3 s left". Rate and time left are told once something is
// done.
std::string ProgressText(const std::string& what, int64_t done, int64_t total, double per_second);

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // wipes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap enough to call for every item: draws at most ten times a second.
  void Update(int64_t done, int64_t total);
  // Wipes the bar, before something else is printed.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point next_;
  // The start of the count that is under way; another total starts another count.
  Clock::time_point begin_;
  int64_t begin_done_ = 0;
  int64_t done_ = 0;
  int64_t total_ = -1;
};

}  // namespace acltape::cli
