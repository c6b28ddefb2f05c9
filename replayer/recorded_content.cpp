#include "replayer/recorded_content.h"

#include <algorithm>
#include <cstring>

#include "replayer/packing.h"

namespace acltape::replayer {
namespace {

using analyzer::ByteRange;
using analyzer::ByteSet;
using analyzer::Leaf;
using analyzer::TensorUse;

// Views with more elements are not looked into run by run (see AddElements); they are laid over
// what was there before, which is right in any case.
constexpr int64_t kExactElements = int64_t{1} << 16;

ByteSet All(ByteRange range) {
  ByteSet set;
  set.Add(range.first, range.end);
  return set;
}

}  // namespace

void RecordedContent::IndexFeeds() {
  if (indexed_) return;
  indexed_ = true;
  if (contents_ == nullptr) {
    for (const Leaf& leaf : program_.leaves) {
      for (const storage::Snapshot& snapshot : leaf.before) {
        own_feeds_.push_back({leaf.index, snapshot.tensor.buffer_id, snapshot.bytes,
                              snapshot.has_payload ? snapshot.digest : ""});
      }
    }
    for (const Feed& feed : own_feeds_) feeds_[feed.buffer_id].push_back(&feed);
    return;
  }
  for (const Leaf& leaf : program_.leaves) {
    for (const Feed& feed : contents_->FeedsOf(leaf.index)) {
      feeds_[feed.buffer_id].push_back(&feed);
    }
  }
}

const std::vector<RecordedContent::Arrival>& RecordedContent::ArrivalsOf(int64_t buffer) {
  const auto found = arrivals_.find(buffer);
  if (found != arrivals_.end()) return found->second;
  IndexFeeds();
  std::vector<Arrival> arrivals;
  for (const Feed* feed : feeds_[buffer]) {
    arrivals.push_back({feed->leaf, feed, nullptr, {0, feed->bytes}, true});
  }
  int64_t last = -1;
  const auto use = program_.buffers.find(buffer);
  if (use != program_.buffers.end()) {
    for (const analyzer::Access& access : use->second.accesses) {
      if (!access.write || access.leaf == last) continue;
      last = access.leaf;
      for (const TensorUse& write : program_.uses[access.leaf].writes) {
        const storage::Layout& layout = *write.layout;
        if (write.tensor.buffer_id != buffer || layout.ElementCount() == 0) continue;
        arrivals.push_back({access.leaf,
                            nullptr,
                            &write,
                            {layout.FirstByte(), layout.EndByte()},
                            layout.IsDense()});
      }
    }
  }
  // What is brought for a leaf is there before the leaf writes.
  std::stable_sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
    return a.leaf != b.leaf ? a.leaf < b.leaf : a.feed != nullptr && b.feed == nullptr;
  });
  return arrivals_.emplace(buffer, std::move(arrivals)).first->second;
}

void RecordedContent::AddTouched(const Arrival& arrival, ByteSet& set) {
  if (arrival.whole) {
    set.Add(arrival.range.first, arrival.range.end);
  } else {
    AddElements(*arrival.write->layout, set);
  }
}

void RecordedContent::AddCovered(const Arrival& arrival, ByteSet& set) {
  if (!arrival.whole && arrival.write->layout->ElementCount() > kExactElements) return;
  AddTouched(arrival, set);
}

std::vector<const RecordedContent::Arrival*> RecordedContent::Relevant(int64_t buffer,
                                                                       ByteRange range,
                                                                       int64_t leaf) {
  // From the latest backwards, until every byte has been covered.
  const std::vector<Arrival>& arrivals = ArrivalsOf(buffer);
  std::vector<const Arrival*> relevant;
  ByteSet covered;
  for (auto arrival = arrivals.rbegin(); arrival != arrivals.rend(); ++arrival) {
    const bool before = arrival->feed != nullptr ? arrival->leaf <= leaf : arrival->leaf < leaf;
    if (!before || arrival->range.end <= range.first || range.end <= arrival->range.first) continue;
    relevant.push_back(&*arrival);
    AddCovered(*arrival, covered);
    if (covered.Covers(range.first, range.end)) break;
  }
  std::reverse(relevant.begin(), relevant.end());
  return relevant;
}

int64_t RecordedContent::Version(int64_t buffer, ByteRange range, int64_t leaf) {
  const std::vector<Arrival>& arrivals = ArrivalsOf(buffer);
  for (auto arrival = arrivals.rbegin(); arrival != arrivals.rend(); ++arrival) {
    const bool before = arrival->feed != nullptr ? arrival->leaf <= leaf : arrival->leaf < leaf;
    if (before && range.first < arrival->range.end && arrival->range.first < range.end) {
      return arrival->leaf;
    }
  }
  return -1;
}

const storage::Snapshot* RecordedContent::ResultOf(const Arrival& arrival) const {
  return analyzer::RecordedResult(program_.leaves[arrival.leaf], *arrival.write);
}

