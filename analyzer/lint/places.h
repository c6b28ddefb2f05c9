// The lines of the program from which the calls of a work come, for all calls at once.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/program/source_lines.h"

namespace acltape::analyzer::lint {

class Places {
 public:
  // Loads the lines. A trace without lines costs one query.
  explicit Places(const Work& work);

  // False if the trace has no lines at all.
  bool any() const { return lines_.any(); }

  // The id of the place of a call (an index in Work::calls); 0: not known. A call without a place
  // of its own gets the place of a call with the same parent, because both come from one operator
  // of the framework. An allocation is such a call: it is made with locks held, under which no line
  // can be read. Backward work gets the place of the leaf whose gradient it computes.
  int32_t Of(size_t call) const { return places_.empty() ? 0 : places_[call]; }
  // The place as text, as SourceLines::Of gives it. Empty if it is not known.
  std::string Text(size_t call) const;
  // The line itself; null if it is not known.
  const SourceLine* Line(size_t call) const { return lines_.Find(Of(call)); }

 private:
  std::unordered_map<int64_t, int32_t> ForwardPlaces(
      const Work& work, const std::unordered_map<int64_t, int32_t>& place_of_leaf,
      const std::unordered_map<int64_t, int32_t>& place_of_parent) const;

  SourceLines lines_;
  std::vector<int32_t> places_;  // by call
  std::vector<bool> forward_;    // by call: the place is that of the forward leaf
};

}  // namespace acltape::analyzer::lint
