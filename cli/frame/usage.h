// Says what is wrong with a command line, in one sentence that names the help that explains it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace acltape::cli {

// The sentence for an error of the parser. `words` are those of the command line, without the name
// of the program.
std::string UsageSentence(const CLI::App& app, const std::vector<std::string>& words,
                          const CLI::ParseError& error);

// The sentence for an option that `command` does not have. It names a similar one, or the commands
// that have it.
std::string UnknownOption(const CLI::App& command, const std::string& word);

// Looks at the files that a parsed command names as traces and as a plan, before they are opened.
// Throws Error kTrace when a trace is missing, with a similar name of its folder, and kUsage when a
// plan stands in the place of a trace or a trace in that of a plan. Says nothing of what else may
// be wrong with a file: whoever opens it knows more.
void CheckFiles(const CLI::App& command);

// True when the file is there and begins as an SQLite file does.
bool IsDatabase(const std::string& path);

}  // namespace acltape::cli
