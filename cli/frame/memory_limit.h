// --max-memory SIZE: a bound on the memory of a command, so that a trace that asks for gigabytes
// ends in one sentence.
//
// The bound is the limit RLIMIT_DATA of the system. It counts private memory that can be written:
// the heap, stacks of threads, and the memory of the soft device. RLIMIT_AS would also count
// libraries and addresses that are only reserved; libtorch alone takes more than a gigabyte of
// these. Processes that the command starts have the same limit, each for itself.
#pragma once

#include <string>
#include <string_view>

#include "storage/error.h"

namespace CLI {
class App;
}

namespace acltape::cli {

// Declares the option for a command that reads a trace; the others do not take it.
void AddMaxMemoryOption(CLI::App& command);

// Sets the limit that the command was given, and from then on ends the process with a sentence
// where no code can catch that memory was refused. Without the option it does the latter alone, and
// only when the process was started with such a limit. Throws Error kUsage when the limit leaves no
// room to start.
void LimitMemory(const CLI::App& command);

// True when LimitMemory found or set a limit.
bool MemoryIsLimited();

// True when the error says that a device or a library got no memory.
bool SaysNoMemory(const Error& error);

// The sentence of a command that got no memory; `cause` may be empty. Only after LimitMemory.
std::string NeedsMoreMemory(std::string_view cause);

}  // namespace acltape::cli
