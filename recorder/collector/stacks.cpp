#include "recorder/collector/stacks.h"

#include <string>

namespace acltape::collector {

bool Stacks::Take(const wire::PlaceRecord& place, std::string_view file,
                  std::string_view function) {
  if (place.place_id == 0) return false;
  storage::Writer::Frame frame{std::string(file), place.line, std::string(function)};
  const bool users = (place.flags & wire::kPlaceUsers) != 0;
  if ((place.flags & wire::kPlaceWhole) == 0) {
    writer_.AddStack(place.place_id, {std::move(frame)}, users ? 0 : -1);
    return true;
  }
  // A caller is announced before what it calls, so a chain of callers has no cycle.
  if (place.outer_id != 0 && nodes_.count(place.outer_id) == 0) return false;
  return nodes_.try_emplace(place.place_id, Node{std::move(frame), place.outer_id, users}).second;
}

void Stacks::Use(uint32_t place_id) {
  const auto used = nodes_.find(place_id);
  if (used == nodes_.end() || used->second.written) return;
  used->second.written = true;
  std::vector<storage::Writer::Frame> frames;
  int64_t user_frame = -1;
  for (auto node = used; node != nodes_.end(); node = nodes_.find(node->second.outer_id)) {
    if (node->second.users && user_frame < 0) user_frame = static_cast<int64_t>(frames.size());
    frames.push_back(node->second.frame);
  }
  writer_.AddStack(place_id, frames, user_frame);
}

}  // namespace acltape::collector
