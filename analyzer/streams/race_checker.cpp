#include "analyzer/streams/race_checker.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace acltape::analyzer::streams {
namespace {

constexpr int64_t kMostPieces = 65536;

uint32_t At(const std::vector<uint32_t>& clock, uint32_t stream) {
  return stream < clock.size() ? clock[stream] : 0;
}

// Takes the later time of each stream. Returns true if the clock changed.
bool Join(std::vector<uint32_t>& clock, const std::vector<uint32_t>& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  bool changed = false;
  for (size_t s = 0; s < other.size(); ++s) {
    if (other[s] <= clock[s]) continue;
    clock[s] = other[s];
    changed = true;
  }
  return changed;
}

using Pieces = std::vector<std::pair<int64_t, int64_t>>;

// The ranges of bytes that a view touches, in order. The result is empty if they are too many to
// list.
Pieces PiecesOf(const storage::Layout& layout) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size; innermost first
  for (size_t d = 0; d < layout.shape.size(); ++d) {
    if (layout.shape[d] != 1) dims.emplace_back(layout.strides[d], layout.shape[d]);
  }
  std::sort(dims.begin(), dims.end());
  const auto item = static_cast<int64_t>(storage::DTypeBytes(layout.dtype));
  int64_t run = 1;
  auto outer = dims.begin();
  for (; outer != dims.end() && outer->first <= run; ++outer) {
    run += outer->first * (outer->second - 1);
  }
  int64_t count = 1;
  for (auto dim = outer; dim != dims.end(); ++dim) {
    if (count > kMostPieces / dim->second) return {};
    count *= dim->second;
  }
  Pieces pieces = {{layout.byte_offset, layout.byte_offset + run * item}};
  for (; outer != dims.end(); ++outer) {
    const size_t inner = pieces.size();
    for (int64_t i = 1; i < outer->second; ++i) {
      const int64_t shift = i * outer->first * item;
      for (size_t p = 0; p < inner; ++p) {
        pieces.emplace_back(pieces[p].first + shift, pieces[p].second + shift);
      }
    }
  }
  std::sort(pieces.begin(), pieces.end());
  return pieces;
}

// True if two uses of [first, end) share a byte of it. A null layout touches every byte.
bool ShareByte(const storage::Layout* a, const storage::Layout* b, int64_t first, int64_t end) {
  if (a == nullptr && b == nullptr) return true;
  const Pieces whole = {{first, end}};
  const Pieces left = a == nullptr ? whole : PiecesOf(*a);
  const Pieces right = b == nullptr ? whole : PiecesOf(*b);
  if (left.empty() || right.empty()) return true;
  for (size_t i = 0, j = 0; i < left.size() && j < right.size();) {
    const int64_t from = std::max({left[i].first, right[j].first, first});
    const int64_t to = std::min({left[i].second, right[j].second, end});
    if (from < to) return true;
    left[i].second < right[j].second ? ++i : ++j;
  }
  return false;
}

}  // namespace

uint32_t RaceChecker::StreamOf(int64_t stream) {
  if (stream == kHost) return 0;
  const auto [entry, created] = stream_of_.emplace(stream, static_cast<uint32_t>(streams_.size()));
  if (created) streams_.emplace_back();
  return entry->second;
}

RaceChecker::Stream& RaceChecker::Touch(uint32_t stream) {
  Stream& touched = streams_[stream];
  if (stream != 0 && touched.seen_host != host_version_) {
    touched.changed |= Join(touched.clock, streams_[0].clock);
    touched.seen_host = host_version_;
  }
  return touched;
}

void RaceChecker::AddToHost(const Clock& clock) {
  if (!Join(streams_[0].clock, clock)) return;
  streams_[0].changed = true;
  ++host_version_;
}

RaceChecker::Clock RaceChecker::ClockOf(uint32_t stream, uint32_t number) const {
  const auto& history = streams_[stream].history;
  const auto next =
      std::upper_bound(history.begin(), history.end(), number,
                       [](uint32_t wanted, const auto& entry) { return wanted < entry.first; });
  Clock clock = std::prev(next)->second;
  if (clock.size() <= stream) clock.resize(stream + 1);
  clock[stream] = number;
  return clock;
}

const storage::Layout* RaceChecker::StridedLayout(const ByteAccess& access) {
  if (access.form == nullptr || access.form->layout == nullptr) return nullptr;
  const storage::Layout* layout = access.form->layout;
  const auto [entry, created] = is_dense_.emplace(layout, false);
  if (created) entry->second = layout->IsDense();
  return entry->second ? nullptr : layout;
}

void RaceChecker::Work(int64_t operation, int64_t stream, std::span<const ByteAccess> accesses) {
  const uint32_t index = StreamOf(stream);
  Stream& issuing = Touch(index);
  if (issuing.clock.size() <= index) issuing.clock.resize(index + 1);
  const uint32_t number = ++issuing.issued;
  issuing.clock[index] = number;
  first_race_ = races_.size();
  conflicts_.clear();

  for (const ByteAccess& access : accesses) {
    if (access.first >= access.end) continue;
    const Use use{index, number, operation, StridedLayout(access), access.write};
    Segments& segments = buffers_[access.buffer];
    const auto split = [&](int64_t byte) {
      auto next = segments.lower_bound(byte);
      if (next == segments.begin()) return;
      const auto before = std::prev(next);
      if (before->second.end <= byte) return;
      Segment rest = before->second;
      before->second.end = byte;
      segments.emplace_hint(next, byte, std::move(rest));
    };
    split(access.first);
    split(access.end);
    int64_t byte = access.first;
    for (auto next = segments.lower_bound(byte); byte < access.end; ++next) {
      if (next == segments.end() || next->first > byte) {
        const int64_t end = next == segments.end() ? access.end : std::min(access.end, next->first);
        next = segments.emplace_hint(next, byte, Segment{end, {}});
      }
      CheckSegment(issuing.clock, use, access, byte, next->second);
      byte = next->second.end;
    }
  }
  if (!conflicts_.empty()) OrderAfterConflicts(issuing, operation);
  if (issuing.changed) issuing.history.emplace_back(number, issuing.clock);
  issuing.changed = false;
  if (index == 0) ++host_version_;
}

