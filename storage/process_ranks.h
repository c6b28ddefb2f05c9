// The ranks of a distributed program, by process.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace acltape::storage {

class Database;

// The rank of each process of a trace that has one, by process_id. It is what the environment of
// the process said; where the processes with communicators do not all say different ones, it is the
// rank in the largest communicator of each. `path` is the trace's, for errors. Throws Error kTrace
// when the trace holds what no recording writes.
std::map<int64_t, int64_t> RanksOfProcesses(Database& trace, const std::string& path);

}  // namespace acltape::storage
