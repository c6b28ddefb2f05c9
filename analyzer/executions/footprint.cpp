#include "analyzer/executions/footprint.h"

#include <map>

#include "analyzer/calls/byte_map.h"
#include "analyzer/calls/byte_set.h"

namespace acltape::analyzer::executions {
namespace {

struct Written {
  uint32_t entry = 0;
  const FormAccess* access = nullptr;
};

}  // namespace

Footprint FootprintOf(const Work& work, const std::vector<uint32_t>& entries) {
  Footprint footprint;
  std::map<int64_t, ByteSet> covered;  // bytes that were read or written before, by buffer
  std::map<int64_t, ByteMap<Written>> written;
  std::map<int64_t, ByteRange> ranges;  // the written range of each buffer
  for (const uint32_t entry : entries) {
    work.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (access.write) return;
      ByteSet open;
      open.Add(access.first, access.end);
      ByteSet& known = covered[access.buffer];
      open.Remove(known);
      for (const ByteRange& part : open.Within(access.first, access.end)) {
        footprint.reads.push_back(
            {access.buffer, part.first, part.end, entry, access.form->strided, access.form});
      }
      known.Add(access.first, access.end);
    });
    work.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (!access.write) return;
      // A strided write leaves the bytes between its elements as they were, so that a later read of
      // them has them from before.
      if (!access.form->strided) covered[access.buffer].Add(access.first, access.end);
      written[access.buffer].Set(access.first, access.end, {entry, access.form});
      ByteRange& range =
          ranges.try_emplace(access.buffer, ByteRange{access.first, access.end}).first->second;
      range.first = std::min(range.first, access.first);
      range.end = std::max(range.end, access.end);
    });
  }
  for (const auto& [buffer, map] : written) {
    const ByteRange& range = ranges[buffer];
    map.Within(
        range.first, range.end, [&, id = buffer](int64_t first, int64_t end, const Written& by) {
          footprint.writes.push_back({id, first, end, by.entry, by.access->strided, by.access});
        });
  }
  return footprint;
}

}  // namespace acltape::analyzer::executions
