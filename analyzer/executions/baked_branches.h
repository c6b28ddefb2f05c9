// Finds branches of the program that a graph keeps from its capture although the program took
// others in eager runs of the same function: a flag, a count of steps, a module that trains, a
// value that was read before the capture, the turns of a loop.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

struct BakedBranch {
  size_t graph = 0;  // index in OwnGraphs::graphs
  // Entries where the two part; -1: that side does nothing there.
  int64_t held = -1;
  int64_t eager = -1;
  uint32_t common = 0;   // a held entry of the same function, which both have
  size_t held_work = 0;  // entries of each side that the other one lacks
  size_t eager_work = 0;
};

// `place_of` gives the line of an entry as a number, `function_of` that of its function; 0: not
// known. An eager run counts if it begins or ends as the capture does, on inputs of equal shapes,
// and if what follows, or what the program reads, depends on the work that only one of the two
// does. Runs that some graph holds do not count, nor do runs beside the graph whose results the
// program uses, one change before the capture after which the program stayed with the captured
// branch, a first run that makes what later ones use, and a branch with a task group that the
// program updates, which only a capture can take. Lines of backward passes, and different
// work of one line, are no branch, but for dropout and for a line that is repeated.
std::vector<BakedBranch> FindBakedBranches(const OwnGraphs& graphs,
                                           const std::function<int32_t(size_t)>& place_of,
                                           const std::function<int32_t(size_t)>& function_of);

}  // namespace acltape::analyzer::executions
