// Finds errors inside the graphs of a script: work of two streams that touches the same bytes
// without an order, and results that are overwritten before their last reader. Only the operations
// of the script count, so that planned and planted errors are treated alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replayer/bisect/classification.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer::bisect {

// Two captured calls that touch the same bytes without an order. Calls are places in the step;
// `first` is issued first.
struct ScriptRace {
  size_t first = 0;
  size_t second = 0;
  bool first_writes = false;
  bool second_writes = false;
  int block = 0;  // block of the script
  int64_t first_byte = 0;
  int64_t end_byte = 0;
};
// Returns the races of each capture, in order of issue. There is at most one for the same two calls
// and the same kind of hazard.
std::vector<ScriptRace> FindScriptRaces(const script::MixedStep& step, const Script& script);

// `reader` reads bytes that `producer` wrote and `overwriter` has overwritten since.
struct Overwrite {
  size_t producer = 0;
  size_t overwriter = 0;
  size_t reader = 0;
  bool by_result = false;  // false: by a workspace
  int block = 0;
  int64_t first_byte = 0;
  int64_t end_byte = 0;
};
// Returns overwrites in the order of issue; at most one of the same three calls.
std::vector<Overwrite> FindOverwrites(const script::MixedStep& step, const Script& script);

// Returns a few sentences for people, the most helpful first. `script` is the step with exactly the
// liberties that were found.
std::vector<std::string> ExplainLiberties(const script::MixedStep& step, const Script& script,
                                          const Classification& classification);

}  // namespace acltape::replayer::bisect
