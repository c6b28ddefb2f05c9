#include "cli/terminal/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace acltape::cli {

namespace {

std::string TimeText(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min", (whole + 59) / 60);
  return fmt::format("{:.1f} h", static_cast<double>(whole) / 3600);
}

}  // namespace

std::string ProgressText(const std::string& what, int64_t done, int64_t total, double per_second) {
  constexpr int64_t kCells = 30;
  const int64_t filled = total > 0 ? std::clamp<int64_t>(done * kCells / total, 0, kCells) : 0;
  std::string text =
      fmt::format("{} [{:<{}}] {}/{}", what, std::string(static_cast<size_t>(filled), '#'), kCells,
                  done, total);
  if (per_second <= 0) return text;
  text += per_second < 10 ? fmt::format(", {:.1f}/s", per_second)
                          : fmt::format(", {:.0f}/s", per_second);
  if (done < total) {
    text += fmt::format(", {} left", TimeText(static_cast<double>(total - done) / per_second));
  }
  return text;
}

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
  if (total != total_ || done < done_) {
    begin_ = now;
    begin_done_ = done;
    total_ = total;
  }
  done_ = done;
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double per_second = seconds > 0 ? static_cast<double>(done - begin_done_) / seconds : 0;
  fmt::print(stderr, "\r{}\x1b[K", ProgressText(what_, done, total, per_second));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace acltape::cli
