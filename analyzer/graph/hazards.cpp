#include "analyzer/graph/hazards.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>

#include "analyzer/calls/overlap.h"

namespace acltape::analyzer::graph {
namespace {

// A call and the bytes of a range that it uses.
struct Use {
  uint32_t call = 0;
  const storage::Layout* strided = nullptr;  // null: all bytes of the range
};

// The last writer of a range of bytes, the strided writes since then, and the readers since then.
struct Segment {
  int64_t end = 0;
  int64_t writer = -1;
  std::vector<Use> strided_writers;
  std::vector<Use> readers;
};

class HazardFinder {
 public:
  explicit HazardFinder(const Work& work) : work_(work) {}

  std::vector<Hazard> Find(size_t first, size_t end) {
    for (size_t call = first; call < end; ++call) {
      first_of_call_ = hazards_.size();
      of_call_.clear();
      const auto index = static_cast<uint32_t>(call);
      work_.VisitAccesses(call, [&](const ByteAccess& access) {
        if (!access.write) Read(index, access);
      });
      work_.VisitAccesses(call, [&](const ByteAccess& access) {
        if (access.write) Write(index, access);
      });
    }
    return std::move(hazards_);
  }

 private:
  using Key = std::tuple<uint32_t, HazardKind, int64_t>;  // source, kind, buffer
  static Key KeyOf(const Hazard& hazard) { return {hazard.source, hazard.kind, hazard.buffer}; }

  using Segments = std::map<int64_t, Segment>;  // by first byte

  // Splits a segment so that `byte` is the first byte of one, if it lies inside of one.
  static void SplitAt(Segments& segments, int64_t byte) {
    auto next = segments.lower_bound(byte);
    if (next == segments.begin()) return;
    auto before = std::prev(next);
    if (before->second.end <= byte) return;
    Segment rest = before->second;
    before->second.end = byte;
    segments.emplace_hint(next, byte, std::move(rest));
  }

  void Add(uint32_t source, uint32_t target, HazardKind kind, const ByteAccess& access,
           int64_t first, int64_t end) {
    if (source == target) return;
    const Key key(source, kind, access.buffer);
    size_t known = first_of_call_;
    if (!of_call_.empty()) {
      known = of_call_.try_emplace(key, hazards_.size()).first->second;
    } else {
      while (known < hazards_.size() && KeyOf(hazards_[known]) != key) ++known;
    }
    if (known < hazards_.size()) {
      hazards_[known].first_byte = std::min(hazards_[known].first_byte, first);
      hazards_[known].end_byte = std::max(hazards_[known].end_byte, end);
      return;
    }
    hazards_.push_back({source, target, kind, access.buffer, first, end});
    // A call with many edges, such as an update of all parameters at once, looks its edges up here.
    constexpr size_t kMostToSearch = 32;
    if (of_call_.empty() && hazards_.size() - first_of_call_ > kMostToSearch) {
      for (size_t i = first_of_call_; i < hazards_.size(); ++i) of_call_[KeyOf(hazards_[i])] = i;
    }
  }

  // True if two uses of a segment touch the same bytes. The range of a strided use may include a
  // segment in which it touches no byte.
  bool Share(const Use& a, const Use& b, int64_t first, int64_t end) {
    if (a.strided != nullptr && b.strided != nullptr) return overlaps_.Share(a.strided, b.strided);
    return Touches(a, first, end) && Touches(b, first, end);
  }
  bool Touches(const Use& use, int64_t first, int64_t end) {
    return use.strided == nullptr || analyzer::Touches(overlaps_.Pattern(use.strided), first, end);
  }
  bool SameBytes(const Use& a, const Use& b) {
    return a.strided == b.strided || (a.strided != nullptr && b.strided != nullptr &&
                                      overlaps_.Pattern(a.strided) == overlaps_.Pattern(b.strided));
  }

  void Read(uint32_t call, const ByteAccess& access) {
    const Use use{call, access.form->strided ? access.form->layout : nullptr};
    Segments& segments = buffers_[access.buffer];
    SplitAt(segments, access.first);
    SplitAt(segments, access.end);
    int64_t byte = access.first;
    for (auto next = segments.lower_bound(access.first); byte < access.end;) {
      if (next == segments.end() || next->first > byte) {  // bytes that nobody has touched
        const int64_t end = next == segments.end() ? access.end : std::min(access.end, next->first);
        next = segments.emplace_hint(next, byte, Segment{end, -1, {}, {}});
      }
      Segment& segment = next->second;
      ReadSegment(use, access, next->first, segment);
      byte = segment.end;
      ++next;
    }
  }

