// Finds arguments of the host that a graph keeps from its capture although the program ran the same
// work with others: numbers, lists, slices. Compared are runs of the same operators from the same
// lines of the program, which are warm-ups, checks, and calls that the program meant the graph to
// serve.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

struct BakedArgument {
  size_t graph = 0;    // index in OwnGraphs::graphs
  uint32_t entry = 0;  // the held entry
  uint32_t other = 0;  // an entry that ran eagerly with another value
  std::string name;
  std::string value;  // in the graph
  std::string other_value;
  size_t values = 0;  // number of different ones over the graph and the runs
  bool list = false;
};

// A run counts if its inputs from outside have the shapes of the capture's: on other shapes it is
// another kind of call, such as the prompt beside the token after it. Runs with whose arguments
// some graph of these lines was captured do not count: that graph serves them. Neither do launches
// that lie in task groups which the program updates, runs beside the graph whose results the
// program uses, one change before the capture after which the program stayed with the captured
// value (its last runs had it), seeds of random numbers, nor graphs that are executed less than
// twice. Of calls of the interface the launches are compared; one launch alone needs a line.
std::vector<BakedArgument> FindBakedArguments(const OwnGraphs& graphs,
                                              const std::function<int32_t(size_t)>& place_of);

}  // namespace acltape::analyzer::executions
