// The files beside a trace that SQLite and the recorder read, write and remove by themselves. A
// trace comes from anywhere, and so do they: each is judged before the trace is opened.
#pragma once

#include <array>
#include <string>

namespace acltape::storage {

// The suffixes that SQLite adds to the name of the trace for its files.
inline constexpr std::array<const char*, 3> kSqliteSuffixes = {"-wal", "-shm", "-journal"};
// The recorder's (recorder/collector/spool.h).
inline constexpr char kSpoolSuffix[] = ".spool";

// Throws Error kTrace if opening the trace could touch another file than the trace and its own side
// files. That is so
//   - if a side file is a link, has a second name (a hard link) or is no plain file: SQLite writes
//     into it;
//   - if the rollback journal names a "super-journal": SQLite removes the file of that name. A
//     transaction of one file never has one.
// Each opening of a trace comes after this, for reading too: a reader of a trace in WAL mode writes
// `-shm`.
void JudgeSideFiles(const std::string& trace);

}  // namespace acltape::storage
