#include "analyzer/steps/live_bytes.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace acltape::analyzer {
namespace {

// Bytes [key, end) of a buffer that one place wrote, and the last place so far that read them.
struct Value {
  int64_t end = 0;
  size_t written = 0;
  size_t last_read = 0;
  bool constant = false;
};

class LiveCount {
 public:
  LiveCount(PlaceRange cuts, size_t longest)
      : cuts_(cuts), longest_(longest), change_(cuts.second - cuts.first + 2) {}

  void Read(const ByteAccess& access, size_t place) {
    Values& values = buffers_[access.buffer];
    Split(values, access.first);
    Split(values, access.end);
    for (auto found = values.lower_bound(access.first);
         found != values.end() && found->first < access.end; ++found) {
      found->second.last_read = place;
    }
  }

  void Write(const ByteAccess& access, size_t place, bool constant) {
    Values& values = buffers_[access.buffer];
    Split(values, access.first);
    Split(values, access.end);
    auto found = values.lower_bound(access.first);
    while (found != values.end() && found->first < access.end) {
      Count(found->first, found->second);
      found = values.erase(found);
    }
    values.emplace(access.first, Value{access.end, place, place, constant});
  }

  std::vector<int64_t> Take() {
    for (const auto& [buffer, values] : buffers_) {
      for (const auto& [first, value] : values) Count(first, value);
    }
    std::vector<int64_t> live(cuts_.second - cuts_.first + 1);
    int64_t bytes = 0;
    for (size_t i = 0; i < live.size(); ++i) live[i] = bytes += change_[i];
    return live;
  }

 private:
  using Values = std::map<int64_t, Value>;  // by first byte, disjoint

  // Splits a value that lies across `byte`, so that one begins there.
  static void Split(Values& values, int64_t byte) {
    auto found = values.lower_bound(byte);
    if (found == values.begin()) return;
    --found;
    if (found->second.end <= byte) return;
    Value rest = found->second;
    found->second.end = byte;
    values.emplace(byte, rest);
  }

  // Counts the value at the cuts across which it lies: from after `written` to before `last_read`.
  void Count(int64_t first_byte, const Value& value) {
    if (value.constant || value.last_read - value.written >= longest_) return;
    const size_t first = std::max(value.written + 1, cuts_.first);
    const size_t last = std::min(value.last_read, cuts_.second);
    if (first > last) return;
    change_[first - cuts_.first] += value.end - first_byte;
    change_[last + 1 - cuts_.first] -= value.end - first_byte;
  }

  PlaceRange cuts_;
  size_t longest_;
  std::vector<int64_t> change_;  // difference from one cut to the next
  std::unordered_map<int64_t, Values> buffers_;
};

}  // namespace

std::vector<int64_t> LiveBytesAcross(const OperatorSequence& sequence, PlaceRange window,
                                     PlaceRange cuts, size_t longest) {
  LiveCount count(cuts, longest);
  for (size_t place = window.first; place < window.second; ++place) {
    bool reads = false;
    sequence.VisitAccesses(place, [&](const ByteAccess& access) {
      if (access.write) return;
      count.Read(access, place);
      reads = true;
    });
    const bool constant = !reads && sequence.kinds[place] == LeafKind::kKernel;
    sequence.VisitAccesses(place, [&](const ByteAccess& access) {
      if (access.write) count.Write(access, place, constant);
    });
  }
  return count.Take();
}

}  // namespace acltape::analyzer
