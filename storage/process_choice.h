// Chooses the process of a trace that is looked at. A trace may hold several: ranks of a
// distributed program, workers of a data loader. Their calls lie between each other by time alone.
// So all that makes steps, regions or replays of calls looks at one process.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace acltape::storage {

class Database;
class Reader;

// The id of the process that `wanted` names: an id of the table `process`, or "rank:" and a rank.
// Returns 0, which stands for all processes, when `wanted` is empty. Throws Error kUsage, which
// lists the processes, when the trace has none such.
int64_t FindProcess(Database& trace, const std::string& path, const std::string& wanted);

// Throws Error kUsage when the threads are of several processes: which there are, and how to choose
// one.
void RequireOneProcess(const Reader& trace, const std::set<int64_t>& threads);

}  // namespace acltape::storage
