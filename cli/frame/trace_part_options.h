// --process and --level: the part of a trace that a command looks at.
#pragma once

#include <string>
#include <vector>

#include "cli/frame/command_line.h"
#include "storage/trace_part.h"

namespace CLI {
class App;
}

namespace acltape::cli {

// Declares the options for a command that works on the calls of a trace. The other arguments and
// options of the command must have been declared.
void DeclareTracePart(CLI::App& command);

// The part that a parsed command was told to look at. Where an option was not given, its variable
// ACLTAPE_PROCESS or ACLTAPE_LEVEL stands for it and is added to `given`. Of a command without the
// option, the variable alone counts. No other place reads these variables. "rank:2" in --calls
// picks the process too. Throws Error kUsage when the variable names no level, or --calls and
// --process name two processes.
storage::TracePart ReadTracePart(const CLI::App& command, CommandLine& given);

// True if the variable of the environment names a process.
bool ProcessIsPickedByVariable();

// True if options picked the part, and not the variables alone.
bool PickedByOptions(const storage::TracePart& part);

// "ACLTAPE_LEVEL=acl": the same for the environment of another program that acltape starts.
std::vector<std::string> EnvironmentOf(const storage::TracePart& part);

}  // namespace acltape::cli
