#include "replayer/script/step_places.h"

#include <algorithm>

#include "replayer/device/memory_plan.h"

namespace acltape::replayer::script {

StepPlaces::StepPlaces(const analyzer::Program& program, const analyzer::StepTemplate& step_class,
                       const StepLayout& layout)
    : class_(step_class) {
  for (const int64_t buffer : step_class.internal) {
    StepObject object;
    object.buffer = buffer;
    object.bytes = InternalBytes(program, step_class, buffer);
    object.graph = layout.internal.at(buffer);
    objects_.push_back(object);
  }
  first_operand_ = static_cast<int>(objects_.size());
  for (size_t i = 0; i < step_class.operands.size(); ++i) {
    StepObject object;
    object.buffer = step_class.operands[i].buffer_id;
    object.bytes = step_class.operands[i].bytes();
    object.operand = static_cast<int>(i);
    object.graph = layout.slots[i];
    objects_.push_back(object);
  }
  for (StepObject& object : objects_) {
    object.home = home_bytes_;
    home_bytes_ += AlignUp(std::max<int64_t>(object.bytes, 1));
  }
}

const std::unordered_map<int64_t, std::vector<int>>& StepPlaces::ObjectsOf(size_t match) {
  const auto found = objects_of_.find(match);
  if (found != objects_of_.end()) return found->second;
  const analyzer::StepMatch& own = class_.matches[match];
  std::unordered_map<int64_t, std::vector<int>> objects;
  for (int i = 0; i < first_operand_; ++i) {
    const auto partner = own.internal.find(objects_[i].buffer);
    if (partner != own.internal.end()) objects[partner->second].push_back(i);
  }
  for (size_t i = 0; i < own.operands.size(); ++i) {
    objects[own.operands[i].buffer_id].push_back(ObjectOfOperand(i));
  }
  return objects_of_.emplace(match, std::move(objects)).first->second;
}

int64_t StepPlaces::FirstByte(size_t match, int object) const {
  const int operand = objects_[object].operand;
  return operand < 0 ? 0 : class_.matches[match].operands[operand].first_byte;
}

StepPlaces::Where StepPlaces::Find(size_t match, int64_t buffer, const storage::Layout& layout) {
  const auto& objects = ObjectsOf(match);
  const auto found = objects.find(buffer);
  if (found != objects.end()) {
    for (const int object : found->second) {
      const int64_t offset = layout.FirstByte() - FirstByte(match, object);
      if (offset >= 0 && offset < objects_[object].bytes) return {object, offset};
    }
  }
  throw Error(ErrorKind::kDevice,
              "buffer " + std::to_string(buffer) + " has no place in the captured step");
}

std::vector<StepPlaces::Part> StepPlaces::Parts(size_t match, int64_t buffer, int64_t first,
                                                int64_t end) {
  std::vector<Part> parts;
  const auto& objects = ObjectsOf(match);
  const auto found = objects.find(buffer);
  if (found == objects.end()) return parts;
  for (const int object : found->second) {
    Part part;
    part.object = object;
    const int64_t begin = FirstByte(match, object);
    part.first = std::max(begin, first);
    part.offset = part.first - begin;
    part.bytes = std::min(begin + objects_[object].bytes, end) - part.first;
    if (part.bytes > 0) parts.push_back(part);
  }
  return parts;
}

void Residence::Split(int64_t offset) {
  auto next = from_.upper_bound(offset);
  const uint8_t sides = std::prev(next)->second;
  from_.emplace(offset, sides);
}

void Residence::Set(int64_t first, int64_t end, uint8_t sides) {
  if (first >= end) return;
  Split(first);
  Split(end);
  from_.erase(from_.upper_bound(first), from_.lower_bound(end));
  from_[first] = sides;
}

std::vector<Residence::Range> Residence::Of(int64_t first, int64_t end) const {
  std::vector<Range> ranges;
  for (auto part = std::prev(from_.upper_bound(first)); part != from_.end() && part->first < end;
       ++part) {
    const auto next = std::next(part);
    const Range range{std::max(first, part->first),
                      next == from_.end() ? end : std::min(end, next->first), part->second};
    if (!ranges.empty() && ranges.back().sides == range.sides) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

}  // namespace acltape::replayer::script
