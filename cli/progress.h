// A progress bar on stderr for work that takes over a second; silent when stderr is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace acltape::cli {

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
};

}  // namespace acltape::cli
