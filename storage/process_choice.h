// Chooses the process of a trace that is looked at. A trace may hold several: ranks of a
// distributed program, workers of a data loader. Their calls lie between each other by time alone.
// So all that makes steps, regions or replays of calls looks at one process.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "storage/trace_part.h"

namespace acltape::storage {

class Database;
class Reader;

// The name that PyTorch gives to the processes of a DataLoader (torch/utils/data/_utils/worker.py).
inline constexpr std::string_view kDataLoaderWorker = "pt_data_worker";

// "rank:2" names a process by its rank (RanksOfProcesses).
inline constexpr std::string_view kRankPrefix = "rank:";
std::string RankText(int64_t rank);

// The id of the process that `wanted` names: an id of the table `process`, or "rank:" and a rank.
// Returns 0, which stands for all processes, when `wanted` is empty. Throws Error kUsage, which
// lists the processes, when the trace has none such.
int64_t FindProcess(Database& trace, const std::string& path, const std::string& wanted);

// The process that stands for a trace of several when none is chosen: the one that put work on a
// device, if it is the only one that did; of several that opened one, the only one that launched an
// operator. In a program without a device it is the only one that is
// no worker of a DataLoader. 0: none, or the trace has one process, or the reader looks at one.
// The other processes are then left out of steps.
int64_t DefaultProcess(const Reader& trace);

// "of 3 processes in 't.db' this is about 1 (python3, pid 9217); --process picks another", where
// DefaultProcess chooses one; else empty.
std::string ChosenProcessText(const Reader& trace);

// The parts of a trace that are programs of their own: one for each process whose calls can be
// looked at. It is the part of the reader when that is one process, or when one stands for all.
std::vector<TracePart> ProgramsOf(const Reader& trace);

// The threads of other processes than the default one; empty where there is none.
std::set<int64_t> ThreadsLeftOut(const Reader& trace);

// Throws Error kUsage when the threads are of several processes: which there are, and how to choose
// one.
void RequireOneProcess(const Reader& trace, const std::set<int64_t>& threads);

}  // namespace acltape::storage
