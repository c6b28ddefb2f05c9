#include "analyzer/graph/hazards.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

namespace acltape::analyzer {
namespace {

// The last writer of a range of bytes and who has read it since.
struct Segment {
  int64_t end = 0;
  int64_t writer = -1;
  std::vector<uint32_t> readers;
};

class HazardFinder {
 public:
  explicit HazardFinder(const Work& work) : work_(work) {}

  std::vector<Hazard> Find(size_t first, size_t end) {
    for (size_t call = first; call < end; ++call) {
      first_of_call_ = hazards_.size();
      const auto at = static_cast<uint32_t>(call);
      work_.VisitAccesses(call, [&](const ByteAccess& access) {
        if (!access.write) Read(at, access);
      });
      work_.VisitAccesses(call, [&](const ByteAccess& access) {
        if (access.write) Write(at, access);
      });
    }
    return std::move(hazards_);
  }

 private:
  using Segments = std::map<int64_t, Segment>;  // by first byte

  // Makes `at` the first byte of a segment where it lies inside one.
  static void SplitAt(Segments& segments, int64_t at) {
    auto next = segments.lower_bound(at);
    if (next == segments.begin()) return;
    auto before = std::prev(next);
    if (before->second.end <= at) return;
    Segment rest = before->second;
    before->second.end = at;
    segments.emplace_hint(next, at, std::move(rest));
  }

  void Add(uint32_t source, uint32_t target, HazardKind kind, const ByteAccess& access,
           int64_t first, int64_t end) {
    if (source == target) return;
    for (size_t i = hazards_.size(); i-- > first_of_call_;) {
      Hazard& known = hazards_[i];
      if (known.source != source || known.kind != kind || known.buffer != access.buffer) continue;
      known.first_byte = std::min(known.first_byte, first);
      known.end_byte = std::max(known.end_byte, end);
      return;
    }
    hazards_.push_back({source, target, kind, access.buffer, first, end});
  }

  void Read(uint32_t call, const ByteAccess& access) {
    Segments& segments = buffers_[access.buffer];
    SplitAt(segments, access.first);
    SplitAt(segments, access.end);
    int64_t at = access.first;
    for (auto next = segments.lower_bound(access.first); at < access.end;) {
      if (next == segments.end() || next->first > at) {  // bytes that nobody has touched
        const int64_t end = next == segments.end() ? access.end : std::min(access.end, next->first);
        next = segments.emplace_hint(next, at, Segment{end, -1, {}});
      }
      Segment& segment = next->second;
      if (segment.writer >= 0) {
        Add(static_cast<uint32_t>(segment.writer), call, HazardKind::kRaw, access, next->first,
            segment.end);
      }
      if (segment.readers.empty() || segment.readers.back() != call) {
        segment.readers.push_back(call);
      }
      at = segment.end;
      ++next;
    }
  }

  void Write(uint32_t call, const ByteAccess& access) {
    Segments& segments = buffers_[access.buffer];
    SplitAt(segments, access.first);
    SplitAt(segments, access.end);
    const auto from = segments.lower_bound(access.first);
    auto to = from;
    for (; to != segments.end() && to->first < access.end; ++to) {
      const Segment& segment = to->second;
      for (const uint32_t reader : segment.readers) {
        Add(reader, call, HazardKind::kWar, access, to->first, segment.end);
      }
      if (segment.readers.empty() && segment.writer >= 0) {
        Add(static_cast<uint32_t>(segment.writer), call, HazardKind::kWaw, access, to->first,
            segment.end);
      }
    }
    segments.erase(from, to);
    segments.emplace(access.first, Segment{access.end, call, {}});
  }

  const Work& work_;
  std::vector<Hazard> hazards_;
  size_t first_of_call_ = 0;
  std::unordered_map<int64_t, Segments> buffers_;
};

}  // namespace

std::string_view HazardKindName(HazardKind kind) {
  constexpr std::string_view kNames[] = {"RAW", "WAR", "WAW"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<Hazard> FindHazards(const Work& work, size_t first, size_t end) {
  return HazardFinder(work).Find(first, end);
}

}  // namespace acltape::analyzer
