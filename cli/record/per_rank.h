// record --per-rank: a trace for each rank, for programs on several machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace acltape::cli {

// "t.db" and 3 -> "t.rank3.db"; -1 -> "t.others.db".
std::string RankFile(const std::string& output, int64_t rank);

// The file in which all ranks of this machine are recorded until the program has ended:
// "t.HOST.db", because several machines may write to one folder.
std::string MachineFile(const std::string& output);

// Throws Error kUsage if a trace of a rank, or of the others, is there and may not be replaced.
void RefuseTracesOfRanks(const std::string& output, bool overwrite);

// Makes the traces of the ranks, and removes the one of the machine. Returns the files; none if no
// process had a rank, and the trace of the machine is left. Throws as storage::CopyProcesses; the
// trace of the machine is left then too.
std::vector<std::string> SplitByRank(const std::string& machine_file, const std::string& output,
                                     bool overwrite);

}  // namespace acltape::cli
