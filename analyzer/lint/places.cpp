#include "analyzer/lint/places.h"

#include "analyzer/call_line.h"
#include "storage/query.h"

namespace acltape::analyzer {

namespace {

// A leaf of a backward node gets the place of the leaf whose gradient the node computes.
void AddForwardPlaces(const Work& work, std::unordered_map<int64_t, int32_t>& place_of_leaf) {
  const storage::Reader& trace = *work.trace;
  if (!HoldsForwardCalls(trace)) return;
  storage::RunQuery(
      trace,
      "SELECT c.call_id, x.forward_call FROM call_extra x CROSS JOIN call_row c "
      "ON c.parent_id = x.call_id WHERE x.forward_call IS NOT NULL",
      [](const std::vector<std::string>&) {},
      [&](std::vector<storage::Cell>& row) {
        const auto forward = place_of_leaf.find(std::get<int64_t>(row.at(1)));
        if (forward == place_of_leaf.end()) return true;
        place_of_leaf.emplace(std::get<int64_t>(row.at(0)), forward->second);
        return true;
      });
}

}  // namespace

Places::Places(const Work& work) {
  const auto texts =
      storage::RunQuery(*work.trace, std::string("SELECT stack_id, ") + kLineOfFrames +
                                         " FROM stack WHERE " + kHasLine);
  if (texts.rows.empty()) return;
  for (const auto& row : texts.rows) {
    texts_.emplace(static_cast<int32_t>(std::get<int64_t>(row.at(0))),
                   std::get<std::string>(row.at(1)));
  }
  places_.resize(work.size());
  std::unordered_map<int64_t, int32_t> place_of_parent;
  storage::RunQuery(
      *work.trace, "SELECT call_id, stack_id FROM call_extra WHERE stack_id IS NOT NULL",
      [](const std::vector<std::string>&) {},
      [&](std::vector<storage::Cell>& row) {
        const int64_t call = work.Find(std::get<int64_t>(row.at(0)));
        if (call < 0) return true;
        places_[call] = static_cast<int32_t>(std::get<int64_t>(row.at(1)));
        if (work.calls[call].parent_id != 0) {
          place_of_parent[work.calls[call].parent_id] = places_[call];
        }
        return true;
      });
  AddForwardPlaces(work, place_of_parent);
  for (size_t call = 0; call < work.size(); ++call) {
    if (places_[call] != 0) continue;
    const auto found = place_of_parent.find(work.calls[call].parent_id);
    if (found != place_of_parent.end()) places_[call] = found->second;
  }
}

std::string Places::Text(size_t call) const {
  const auto found = texts_.find(Of(call));
  return found == texts_.end() ? "" : found->second;
}

}  // namespace acltape::analyzer
