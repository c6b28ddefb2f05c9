// Before a command opens a trace: what its killed recorder had received is put into it.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace acltape::cli {

// Folds the spools of all traces that the command was given. Says on stderr what was done, and why
// something could not be done; the command then works on the trace as it is.
void FoldSpools(const CLI::App& command);
// The same for one trace, which a command was given by an argument of another name.
void FoldSpoolOf(const std::string& trace);

}  // namespace acltape::cli
