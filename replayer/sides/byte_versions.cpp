#include "replayer/sides/byte_versions.h"

#include <algorithm>

namespace acltape::replayer::sides {

void ByteVersions::Split(int64_t offset) {
  const auto next = from_.upper_bound(offset);
  from_.insert(next, {offset, std::prev(next)->second});
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
  for (auto part = std::prev(from_.upper_bound(first)); part != from_.end() && part->first < end;
       ++part) {
    const auto next = std::next(part);
    const int64_t until = next == from_.end() ? end : std::min(end, next->first);
    if (!ranges.empty() && ranges.back().version == part->second) {
      ranges.back().end = until;
    } else {
      ranges.push_back({std::max(first, part->first), until, part->second});
    }
  }
  return ranges;
}

}  // namespace acltape::replayer::sides
