#include "replayer/script/recorded_state.h"

#include <algorithm>
#include <cstring>

#include "replayer/packing.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer {

using analyzer::Leaf;
using analyzer::TensorUse;

void RecordedState::IndexFeeds() {
  if (indexed_) return;
  indexed_ = true;
  for (const Leaf& leaf : session_.program().leaves) {
    for (const Feed& feed : session_.contents().FeedsOf(leaf.index)) {
      feeds_[feed.buffer_id].push_back(&feed);
    }
  }
}

const std::vector<RecordedState::Arrival>& RecordedState::ArrivalsOf(int64_t buffer) {
  const auto found = arrivals_.find(buffer);
  if (found != arrivals_.end()) return found->second;
  IndexFeeds();
  std::vector<Arrival> arrivals;
  for (const Feed* feed : feeds_[buffer]) {
    arrivals.push_back({feed->leaf, feed, 0, 0, feed->bytes, true});
  }
  const analyzer::Program& program = session_.program();
  int64_t last = -1;
  const auto use = program.buffers.find(buffer);
  if (use != program.buffers.end()) {
    for (const analyzer::Access& access : use->second.accesses) {
      if (!access.write || access.leaf == last) continue;
      last = access.leaf;
      const std::vector<TensorUse>& writes = program.uses[access.leaf].writes;
      for (size_t w = 0; w < writes.size(); ++w) {
        const storage::Layout& layout = *writes[w].layout;
        if (writes[w].tensor.buffer_id != buffer || layout.ElementCount() == 0) continue;
        arrivals.push_back({access.leaf, nullptr, static_cast<int>(w), layout.FirstByte(),
                            layout.EndByte(), layout.IsDense()});
      }
    }
  }
  // What is brought for a leaf is there before the leaf writes.
  std::stable_sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
    return a.leaf != b.leaf ? a.leaf < b.leaf : a.feed != nullptr && b.feed == nullptr;
  });
  return arrivals_.emplace(buffer, std::move(arrivals)).first->second;
}

std::vector<const RecordedState::Arrival*> RecordedState::Relevant(int64_t buffer, int64_t first,
                                                                   int64_t end,
                                                                   int64_t before_leaf) {
  std::vector<const Arrival*> relevant;
  for (const Arrival& arrival : ArrivalsOf(buffer)) {
    const bool before =
        arrival.feed != nullptr ? arrival.leaf <= before_leaf : arrival.leaf < before_leaf;
    if (!before || arrival.end_byte <= first || end <= arrival.first_byte) continue;
    if (arrival.whole && arrival.first_byte <= first && end <= arrival.end_byte) relevant.clear();
    relevant.push_back(&arrival);
  }
  return relevant;
}

int64_t RecordedState::Version(int64_t buffer, int64_t first, int64_t end, int64_t before_leaf) {
  const auto relevant = Relevant(buffer, first, end, before_leaf);
  return relevant.empty() ? -1 : relevant.back()->leaf;
}

void RecordedState::Check(int64_t buffer, int64_t first, int64_t end, int64_t before_leaf) {
  if (session_.contents().synthetic()) return;
  const analyzer::Program& program = session_.program();
  for (const Arrival* arrival : Relevant(buffer, first, end, before_leaf)) {
    if (arrival->feed != nullptr) continue;  // looked at when the contents were opened
    const storage::Snapshot* snapshot = analyzer::RecordedResult(
        program.leaves[arrival->leaf], program.uses[arrival->leaf].writes[arrival->write]);
    if (snapshot != nullptr && snapshot->has_payload) continue;
    throw Error(ErrorKind::kTrace, "the state at the begin of a step holds the result of " +
                                       program.Describe(arrival->leaf) + ", which " +
                                       program.trace->path() +
                                       " does not hold; record with --payload all");
  }
}

std::vector<uint8_t> RecordedState::Content(int64_t buffer, int64_t first, int64_t end,
                                            int64_t before_leaf) {
  Check(buffer, first, end, before_leaf);
  const analyzer::Program& program = session_.program();
  std::vector<uint8_t> content(static_cast<size_t>(end - first), uint8_t{0});
  // Bytes [from, until) of the buffer, given as the bytes from `source_first` on.
  const auto lay = [&](const uint8_t* source, int64_t source_first, int64_t from, int64_t until) {
    from = std::max(from, first);
    until = std::min(until, end);
    if (from < until)
      std::memcpy(&content[from - first], source + (from - source_first),
                  static_cast<size_t>(until - from));
  };
  for (const Arrival* arrival : Relevant(buffer, first, end, before_leaf)) {
    if (arrival->feed != nullptr) {
      const Bytes bytes = session_.contents().Get(*arrival->feed);
      lay(bytes->data(), 0, 0, std::min<int64_t>(arrival->feed->bytes, bytes->size()));
      continue;
    }
    const Leaf& leaf = program.leaves[arrival->leaf];
    const TensorUse& use = program.uses[arrival->leaf].writes[arrival->write];
    const storage::Layout& layout = *use.layout;
    const Bytes packed = session_.contents().GetResult(leaf, use);
    const storage::Snapshot* snapshot = analyzer::RecordedResult(leaf, use);
    const bool address_order = snapshot != nullptr ? snapshot->packing == 0 : layout.IsDense();
    if (address_order) {
      lay(packed->data(), layout.FirstByte(), layout.FirstByte(), layout.EndByte());
      continue;
    }
    // Between the elements lie other bytes, which stay.
    std::vector<uint8_t> span(static_cast<size_t>(layout.EndByte() - layout.FirstByte()));
    const int64_t from = std::max(first, layout.FirstByte());
    const int64_t until = std::min(end, layout.EndByte());
    std::memcpy(&span[from - layout.FirstByte()], &content[from - first],
                static_cast<size_t>(until - from));
    UnpackRowMajor(layout, packed->data(), span.data());
    lay(span.data(), layout.FirstByte(), layout.FirstByte(), layout.EndByte());
  }
  return content;
}

Bytes RecordedContent(Session& session, int64_t buffer_id, int64_t before_leaf) {
  const int64_t bytes = session.program().buffers.at(buffer_id).bytes;
  return std::make_shared<const std::vector<uint8_t>>(
      RecordedState(session).Content(buffer_id, 0, bytes, before_leaf));
}

}  // namespace acltape::replayer
