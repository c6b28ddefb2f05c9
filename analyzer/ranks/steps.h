// The steps of the ranks of a program, side by side.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyzer/ranks/collectives.h"

namespace acltape::analyzer::ranks {

// A step of one rank, from the begin of its first call to the end of its last one on the host.
struct StepTime {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  int64_t ns() const { return end_ns - begin_ns; }
};

struct RankSteps {
  // By process, in order: those that the program marked, else those that repeat. A process whose
  // steps nobody knows has none.
  std::map<int64_t, std::vector<StepTime>> by_process;
  bool guessed = false;    // a process has no steps that the program marked
  bool looked_for = true;  // false: the trace is too large to look for steps that repeat

  // How many steps each rank has at least.
  size_t common() const;
  // "9 on each rank", or "rank 0 9, rank 1 8".
  std::string CountsText(const Communication& all) const;
};

RankSteps FindRankSteps(const storage::Reader& trace, const Communication& all);

}  // namespace acltape::analyzer::ranks
