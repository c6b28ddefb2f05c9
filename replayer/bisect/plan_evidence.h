// What goes wrong inside the graphs of a script: work of two streams that touches the same bytes
// without an order, and results that are overwritten before their last reader. Both are judged by
// the operations alone, whatever planned or planted them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replayer/bisect/classification.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer {

// Two captured calls without an order; `first` is issued first. Places in the step.
struct ScriptRace {
  size_t first = 0;
  size_t second = 0;
  bool first_writes = false;
  bool second_writes = false;
  int block = 0;  // of the script
  int64_t first_byte = 0;
  int64_t end_byte = 0;
};
// Of each capture, in order of issue; at most one of two calls and a kind.
std::vector<ScriptRace> FindScriptRaces(const MixedStep& step, const Script& script);

// `reader` reads bytes on which `overwriter` has put something else since `producer` wrote them.
struct Overwrite {
  size_t producer = 0;
  size_t overwriter = 0;
  size_t reader = 0;
  bool by_result = false;  // else by a workspace
  int block = 0;
  int64_t first_byte = 0;
  int64_t end_byte = 0;
};
// In the order of issue; at most one of the same three calls.
std::vector<Overwrite> FindOverwrites(const MixedStep& step, const Script& script);

// Sentences for people, the most telling first, at most a handful; `script` is the step with the
// liberties that were found and no others.
std::vector<std::string> ExplainLiberties(const MixedStep& step, const Script& script,
                                          const Classification& classification);

}  // namespace acltape::replayer
