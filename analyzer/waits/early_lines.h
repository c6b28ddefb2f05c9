// Waits of streams that come too early, by line, as sentences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/lint/places.h"
#include "analyzer/lint/words.h"
#include "analyzer/waits/early_waits.h"

namespace acltape::analyzer::waits {

struct EarlyLine {
  std::string where;  // the line of the wait; empty: not known
  int64_t waits = 0;
  int64_t stream = 0;          // the waiting one
  int64_t awaited_stream = 0;  // the awaited one
  std::string awaited;         // the work that it waits for
  std::string needed_by;       // the first call that needs it; empty: none
  int64_t between = 0;         // pieces of work that could run beside it, over all waits
  int64_t device_ns = 0;       // the most that could be saved, over all waits; 0: not known
  std::string advice;          // "waits too early: nothing on stream 2 needs ..."
};

// Those with most waits first.
std::vector<EarlyLine> FindEarlyLines(const Work& work, const std::vector<EarlyWait>& waits,
                                      const lint::Places& places, lint::Words& words);

}  // namespace acltape::analyzer::waits
