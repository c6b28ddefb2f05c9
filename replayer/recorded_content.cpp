#include "replayer/recorded_content.h"

#include <algorithm>
#include <cstring>
#include <limits>

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

}  // namespace

RecordedContent::RecordedContent(const analyzer::Program& program) : program_(program) {
  for (const Leaf& leaf : program.leaves) {
    for (const storage::Snapshot& snapshot : leaf.before) {
      events_[snapshot.tensor.buffer_id].push_back({leaf.index, &snapshot, 0});
    }
    const std::vector<TensorUse>& writes = program.uses[leaf.index].writes;
    for (size_t w = 0; w < writes.size(); ++w) {
      if (writes[w].layout->ElementCount() == 0) continue;
      events_[writes[w].tensor.buffer_id].push_back({leaf.index, nullptr, static_cast<int>(w)});
    }
  }
}

void RecordedContent::AddTouched(const Event& event, ByteSet& set) const {
  if (event.input != nullptr) {
    set.Add(0, event.input->bytes);
  } else {
    AddElements(*program_.uses[event.leaf].writes[event.write].layout, set);
  }
}

void RecordedContent::AddCovered(const Event& event, ByteSet& set) const {
  if (event.input == nullptr) {
    const storage::Layout& layout = *program_.uses[event.leaf].writes[event.write].layout;
    if (!layout.IsDense() && layout.ElementCount() > kExactElements) return;
  }
  AddTouched(event, set);
}

bool RecordedContent::Load(const Event& event, std::vector<uint8_t>& content) const {
  const storage::Reader& trace = *program_.trace;
  if (event.input != nullptr) {
    if (!event.input->has_payload) return false;
    const std::vector<uint8_t> bytes = trace.Payload(event.input->digest);
    std::memcpy(content.data(), bytes.data(), std::min(bytes.size(), content.size()));
    return true;
  }
  const TensorUse& use = program_.uses[event.leaf].writes[event.write];
  const storage::Snapshot* result = analyzer::RecordedResult(program_.leaves[event.leaf], use);
  if (result == nullptr || !result->has_payload) return false;
  const std::vector<uint8_t> packed = trace.Payload(result->digest);
  const int64_t first = use.layout->FirstByte();
  const int64_t end = use.layout->EndByte();
  if (result->packing == 0) {
    const int64_t room = static_cast<int64_t>(content.size()) - first;
    const int64_t bytes = std::min<int64_t>(static_cast<int64_t>(packed.size()), room);
    if (bytes > 0) std::memcpy(content.data() + first, packed.data(), bytes);
    return true;
  }
  if (static_cast<int64_t>(content.size()) >= end) {
    UnpackRowMajor(*use.layout, packed.data(), content.data() + first);
    return true;
  }
  std::vector<uint8_t> larger(end);
  std::memcpy(larger.data(), content.data(), content.size());
  UnpackRowMajor(*use.layout, packed.data(), larger.data() + first);
  std::memcpy(content.data(), larger.data(), content.size());
  return true;
}

std::vector<uint8_t> RecordedContent::Before(int64_t buffer_id, int64_t leaf, int64_t end,
                                             const ByteSet& needed) const {
  std::vector<uint8_t> content(end, 0);
  const auto found = events_.find(buffer_id);
  if (found == events_.end()) return content;
  // From the latest backwards, until every byte has been covered; then in order.
  std::vector<const Event*> chosen;
  ByteSet covered;
  for (auto event = found->second.rbegin(); event != found->second.rend(); ++event) {
    if (event->leaf > leaf || (event->leaf == leaf && event->input == nullptr)) continue;
    if (covered.Covers(0, end)) break;
    chosen.push_back(&*event);
    AddCovered(*event, covered);
  }
  for (auto event = chosen.rbegin(); event != chosen.rend(); ++event) {
    if (Load(**event, content)) continue;
    ByteSet lost;
    AddTouched(**event, lost);
    for (const ByteRange& part : lost.Within(0, end)) {
      std::fill(content.begin() + part.first, content.begin() + part.end, uint8_t{0});
    }
    // Those that come later may write them all the same.
    for (auto later = event + 1; later != chosen.rend(); ++later) {
      ByteSet written;
      AddCovered(**later, written);
      lost.Remove(written);
    }
    for (const ByteRange& part : lost.Within(0, end)) {
      if (needed.Within(part.first, part.end).empty()) continue;
      throw Error(ErrorKind::kTrace,
                  program_.Describe(leaf) + " needs what " + program_.Describe((*event)->leaf) +
                      " left in buffer " + std::to_string(buffer_id) + ", which " +
                      program_.trace->path() + " does not hold; record with --payload all");
    }
  }
  return content;
}

std::vector<uint8_t> RecordedContent::Before(int64_t buffer_id, int64_t leaf) const {
  const int64_t end = program_.buffers.at(buffer_id).bytes;
  ByteSet all;
  all.Add(0, end);
  return Before(buffer_id, leaf, end, all);
}

}  // namespace acltape::replayer
