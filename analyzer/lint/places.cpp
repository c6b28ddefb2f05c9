#include "analyzer/lint/places.h"

#include "storage/cell.h"
#include "storage/checked_row.h"
#include "storage/database.h"

namespace acltape::analyzer::lint {

namespace {

void EachRow(const Work& work, const char* query,
             const std::function<void(int64_t first, int64_t second)>& visit) {
  storage::Statement rows(work.trace->database(), query);
  const storage::CheckedRow row(rows, work.trace->path(), "call_row");
  const std::string first(storage::NameOfColumn(rows, 0)), second(storage::NameOfColumn(rows, 1));
  while (rows.Next()) {
    visit(row.Id(first), row.Integer(1, second, 0, storage::kMostId));
  }
}

}  // namespace

Places::Places(const Work& work) : lines_(*work.trace) {
  if (!lines_.any()) return;
  places_.resize(work.size());
  forward_.resize(work.size());
  std::unordered_map<int64_t, int32_t> place_of_parent;
  std::unordered_map<int64_t, int32_t> place_of_leaf;  // also of leaves that are no calls of `work`
  EachRow(work, "SELECT call_id, stack_id FROM call WHERE stack_id IS NOT NULL",
          [&](int64_t call_id, int64_t stack_id) {
            place_of_leaf.emplace(call_id, static_cast<int32_t>(stack_id));
            const int64_t call = work.Find(call_id);
            if (call < 0) return;
            places_[call] = static_cast<int32_t>(stack_id);
            if (work.calls[call].parent_id != 0) {
              place_of_parent[work.calls[call].parent_id] = places_[call];
            }
          });
  const auto forward_places = ForwardPlaces(work, place_of_leaf, place_of_parent);
  for (size_t call = 0; call < work.size(); ++call) {
    const int64_t parent = work.calls[call].parent_id;
    if (const auto found = forward_places.find(parent); found != forward_places.end()) {
      places_[call] = found->second;
      forward_[call] = true;
    } else if (places_[call] == 0) {
      const auto found_parent = place_of_parent.find(parent);
      if (found_parent != place_of_parent.end()) places_[call] = found_parent->second;
    }
  }
}

// The place of the forward leaf, by the calls that enclose backward work: nodes of autograd, and
// the operators inside them.
std::unordered_map<int64_t, int32_t> Places::ForwardPlaces(
    const Work& work, const std::unordered_map<int64_t, int32_t>& place_of_leaf,
    const std::unordered_map<int64_t, int32_t>& place_of_parent) const {
  std::unordered_map<int64_t, int32_t> places;
  if (!lines_.has_forward_calls()) return places;
  EachRow(work, "SELECT call_id, forward_call FROM call_extra WHERE forward_call IS NOT NULL",
          [&](int64_t node, int64_t forward) {
            auto found = place_of_leaf.find(forward);
            if (found == place_of_leaf.end()) {
              found = place_of_parent.find(forward);
              if (found == place_of_parent.end()) return;
            }
            places.emplace(node, found->second);
          });
  if (places.empty()) return places;
  // A call begins before the calls inside it, so its number is the smaller one.
  EachRow(work,
          "SELECT call_id, parent_id FROM call_row WHERE parent_id IS NOT NULL ORDER BY call_id",
          [&](int64_t call_id, int64_t parent_id) {
            const auto found = places.find(parent_id);
            if (found != places.end()) places.emplace(call_id, found->second);
          });
  return places;
}

std::string Places::Text(size_t call) const {
  const std::string line = lines_.OfStack(Of(call));
  return line.empty() || !forward_[call] ? line : "backward of " + line;
}

}  // namespace acltape::analyzer::lint
