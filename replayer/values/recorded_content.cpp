#include "replayer/values/recorded_content.h"

#include <algorithm>
#include <cstring>

#include "analyzer/calls/record_more.h"
#include "analyzer/lowering/acl_leaf.h"
#include "analyzer/program/missing_values.h"
#include "storage/packing.h"

namespace acltape::replayer {
namespace {

using analyzer::ByteRange;
using analyzer::ByteSet;
using analyzer::Leaf;
using analyzer::TensorUse;

// Views with more elements than this are not split into runs of bytes (see AddElements). They are
// written over the earlier content, which is always right.
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
        Feed& feed = own_feeds_.emplace_back();
        feed.leaf = leaf.index;
        feed.buffer_id = snapshot.tensor.buffer_id;
        feed.bytes = snapshot.bytes;
        feed.first_byte = analyzer::FirstByteOf(program_, snapshot);
        if (snapshot.has_payload) feed.digest = snapshot.digest;
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
    arrivals.push_back({feed->leaf, feed, nullptr, {feed->first_byte, feed->end_byte()}, true});
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
  // An input of a leaf arrives before the leaf writes.
  std::stable_sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
    return a.leaf != b.leaf ? a.leaf < b.leaf : a.feed != nullptr && b.feed == nullptr;
  });
  return arrivals_.emplace(buffer, std::move(arrivals)).first->second;
}

void RecordedContent::AddTouched(const Arrival& arrival, ByteSet& set) {
  if (arrival.whole) {
    set.Add(arrival.range.first, arrival.range.end);
  } else {
    analyzer::AddElements(*arrival.write->layout, set);
  }
}

void RecordedContent::AddCovered(const Arrival& arrival, ByteSet& set) {
  if (!arrival.whole && arrival.write->layout->ElementCount() > kExactElements) return;
  AddTouched(arrival, set);
}

std::vector<const RecordedContent::Arrival*> RecordedContent::Relevant(int64_t buffer,
                                                                       ByteRange range,
                                                                       int64_t leaf) {
  // Go backwards from the latest arrival until every byte is covered.
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

Bytes RecordedContent::Derived(const Arrival& arrival) {
  if (arrival.write == nullptr || program_.level != analyzer::Level::kAcl) return nullptr;
  const auto known = derived_.find(arrival.leaf);
  if (known != derived_.end()) return known->second;
  const analyzer::Leaf& leaf = program_.leaves[arrival.leaf];
  Bytes bytes;
  const std::vector<TensorUse>& reads = program_.uses[arrival.leaf].reads;
  if (leaf.op->dialect == "aclrt" && leaf.kind == analyzer::LeafKind::kKernel) {
    if (reads.empty()) {
      bytes = analyzer::lowering::FilledBytes(leaf, *arrival.write->layout);
    } else {
      const storage::Layout& from = *reads[0].layout;
      const ByteRange range{from.FirstByte(), from.EndByte()};
      try {
        const std::vector<uint8_t> content = Before(reads[0].tensor.buffer_id, range, leaf.index);
        auto packed = std::make_shared<std::vector<uint8_t>>(from.ElementCount());
        PackRowMajor(from, content.data(), packed->data());
        bytes = std::move(packed);
      } catch (const Error&) {
        bytes = nullptr;  // the source was not kept
      }
    }
  }
  derived_.emplace(arrival.leaf, bytes);
  return bytes;
}

bool RecordedContent::IsKept(const Arrival& arrival) {
  if (contents_ != nullptr && contents_->synthetic()) return true;
  if (Replacement(arrival) != nullptr) return true;
  if (arrival.feed != nullptr) return !arrival.feed->digest.empty();
  const storage::Snapshot* result = ResultOf(arrival);
  return result != nullptr ? result->has_payload : Derived(arrival) != nullptr;
}

Bytes RecordedContent::Load(const Arrival& arrival) {
  if (arrival.feed == nullptr && ResultOf(arrival) == nullptr) {
    if (Bytes derived = Derived(arrival)) return derived;
  }
  if (contents_ != nullptr) {
    return arrival.feed != nullptr
               ? contents_->Get(*arrival.feed)
               : contents_->GetResult(program_.leaves[arrival.leaf], *arrival.write);
  }
  const std::string& digest =
      arrival.feed != nullptr ? arrival.feed->digest : ResultOf(arrival)->digest;
  return program_.Payload(digest);
}

// How to have an arrival that the trace did not keep.
std::string RecordedContent::Remedy(const Arrival& arrival) const {
  if (arrival.feed != nullptr) return analyzer::HowToRecordInputs(*program_.trace);
  return analyzer::HowToHaveResult(program_, arrival.leaf);
}

void RecordedContent::CheckKept(const std::vector<const Arrival*>& relevant, int64_t buffer,
                                ByteRange range, int64_t leaf, const ByteSet& needed) {
  for (size_t i = 0; i < relevant.size(); ++i) {
    if (IsKept(*relevant[i])) continue;
    ByteSet lost;
    AddTouched(*relevant[i], lost);
    // Later arrivals may have overwritten the lost bytes.
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
                                         program_.trace->path() + " does not hold; " +
                                         Remedy(*relevant[i]));
    }
  }
}

void RecordedContent::Check(int64_t buffer, ByteRange range, int64_t leaf, const ByteSet& needed) {
  CheckKept(Relevant(buffer, range, leaf), buffer, range, leaf, needed);
}

std::vector<uint8_t> RecordedContent::Before(int64_t buffer, ByteRange range, int64_t leaf) {
  return Before(buffer, range, leaf, All(range));
}

std::vector<uint8_t> RecordedContent::Before(int64_t buffer, ByteRange range, int64_t leaf,
                                             const ByteSet& needed) {
  const std::vector<const Arrival*> relevant = Relevant(buffer, range, leaf);
  CheckKept(relevant, buffer, range, leaf, needed);
  std::vector<uint8_t> content(static_cast<size_t>(range.end - range.first), uint8_t{0});
  // Writes bytes of the buffer that begin at `first`, as far as they lie in the range.
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
      lay(*bytes, arrival->feed->first_byte);
      continue;
    }
    const storage::Layout& layout = *arrival->write->layout;
    const storage::Snapshot* snapshot = ResultOf(*arrival);
    const bool recorded = replacement == nullptr && snapshot != nullptr;
    if (recorded ? snapshot->packing == 0 : layout.IsDense()) {
      lay(*bytes, layout.FirstByte());
      continue;
    }
    // The bytes between the elements keep their content.
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
