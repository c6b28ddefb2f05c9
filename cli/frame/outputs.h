// Before a command runs: none of the files that it was told to write is one that it was told to
// read.
#pragma once

namespace CLI {
class App;
}

namespace acltape::cli {

// Looks at what was given on the command line. Throws Error kUsage. What a command writes without
// being told where, it judges itself by the same rules (storage/new_file.h).
void CheckOutputs(const CLI::App& command);

}  // namespace acltape::cli
