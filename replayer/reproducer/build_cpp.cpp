#include "replayer/reproducer/build_cpp.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "replayer/reproducer/emit_cpp.h"
#include "storage/shell_word.h"

namespace acltape::replayer::reproducer {
namespace {

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int Shell(const std::string& command) {
  const int status = std::system(command.c_str());
  if (status == -1) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

BuiltReproducer BuildAndRun(const std::string& folder, const std::string& sdk) {
  BuiltReproducer built;
  const char* chosen = std::getenv("CXX");
  const std::string compiler = chosen != nullptr && *chosen != '\0' ? chosen : "c++";
  // Fill in the two variables of the build line.
  std::string line = kBuildLine;
  line.replace(0, 3, compiler);
  const std::string variable = "$SDK";
  for (size_t position; (position = line.find(variable)) != std::string::npos;) {
    line.replace(position, variable.size(), storage::ShellWord(sdk));
  }
  built.build = line;
  if (!std::filesystem::exists(sdk + "/include/acl/acl.h")) {
    built.why_not = "there are no ACL headers in " + sdk + "/include";
    return built;
  }
  if (Shell("command -v " + storage::ShellWord(compiler.substr(0, compiler.find(' '))) +
            " >/dev/null 2>&1") != 0) {
    built.why_not = "there is no C++ compiler " + compiler + " here; set CXX";
    return built;
  }
  const std::string enter = "cd " + storage::ShellWord(folder) + " && ";
  if (Shell(enter + line + " > build.log 2>&1") != 0) {
    built.why_not = "it does not compile, see " + folder + "/build.log";
    return built;
  }
  built.compiled = true;
  const std::string limit = "timeout 300 ";
  built.fault_exit = Shell(enter + limit + "./repro > run.log 2>&1");
  built.output = TextOf(folder + "/run.log");
  built.clean_exit = Shell(enter + limit + "./repro --clean > clean.log 2>&1");
  return built;
}

}  // namespace acltape::replayer::reproducer
