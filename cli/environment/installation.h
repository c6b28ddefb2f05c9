// Finds the parts of acltape relative to the running executable, and runs small programs to read
// what they print. A build folder and an installation are laid out alike: bin/, lib/, sdk/ and
// source/ lie beside each other. On the path of an installation is a link to bin/acltape.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace acltape::cli {

// .../bin/acltape -> .../lib.
std::filesystem::path LibraryDirectory();
std::filesystem::path AgentLibrary();     // preloaded into recorded programs
std::filesystem::path AclAgentLibrary();  // preloaded too when the ACL level is recorded

// The sources that kits are built from.
std::filesystem::path SourceDirectory();

struct ProgramOutput {
  bool started = false;
  int exit_code = 0;  // 128 + signal when killed
  std::string text;   // its output on stdout
};
// The treatment of the stderr of a program that is run. kJoined puts it among the output.
enum class Complaints { kDiscarded, kShown, kJoined };
// Runs argv[0] (searched on PATH). With `line`, each line goes there as it comes and `text` stays
// empty. Does not throw.
ProgramOutput RunProgram(const std::vector<std::string>& argv,
                         Complaints complaints = Complaints::kDiscarded,
                         const std::function<void(const std::string&)>& line = nullptr);

// The executable files that a name stands for, in the order of PATH.
std::vector<std::filesystem::path> FindOnPath(const std::string& name);

}  // namespace acltape::cli