  void ReadSegment(const Use& use, const ByteAccess& access, int64_t first, Segment& segment) {
    if (!Touches(use, first, segment.end)) return;
    bool covered = false;  // a strided write wrote all the bytes that are read
    for (size_t i = segment.strided_writers.size(); i-- > 0 && !covered;) {
      const Use& writer = segment.strided_writers[i];
      if (!Share(use, writer, first, segment.end)) continue;
      Add(writer.call, use.call, HazardKind::kRaw, access, first, segment.end);
      covered = SameBytes(use, writer);
    }
    if (!covered && segment.writer >= 0) {
      Add(static_cast<uint32_t>(segment.writer), use.call, HazardKind::kRaw, access, first,
          segment.end);
    }
    if (!segment.readers.empty() && segment.readers.back().call == use.call) {
      Use& last = segment.readers.back();
      if (SameBytes(last, use)) return;
      if (use.strided == nullptr) {
        last.strided = nullptr;
        return;
      }
    }
    segment.readers.push_back(use);
  }

  void Write(uint32_t call, const ByteAccess& access) {
    const Use use{call, access.form->strided ? access.form->layout : nullptr};
    Segments& segments = buffers_[access.buffer];
    SplitAt(segments, access.first);
    SplitAt(segments, access.end);
    if (use.strided != nullptr) {
      WriteStrided(use, access, segments);
      return;
    }
    const auto from = segments.lower_bound(access.first);
    auto to = from;
    for (; to != segments.end() && to->first < access.end; ++to) {
      WriteSegment(call, access, to->first, to->second);
    }
    segments.erase(from, to);
    segments.emplace(access.first, Segment{access.end, call, {}, {}});
  }

  // Adds the edges to a write of all bytes of a segment.
  void WriteSegment(uint32_t call, const ByteAccess& access, int64_t first,
                    const Segment& segment) {
    // True if another edge already orders the call after the writer of all bytes.
    bool ordered = false;
    const auto follow = [&](const std::vector<Use>& earlier, HazardKind kind) {
      for (const Use& other : earlier) {
        if (!Touches(other, first, segment.end)) continue;
        Add(other.call, call, kind, access, first, segment.end);
        ordered = true;
      }
    };
    follow(segment.readers, HazardKind::kWar);
    follow(segment.strided_writers, HazardKind::kWaw);
    if (!ordered && segment.writer >= 0) {
      Add(static_cast<uint32_t>(segment.writer), call, HazardKind::kWaw, access, first,
          segment.end);
    }
  }

  void WriteStrided(const Use& use, const ByteAccess& access, Segments& segments) {
    constexpr size_t kMostOpenUses = 64;
    int64_t byte = access.first;
    for (auto next = segments.lower_bound(access.first); byte < access.end; ++next) {
      if (next == segments.end() || next->first > byte) {  // bytes that nobody has touched
        const int64_t end = next == segments.end() ? access.end : std::min(access.end, next->first);
        next = segments.emplace_hint(next, byte, Segment{end, -1, {}, {}});
      }
      Segment& segment = next->second;
      byte = segment.end;
      if (!Touches(use, next->first, segment.end)) continue;
      if (segment.readers.size() + segment.strided_writers.size() > kMostOpenUses) {
        WriteSegment(use.call, access, next->first, segment);
        segment = Segment{segment.end, use.call, {}, {}};
      } else {
        WriteStridedSegment(use, access, next->first, segment);
      }
    }
  }

  void WriteStridedSegment(const Use& use, const ByteAccess& access, int64_t first,
                           Segment& segment) {
    // The last write of exactly the same bytes is already ordered after all earlier uses of them.
    int64_t same = -1;
    for (const Use& writer : segment.strided_writers) {
      if (SameBytes(use, writer)) same = std::max(same, static_cast<int64_t>(writer.call));
    }
    bool ordered = same >= 0;  // another edge orders it after the writer of all bytes
    const auto follow = [&](std::vector<Use>& earlier, HazardKind kind) {
      std::erase_if(earlier, [&](const Use& other) {
        if (other.call < same || !Share(use, other, first, segment.end)) return false;
        Add(other.call, use.call, kind, access, first, segment.end);
        ordered = true;
        return SameBytes(use, other);
      });
    };
    follow(segment.readers, HazardKind::kWar);
    follow(segment.strided_writers, HazardKind::kWaw);
    if (!ordered && segment.writer >= 0) {
      Add(static_cast<uint32_t>(segment.writer), use.call, HazardKind::kWaw, access, first,
          segment.end);
    }
    segment.strided_writers.push_back(use);
  }

  const Work& work_;
  std::vector<Hazard> hazards_;
  size_t first_of_call_ = 0;
  std::map<Key, size_t> of_call_;  // the call's edges by place; empty while there are few
  std::unordered_map<int64_t, Segments> buffers_;
  OverlapTable overlaps_;
};

}  // namespace

std::string_view HazardKindName(HazardKind kind) {
  constexpr std::string_view kNames[] = {"RAW", "WAR", "WAW"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<Hazard> FindHazards(const Work& work, size_t first, size_t end) {
  return HazardFinder(work).Find(first, end);
}

}  // namespace acltape::analyzer::graph
