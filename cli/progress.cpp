#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace acltape::cli {

Progress::Progress(std::string what)
    : what_(std::move(what)),
      terminal_(isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + std::chrono::seconds(1)) {}

Progress::~Progress() { Clear(); }

void Progress::Clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  drawn_ = false;
}

void Progress::Update(int64_t done, int64_t total) {
  if (!terminal_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  constexpr int64_t kCells = 30;
  const int64_t filled = total > 0 ? std::clamp<int64_t>(done * kCells / total, 0, kCells) : 0;
  fmt::print(stderr, "\r{} [{:<{}}] {}/{}\x1b[K", what_,
             std::string(static_cast<size_t>(filled), '#'), kCells, done, total);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace acltape::cli