// Reports the uses that conflict with `use`, and lets `use` replace the uses that it makes
// superfluous. A use is superfluous if every later operation that races with it also races with
// `use`.
void RaceChecker::CheckSegment(const Clock& clock, const Use& use, const ByteAccess& access,
                               int64_t first, Segment& segment) {
  const int64_t end = segment.end;
  std::erase_if(segment.uses, [&](const Use& before) {
    const bool ordered = before.number <= At(clock, before.stream);
    const bool conflict = !ordered && (before.write || use.write) &&
                          ShareByte(before.strided, use.strided, first, end);
    if (conflict) {
      AddRace(before, use, access.buffer, first, end);
      conflicts_.push_back(before);
    }
    const bool covered = use.strided == nullptr || use.strided == before.strided;
    return covered && (ordered || conflict) && (use.write || !before.write);
  });
  segment.uses.push_back(use);
}

void RaceChecker::AddRace(const Use& before, const Use& use, int64_t buffer, int64_t first,
                          int64_t end) {
  const graph::HazardKind kind = !use.write     ? graph::HazardKind::kRaw
                                 : before.write ? graph::HazardKind::kWaw
                                                : graph::HazardKind::kWar;
  for (size_t i = races_.size(); i-- > first_race_;) {
    Race& known = races_[i];
    if (known.first != before.operation || known.kind != kind || known.buffer != buffer) continue;
    known.first_byte = std::min(known.first_byte, first);
    known.end_byte = std::max(known.end_byte, end);
    return;
  }
  races_.push_back({before.operation, use.operation, kind, buffer, first, end});
}

void RaceChecker::OrderAfterConflicts(Stream& stream, int64_t operation) {
  // Later operations of a stream are ordered after earlier ones, so the last of each stream is
  // enough.
  std::sort(conflicts_.begin(), conflicts_.end(), [](const Use& a, const Use& b) {
    return a.stream != b.stream ? a.stream < b.stream : a.number > b.number;
  });
  conflicts_.erase(std::unique(conflicts_.begin(), conflicts_.end(),
                               [](const Use& a, const Use& b) { return a.stream == b.stream; }),
                   conflicts_.end());
  std::vector<Clock> clocks;
  for (const Use& source : conflicts_) clocks.push_back(ClockOf(source.stream, source.number));
  for (size_t i = 0; i < conflicts_.size(); ++i) {
    const Use& source = conflicts_[i];
    bool implied = false;
    for (size_t j = 0; j < conflicts_.size() && !implied; ++j) {
      implied = j != i && At(clocks[j], source.stream) >= source.number;
    }
    if (!implied) missing_waits_.push_back({source.operation, operation});
    Join(stream.clock, clocks[i]);
  }
  stream.changed = true;
}

void RaceChecker::Record(int64_t stream, int64_t event) {
  events_[event] = Touch(StreamOf(stream)).clock;
}

void RaceChecker::Wait(int64_t stream, int64_t event) {
  const auto recorded = events_.find(event);
  if (recorded == events_.end()) return;
  Stream& waiting = Touch(StreamOf(stream));
  waiting.changed |= Join(waiting.clock, recorded->second);
}

void RaceChecker::SynchronizeStream(int64_t stream) { AddToHost(Touch(StreamOf(stream)).clock); }

void RaceChecker::SynchronizeEvent(int64_t event) {
  const auto recorded = events_.find(event);
  if (recorded != events_.end()) AddToHost(recorded->second);
}

void RaceChecker::SynchronizeDevice() {
  for (size_t s = 1; s < streams_.size(); ++s) AddToHost(streams_[s].clock);
}

RaceChecker CheckAssignment(const StreamAssignment& assignment,
                            std::span<const std::vector<ByteAccess>> accesses) {
  const size_t nodes = assignment.stream_of.size();
  std::vector<std::vector<int32_t>> records(nodes);  // events, by node
  std::vector<std::vector<int32_t>> waits(nodes);
  for (const StreamWait& wait : assignment.waits) {
    auto& recorded = records[wait.record_after];
    if (std::find(recorded.begin(), recorded.end(), wait.event) == recorded.end()) {
      recorded.push_back(wait.event);
    }
    waits[wait.wait_before].push_back(wait.event);
  }
  RaceChecker checker;
  for (const int32_t node : assignment.order) {
    const int64_t stream = assignment.stream_of[node];
    for (const int32_t event : waits[node]) {
      checker.Wait(stream, event);
      const ByteAccess use{-1 - event, 0, 1, /*write=*/false};
      checker.Work(node, stream, {&use, 1});
    }
    checker.Work(node, stream, accesses[node]);
    for (const int32_t event : records[node]) {
      const ByteAccess use{-1 - event, 0, 1, /*write=*/true};
      checker.Work(node, stream, {&use, 1});
      checker.Record(stream, event);
    }
  }
  return checker;
}

}  // namespace acltape::analyzer::streams
