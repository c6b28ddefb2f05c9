// Keeps the results of a step that are given to other processes, as they are at that moment: what a
// collective gives in turn overwrites them.
#include <algorithm>

#include "replayer/device/memory_plan.h"
#include "replayer/script/step_script.h"

namespace acltape::replayer::script {

using analyzer::GivenResult;
using analyzer::TensorUse;

// Returns the results of executed calls that a step gives away.
std::vector<GivenResult> StepScript::GivenOf(size_t m) const {
  std::vector<GivenResult> given = analyzer::GivenResults(program_, class_.matches[m]);
  std::erase_if(given, [this](const GivenResult& result) {
    return !Launches(result.place) || golden_[result.place];
  });
  return given;
}

// Makes room for the results that the executed steps give away.
void StepScript::PlaceGiven() {
  int64_t bytes = 0;
  for (const size_t match : options_.run_matches) {
    for (const GivenResult& result : GivenOf(match)) {
      const std::pair key(result.place, static_cast<int>(result.write));
      if (!given_.try_emplace(key, Spot{0, bytes}).second) continue;
      const storage::Layout& layout =
          *program_.uses[LeafAt(match, result.place)].writes[result.write].layout;
      bytes += AlignUp(layout.EndByte() - layout.FirstByte());
    }
  }
  if (given_.empty()) return;
  const int block = AddBlock("given", bytes);
  for (auto& [key, spot] : given_) spot.block = block;
}

void StepScript::FindGiven(size_t m, Mode mode) {
  given_before_.clear();
  given_now_.clear();
  if (given_.empty() || mode != Mode::kExecute) return;
  for (const GivenResult& result : GivenOf(m)) {
    const std::pair key(result.place, static_cast<int>(result.write));
    given_before_.emplace(result.next, key);
    given_now_.insert(key);
  }
}

// Copies what is given away right before a place, from the side that a collective would read.
void StepScript::KeepGiven(size_t m, size_t place) {
  const auto [first, end] = given_before_.equal_range(place);
  for (auto given = first; given != end; ++given) {
    const auto [from, write] = given->second;
    const TensorUse& use = program_.uses[LeafAt(m, from)].writes[write];
    const StepPlaces::Where where = places_.Find(m, use.tensor.buffer_id, *use.layout);
    const int64_t last = where.offset + use.layout->EndByte() - use.layout->FirstByte();
    const Spot to = given_.at(given->second);
    for (const Residence::Range& range : residence_[where.object].Of(where.offset, last)) {
      if (range.sides == 0) continue;
      const bool in_graph = (range.sides & static_cast<uint8_t>(Side::kGraph)) != 0;
      Emit(CopyBytes{to + (range.first - where.offset),
                     SpotOf(in_graph ? Side::kGraph : Side::kHome, where.object, range.first),
                     range.end - range.first, 0});
    }
  }
}

}  // namespace acltape::replayer::script
