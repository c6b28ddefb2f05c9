// The choice between two traces of one recording: the one that the recorder wrote, and the one that
// was made anew from its spool. After a power cut the spool may lack records that had not reached
// the disk.
#pragma once

#include <string>

namespace acltape::collector {

// True if each call of the trace `old` is one of `anew` too, by its number. Both are only read.
bool HoldsAllCalls(const std::string& anew, const std::string& old);

// A name beside `path` that is not taken: PATH.kept, or PATH.kept.2 and so on.
std::string NameForKept(const std::string& path);

// True if a fold that was killed can have left this file: an empty file or a trace.
bool IsLeftByFold(const std::string& path);

}  // namespace acltape::collector
