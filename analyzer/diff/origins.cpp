#include "analyzer/diff/origins.h"

#include <algorithm>
#include <map>
#include <string>

#include "analyzer/program/acl_leaves.h"
#include "analyzer/program/backward_line.h"
#include "analyzer/program/source_lines.h"

namespace acltape::analyzer::diff {
namespace {

bool IsAlone(const DiffRow& row) { return row.a_calls.empty() || row.b_calls.empty(); }

// The line of a row's call without its direction, so that a backward pass is at the place of its
// forward pass.
std::string LineOf(const DiffRow& row, const SourceLines& a, const SourceLines& b) {
  const bool in_a = !row.a_calls.empty();
  std::string line =
      (in_a ? a : b).Of(RecordedCall(in_a ? row.a_calls.back() : row.b_calls.back()));
  return line.starts_with(kBackwardOf) ? line.substr(kBackwardOf.size()) : line;
}

// Equal keys are one place. Calls that only one program has are one change of their line, whichever
// operators they are.
std::string PlaceOf(const DiffRow& row, const std::string& line) {
  const std::string side = row.a_calls.empty() ? "B" : row.b_calls.empty() ? "A" : "";
  if (IsAlone(row)) return side + " " + line;
  return std::string(DiffCauseName(row.cause)) + " " + line + " " + row.a_op + " " + row.b_op;
}

}  // namespace

bool HasOwnCause(const DiffRow& row) {
  return row.cause == DiffCause::kOrigin || row.cause == DiffCause::kStructural ||
         row.cause == DiffCause::kInput;
}

std::vector<DiffPropagation> FindPropagation(const DiffReport& report, const storage::Reader& a,
                                             const storage::Reader& b) {
  const SourceLines lines_of_a(a);
  const SourceLines lines_of_b(b);
  std::vector<DiffPropagation> places;
  std::map<std::string, size_t> place_of_key;
  std::map<int64_t, size_t> place_of_row;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const DiffRow& row = report.rows[i];
    if (!HasOwnCause(row) || !row.picked) continue;
    const std::string line = LineOf(row, lines_of_a, lines_of_b);
    const std::string key = line.empty() ? std::to_string(i) : PlaceOf(row, line);
    const auto [place, created] = place_of_key.try_emplace(key, places.size());
    if (created) places.emplace_back().origin = static_cast<int64_t>(i);
    ++places[place->second].rows;
    place_of_row[static_cast<int64_t>(i)] = place->second;
  }
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const DiffRow& row = report.rows[i];
    const auto found = place_of_row.find(row.origin);
    if (row.origin < 0 || found == place_of_row.end()) continue;
    DiffPropagation& place = places[found->second];
    if (row.cause == DiffCause::kInherited) {
      ++place.inherited;
      place.depth = std::max(place.depth, row.depth);
      place.last = static_cast<int64_t>(i);
    } else {
      ++place.absorbed;
      if (place.first_absorbed < 0) place.first_absorbed = static_cast<int64_t>(i);
    }
  }
  return places;
}

}  // namespace acltape::analyzer::diff
