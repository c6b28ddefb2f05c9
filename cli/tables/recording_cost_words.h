// The cost of a recording in words: the ends of sentences of `record`, and values
// of facts of `info`. Each is empty where the trace does not tell, or where there is nothing worth
// telling.
#pragma once

#include <string>

#include "storage/recording_cost.h"

namespace acltape::cli {

struct RecordingCostWords {
  // "about 6.1 % of the busiest thread's time (main thread: 1.21 s of 20.1 s)"
  std::string took;
  // "main thread 300 ms; --ring-size 64M would have spared it"
  std::string waited;
  // "210.4 MiB/s (1.2 GiB in 5.80 s)"
  std::string values;
};

RecordingCostWords WordsOf(const storage::RecordingCost& cost);

// The words of a trace.
RecordingCostWords CostWordsOf(const storage::Reader& trace);

}  // namespace acltape::cli