Bytes RecordedContent::Replacement(const Arrival& arrival) const {
  if (arrival.write == nullptr || !replacements_) return nullptr;
  return replacements_(
      arrival.leaf, static_cast<size_t>(arrival.write - program_.uses[arrival.leaf].writes.data()));
}

bool RecordedContent::IsKept(const Arrival& arrival) const {
  if (contents_ != nullptr && contents_->synthetic()) return true;
  if (Replacement(arrival) != nullptr) return true;
  if (arrival.feed != nullptr) return !arrival.feed->digest.empty();
  const storage::Snapshot* result = ResultOf(arrival);
  return result != nullptr && result->has_payload;
}

Bytes RecordedContent::Load(const Arrival& arrival) const {
  if (contents_ != nullptr) {
    return arrival.feed != nullptr
               ? contents_->Get(*arrival.feed)
               : contents_->GetResult(program_.leaves[arrival.leaf], *arrival.write);
  }
  const std::string& digest =
      arrival.feed != nullptr ? arrival.feed->digest : ResultOf(arrival)->digest;
  return std::make_shared<const std::vector<uint8_t>>(program_.trace->Payload(digest));
}

void RecordedContent::CheckKept(const std::vector<const Arrival*>& relevant, int64_t buffer,
                                ByteRange range, int64_t leaf, const ByteSet& needed) const {
  for (size_t i = 0; i < relevant.size(); ++i) {
    if (IsKept(*relevant[i])) continue;
    ByteSet lost;
    AddTouched(*relevant[i], lost);
    // Those that come later may write them all the same.
    for (size_t later = i + 1; later < relevant.size(); ++later) {
      ByteSet written;
      AddCovered(*relevant[later], written);
      lost.Remove(written);
    }
    for (const ByteRange& part : lost.Within(range.first, range.end)) {
      if (needed.Within(part.first, part.end).empty()) continue;
      const bool inside = leaf < static_cast<int64_t>(program_.leaves.size());
      throw Error(ErrorKind::kTrace, (inside ? program_.Describe(leaf) : "the end of the program") +
                                         " needs what " + program_.Describe(relevant[i]->leaf) +
                                         " left in buffer " + std::to_string(buffer) + ", which " +
                                         program_.trace->path() +
                                         " does not hold; record with --payload all");
    }
  }
}

void RecordedContent::Check(int64_t buffer, ByteRange range, int64_t leaf) {
  CheckKept(Relevant(buffer, range, leaf), buffer, range, leaf, All(range));
}

std::vector<uint8_t> RecordedContent::Before(int64_t buffer, ByteRange range, int64_t leaf) {
  return Before(buffer, range, leaf, All(range));
}

std::vector<uint8_t> RecordedContent::Before(int64_t buffer, ByteRange range, int64_t leaf,
                                             const ByteSet& needed) {
  const std::vector<const Arrival*> relevant = Relevant(buffer, range, leaf);
  CheckKept(relevant, buffer, range, leaf, needed);
  std::vector<uint8_t> content(static_cast<size_t>(range.end - range.first), uint8_t{0});
  // Bytes of the buffer from `first` on, as far as they lie in the range.
  const auto lay = [&](const std::vector<uint8_t>& bytes, int64_t first) {
    const int64_t from = std::max(first, range.first);
    const int64_t until = std::min(first + static_cast<int64_t>(bytes.size()), range.end);
    if (from < until) {
      std::memcpy(&content[from - range.first], &bytes[from - first],
                  static_cast<size_t>(until - from));
    }
  };
  for (const Arrival* arrival : relevant) {
    if (!IsKept(*arrival)) {
      ByteSet lost;
      AddTouched(*arrival, lost);
      for (const ByteRange& part : lost.Within(range.first, range.end)) {
        std::fill(content.begin() + (part.first - range.first),
                  content.begin() + (part.end - range.first), uint8_t{0});
      }
      continue;
    }
    const Bytes replacement = Replacement(*arrival);
    const Bytes bytes = replacement != nullptr ? replacement : Load(*arrival);
    if (arrival->feed != nullptr) {
      lay(*bytes, 0);
      continue;
    }
    const storage::Layout& layout = *arrival->write->layout;
    const storage::Snapshot* snapshot = ResultOf(*arrival);
    const bool recorded = replacement == nullptr && snapshot != nullptr;
    if (recorded ? snapshot->packing == 0 : layout.IsDense()) {
      lay(*bytes, layout.FirstByte());
      continue;
    }
    // Between the elements lie other bytes, which stay.
    std::vector<uint8_t> span(static_cast<size_t>(layout.EndByte() - layout.FirstByte()));
    const int64_t from = std::max(range.first, layout.FirstByte());
    const int64_t until = std::min(range.end, layout.EndByte());
    std::memcpy(&span[from - layout.FirstByte()], &content[from - range.first],
                static_cast<size_t>(until - from));
    UnpackRowMajor(layout, bytes->data(), span.data());
    lay(span, layout.FirstByte());
  }
  return content;
}

}  // namespace acltape::replayer
