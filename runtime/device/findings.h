// The soft device notices faults while a program runs, for a recorder that asked for it.
//
// ACLTAPE_SOFT_FINDINGS names a file. Processes append lines to it:
//
//   PROCESS <tab> KIND <tab> SUBJECT <tab> COUNT <tab> TEXT
//
// The subject is an operator or a task, and COUNT says how often the kind was seen of it in this
// process so far. A line is written when the count is a power of two, so the file stays short, a
// process that is killed has reported, and a count is at least half of what happened. TEXT is about
// the first time.
#pragma once

#include <string>

namespace acltape::device {

inline constexpr const char* kUnwrittenRead = "unwritten_read";  // a result of unwritten memory
inline constexpr const char* kWritePastBlock = "write_past_block";
inline constexpr const char* kFreedMemory = "freed_memory";    // a task over memory that is gone
inline constexpr const char* kOutsideBlock = "outside_block";  // a task that leaves its block
// A task read on past its block, and went on. Without a file the process says at its end which.
inline constexpr const char* kReadPastBlock = "read_past_block";
// The host could not back an allocation. Said at the end too.
inline constexpr const char* kNoHostMemory = "no_host_memory";

// True if there is a file for findings.
bool KeepsFindings();

void ReportFinding(const char* kind, const std::string& subject, const std::string& text);

}  // namespace acltape::device
