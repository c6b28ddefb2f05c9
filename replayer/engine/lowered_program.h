// A program with its device calls. Each kernel leaf is either lowered or marked as substituted.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analyzer/lowering/lowering.h"
#include "analyzer/program/program.h"
#include "replayer/values/contents.h"
#include "replayer/values/replay_options.h"
#include "replayer/values/replay_report.h"

namespace acltape::replayer {

struct LoweredProgram {
  const analyzer::Program* program = nullptr;
  std::vector<analyzer::lowering::Lowering> lowerings;  // by leaf index; empty for other kinds
  std::map<int64_t, std::string> substituted;           // leaf index to the reason
  std::vector<Note> notes;                              // divergences and substitutions, grouped
  int64_t temporary_bytes = 0;                          // most bytes that one leaf needs
  int64_t device_calls = 0;

  bool IsSubstituted(int64_t leaf) const { return substituted.count(leaf) != 0; }
};

// Lowers every kernel leaf. A leaf without a rule is substituted by its recorded results. So is a
// leaf whose operator is a key of `refused`, which maps operators to the device's reason. Throws
// Error kTrace, naming the operator, if the results were not recorded either.
LoweredProgram LowerProgram(const analyzer::Program& program, Contents& contents,
                            const std::map<std::string, std::string>& refused);

}  // namespace acltape::replayer
