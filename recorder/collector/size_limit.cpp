#include "recorder/collector/size_limit.h"

namespace acltape::collector {
namespace {

constexpr int64_t kWindowsInTrace = 4;
constexpr int64_t kPauseNs = 2000000;        // between two looks
constexpr int64_t kPatienceNs = 1000000000;  // for the end of a step

}  // namespace

SizeLimit::SizeLimit(ArenaOwner& arena, TraceBuilder& trace, int64_t bytes)
    : arena_(arena), trace_(trace), limit_(bytes) {
  if (limit_ > 0) trace_.LimitSize();
}

void SizeLimit::AskForWindow(int64_t now_ns) {
  wire::ArenaHeader& header = arena_.header();
  if (asked_ns_ == 0) {
    asked_ns_ = now_ns;
    if (header.steps_seen.load() != 0) {
      header.turn.store(1);
    } else {
      wire::TurnWindow(header);
    }
  } else if (header.turn.load() != 0 && now_ns - asked_ns_ > kPatienceNs) {
    wire::TurnWindow(header);
  }
}

int64_t SizeLimit::DropTo(int64_t most) {
  int64_t bytes = trace_.writer().UsedBytes();
  while (bytes > most) {
    const auto cut = trace_.windows().CutOldest();
    if (!cut) break;
    calls_ += trace_.DropBefore(*cut);
    ++windows_;
    const int64_t left = trace_.writer().UsedBytes();
    bytes_at_begin_ -= bytes - left;
    bytes = left;
  }
  return bytes;
}

void SizeLimit::Look(int64_t now_ns, int64_t waiting) {
  if (limit_ <= 0 || now_ns - looked_ns_ < kPauseNs) return;
  looked_ns_ = now_ns;
  const int64_t bytes = DropTo(limit_ - limit_ / kWindowsInTrace) + waiting;
  const uint32_t window = arena_.header().window.load();
  if (window != window_) {
    window_ = window;
    bytes_at_begin_ = bytes;
    asked_ns_ = 0;
  }
  if (bytes - bytes_at_begin_ > limit_ / kWindowsInTrace) AskForWindow(now_ns);
}

void SizeLimit::Finish() {
  if (limit_ <= 0) return;
  DropTo(limit_);
  if (windows_ > 0) trace_.writer().ForgetDropped();
}

}  // namespace acltape::collector
