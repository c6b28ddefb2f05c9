#include "replayer/sides/byte_versions.h"

#include <algorithm>

namespace acltape::replayer::sides {

void ByteVersions::Split(int64_t at) {
  const auto behind = from_.upper_bound(at);
  from_.insert(behind, {at, std::prev(behind)->second});
}

void ByteVersions::Set(int64_t first, int64_t end, ByteVersion version) {
  if (first >= end) return;
  Split(first);
  Split(end);
  from_.erase(from_.upper_bound(first), from_.lower_bound(end));
  from_[first] = version;
}

std::vector<ByteVersions::Range> ByteVersions::Of(int64_t first, int64_t end) const {
  std::vector<Range> ranges;
  if (first >= end) return ranges;
  for (auto at = std::prev(from_.upper_bound(first)); at != from_.end() && at->first < end; ++at) {
    const auto next = std::next(at);
    const int64_t until = next == from_.end() ? end : std::min(end, next->first);
    if (!ranges.empty() && ranges.back().version == at->second) {
      ranges.back().end = until;
    } else {
      ranges.push_back({std::max(first, at->first), until, at->second});
    }
  }
  return ranges;
}

}  // namespace acltape::replayer::sides
