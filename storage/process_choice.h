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

// The environment variable by which a command says it to everything that it opens and starts: an
// id of the table `process`, or "rank:" and a rank.
inline constexpr char kProcessVariable[] = "ACLTAPE_PROCESS";

// The process that the environment asks for; 0: all. Throws Error kUsage, which lists the
// processes, when the trace has none such.
int64_t ChosenProcess(Database& trace, const std::string& path);

// Throws Error kUsage when the threads are of several processes: which there are, and how to choose
// one.
void RequireOneProcess(const Reader& trace, const std::set<int64_t>& threads);

}  // namespace acltape::storage
