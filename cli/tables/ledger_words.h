// Entries of a trace's ledger, as people read them.
#pragma once

#include <string>

#include "storage/trace.h"

namespace acltape::cli {

struct LedgerWords {
  bool is_time = false;  // the entry counts time
  std::string count;     // "3"; of a time "1.25 s"
  std::string cause;
};

// An entry whose cause begins with "microseconds" counts those. Its count gets a unit, and its
// cause begins with "time" instead.
LedgerWords WordsOf(const storage::LedgerEntry& entry);

}  // namespace acltape::cli
