// The calls of a program in the form in which the search for its steps reads them. It is built from
// a Program or from a Work (analyzer/steps/steps.cpp), so that both use the same search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "analyzer/calls/leaf_kind.h"
#include "analyzer/calls/uses.h"
#include "storage/trace.h"

namespace acltape::analyzer {

// A half-open range of places.
using PlaceRange = std::pair<size_t, size_t>;

struct OperatorSequence {
  using Visitor = std::function<void(const ByteAccess&)>;

  // The four lists have the same length.
  std::vector<int32_t> symbols;  // equal for equal operators
  std::vector<LeafKind> kinds;   // in an ACL program kHostRead where the host waits
  std::vector<storage::Phase> phases;
  // How many calls execute or read back at the place: 1, and 0 for views and their like. A call
  // that is captured does not execute; the execution of a graph counts as all that the graph holds.
  std::vector<int32_t> weights;

  // False for leaves of PyTorch: a loop of one of them, such as a million additions, is no sequence
  // of steps. In an ACL program copies and waits lie between places, and a place can be the
  // execution of a graph.
  bool one_place_can_be_a_step = true;
  // The places of each user or module range, once for each time that it was entered. Ranges without
  // calls are left out.
  std::vector<PlaceRange> ranges;
  // Visits the bytes that the call at a place reads and writes. Empty if nothing is known of them.
  std::function<void(size_t place, const Visitor& visitor)> accesses;

  size_t size() const { return symbols.size(); }
  void Add(int32_t symbol, LeafKind kind, storage::Phase phase) {
    symbols.push_back(symbol);
    kinds.push_back(kind);
    phases.push_back(phase);
    weights.push_back(kind >= LeafKind::kHostRead ? 1 : 0);
  }
  bool HostReads(size_t place) const { return kinds[place] == LeafKind::kHostRead; }
  // True if the place is the execution of a graph that holds more than one call.
  bool ExecutesGraph(size_t place) const { return weights[place] > 1; }
  void VisitAccesses(size_t place, const Visitor& visitor) const {
    if (accesses) accesses(place, visitor);
  }
  // True if the call makes values and reads none: an allocation, random numbers, a constant fill.
  bool MakesFromNothing(size_t place) const;
};

}  // namespace acltape::analyzer
