// Finds results that a graph goes on writing although the program has put another tensor in their
// place: an attribute that the captured code set, and that somebody set anew since. The program
// reads the new tensor, and no execution writes it.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

struct ReplacedResult {
  uint32_t execution = 0;    // index in OwnGraphs::turns of the first one after that
  uint32_t writer = 0;       // the held entry that makes the result
  uint32_t replacement = 0;  // the entry that made the tensor in its place
  uint32_t reader = 0;       // the first entry that reads that one after the execution
};

// A result counts if it was alive when its capture had ended, and ended later, when a tensor of the
// same shape and type had just been made. It needs a trace that knows the ends of storages.
std::vector<ReplacedResult> FindReplacedResults(const OwnGraphs& graphs);

}  // namespace acltape::analyzer::executions
