#include "replayer/script/step_state.h"

#include <algorithm>

namespace acltape::replayer::script {

using analyzer::Access;
using analyzer::ByteSet;
using analyzer::TensorUse;

namespace {

// The first access of a buffer by a leaf from `first` on.
std::vector<Access>::const_iterator FromLeaf(const std::vector<Access>& accesses, int64_t first) {
  return std::partition_point(accesses.begin(), accesses.end(),
                              [first](const Access& access) { return access.leaf < first; });
}

}  // namespace

StepState::Place StepState::PlaceOf(size_t match, size_t operand) const {
  const analyzer::StepMatch& step = class_.matches[match];
  const analyzer::OperandPlace& place = step.operands[operand];
  const analyzer::StepRange& leaves = program_.work.steps[step.step_index];
  const int64_t first = place.first_byte;
  const int64_t end = first + class_.operands[operand].bytes();
  const std::vector<Access>& accesses = program_.buffers.at(place.buffer_id).accesses;
  const auto use = std::find_if(
      FromLeaf(accesses, leaves.first), accesses.end(),
      [&](const Access& access) { return first < access.end_byte && access.first_byte < end; });
  return {place.buffer_id, {first, end}, use == accesses.end() ? leaves.end : use->leaf};
}

ByteSet StepState::Needed(size_t match, const Place& place) const {
  const int64_t end = program_.work.steps[class_.matches[match].step_index].end;
  const std::vector<Access>& accesses = program_.buffers.at(place.buffer_id).accesses;
  ByteSet needed;
  ByteSet known;
  int64_t last = -1;
  for (auto access = FromLeaf(accesses, place.first_use); access != accesses.end(); ++access) {
    if (access->leaf >= end) break;
    const bool apart =
        access->end_byte <= place.range.first || place.range.end <= access->first_byte;
    if (apart || access->leaf == last) continue;
    last = access->leaf;
    for (const TensorUse& read : program_.uses[last].reads) {
      if (read.tensor.buffer_id != place.buffer_id) continue;
      ByteSet elements;
      analyzer::AddElements(*read.layout, elements);
      elements.Remove(known);
      needed.Add(elements);
    }
    for (const TensorUse& write : program_.uses[last].writes) {
      if (write.tensor.buffer_id == place.buffer_id) analyzer::AddElements(*write.layout, known);
    }
  }
  return needed;
}

StepState::Version StepState::VersionOf(size_t match, size_t operand) {
  const Place place = PlaceOf(match, operand);
  return {place.buffer_id, place.range.first,
          recorded_.Version(place.buffer_id, place.range, place.first_use)};
}

std::vector<uint8_t> StepState::Content(size_t match, size_t operand) {
  const Place place = PlaceOf(match, operand);
  return recorded_.Before(place.buffer_id, place.range, place.first_use, Needed(match, place));
}

void StepState::Check(size_t match, size_t operand) {
  const Place place = PlaceOf(match, operand);
  recorded_.Check(place.buffer_id, place.range, place.first_use, Needed(match, place));
}

void StepState::CheckAll() {
  for (size_t match = 0; match < class_.matches.size(); ++match) {
    for (size_t operand = 0; operand < class_.operands.size(); ++operand) Check(match, operand);
  }
}

}  // namespace acltape::replayer::script
