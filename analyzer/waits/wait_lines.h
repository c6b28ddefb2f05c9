// The waits of a program by line: where, for which work, how often and how long, and what a person
// can do about them. docs/commands.md#waits shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/lint/places.h"
#include "analyzer/lint/words.h"
#include "analyzer/waits/host_waits.h"

namespace acltape::analyzer::waits {

struct WaitLine {
  std::string where;     // "train.py:17 (main)"; empty: not known
  std::string waits_in;  // the outermost operator, or the function
  WaitKind kind = WaitKind::kSynchronise;
  int64_t waits = 0;
  int64_t total_ns = 0;
  int64_t longest_ns = 0;
  int64_t in_steps = 0;     // waits inside of steps
  int64_t in_steps_ns = 0;  // their time
  size_t longest = 0;       // index of the longest wait
  std::string waited_for;   // "aten::sum at train.py:12 on stream 2"; empty: no work
  // These count waits that are no operator's: nothing needs them, something does, or not known.
  int64_t not_needed = 0;
  int64_t needed = 0;
  int64_t not_known = 0;
  int64_t nothing = 0;  // found no work to wait for
  std::string why;      // the use that needs them, or why that is not known
  // "blocks the host 10 times: pin the memory"; empty: there is nothing to do about it.
  std::string advice;
};

// In order of time, the longest first.
std::vector<WaitLine> FindWaitLines(const Work& work, const HostWaits& waits,
                                    const lint::Places& places, lint::Words& words);

}  // namespace acltape::analyzer::waits
