#include "storage/host_gaps.h"

#include <algorithm>
#include <tuple>

namespace acltape::storage {
namespace {

// A leaf can enclose half as many stretches and is still not too late.
constexpr size_t kMostStretches = 4096;

bool Longer(const HostGap& left, const HostGap& right) {
  return std::tie(right.gap_ns, left.after_call) < std::tie(left.gap_ns, right.after_call);
}

}  // namespace

void LongestGaps::Add(int64_t thread_id, int64_t call_id, int64_t begin_ns, int64_t end_ns) {
  if (latest_ == nullptr || thread_id != latest_id_) {
    latest_ = &threads_[thread_id];
    latest_id_ = thread_id;
  }
  Thread& thread = *latest_;
  if (thread.has_taken && begin_ns < thread.stretches.front().begin_ns) too_late_ = true;
  if (too_late_) return;
  Insert(thread, {begin_ns, call_id, end_ns, call_id, begin_ns});
  if (thread.stretches.size() > kMostStretches) Take(thread_id, thread, kMostStretches / 2);
}

void LongestGaps::Join(Stretch& stretch, const Stretch& other) {
  if (std::tie(other.begin_ns, other.first_call) < std::tie(stretch.begin_ns, stretch.first_call)) {
    stretch.begin_ns = other.begin_ns;
    stretch.first_call = other.first_call;
  }
  if (std::tie(stretch.end_ns, other.last_call_begin, other.last_call) <
      std::tie(other.end_ns, stretch.last_call_begin, stretch.last_call)) {
    stretch.end_ns = other.end_ns;
    stretch.last_call = other.last_call;
    stretch.last_call_begin = other.last_call_begin;
  }
}

void LongestGaps::Insert(Thread& thread, const Stretch& leaf) {
  std::vector<Stretch>& all = thread.stretches;
  // Usually the thread has no stretch, or the leaf comes after its last one.
  size_t end = all.size();
  while (end > 0 && all[end - 1].begin_ns > leaf.end_ns) --end;
  size_t begin = end;
  while (begin > 0 && all[begin - 1].end_ns >= leaf.begin_ns) --begin;
  if (begin == end) {
    all.insert(all.begin() + static_cast<ptrdiff_t>(begin), leaf);
    return;
  }
  Join(all[begin], leaf);
  for (size_t i = begin + 1; i < end; ++i) Join(all[begin], all[i]);
  all.erase(all.begin() + static_cast<ptrdiff_t>(begin) + 1,
            all.begin() + static_cast<ptrdiff_t>(end));
}

void LongestGaps::Take(int64_t thread_id, Thread& thread, size_t count) {
  std::vector<Stretch>& all = thread.stretches;
  for (size_t i = 0; i < count; ++i) {
    Offer(
        {all[i + 1].begin_ns - all[i].end_ns, thread_id, all[i].last_call, all[i + 1].first_call});
  }
  all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(count));
  thread.has_taken = true;
}

void LongestGaps::Offer(const HostGap& gap) {
  if (has_least_ && !Longer(gap, least_)) return;
  gaps_.push_back(gap);
  if (gaps_.size() >= 2 * kMost) KeepLongest();
}

void LongestGaps::KeepLongest() {
  const auto least = gaps_.begin() + static_cast<ptrdiff_t>(kMost) - 1;
  std::nth_element(gaps_.begin(), least, gaps_.end(), Longer);
  gaps_.erase(least + 1, gaps_.end());
  least_ = gaps_.back();
  has_least_ = true;
}

std::optional<std::vector<HostGap>> LongestGaps::Finish() {
  if (too_late_) return std::nullopt;
  for (auto& [thread_id, thread] : threads_) {
    if (!thread.stretches.empty()) Take(thread_id, thread, thread.stretches.size() - 1);
  }
  std::sort(gaps_.begin(), gaps_.end(), Longer);
  if (gaps_.size() > kMost) gaps_.erase(gaps_.begin() + kMost, gaps_.end());
  return std::move(gaps_);
}

}  // namespace acltape::storage
