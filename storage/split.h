// The trace of a program of several ranks as one trace for each rank. Ids stay as they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/reader.h"

namespace acltape::storage {

// Processes of one rank: the rank itself, and workers that it started.
struct RankProcesses {
  int64_t rank = 0;  // -1: the processes without a rank that recorded calls
  std::vector<int64_t> processes;
};

// In the order of the ranks, those without one at the end.
std::vector<RankProcesses> ProcessesByRank(const Reader& trace);

// Writes a trace with all that is about these processes. The ledger is about all of them. Throws as
// TraceCopy.
void CopyProcesses(const Reader& trace, const RankProcesses& of, const std::string& path,
                   bool overwrite);

}  // namespace acltape::storage
