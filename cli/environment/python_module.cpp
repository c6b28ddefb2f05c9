#include "cli/environment/python_module.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/environment/installation.h"
#include "cli/environment/interpreter.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

namespace fs = std::filesystem;

// The folder that holds the Python package: beside the sources of a build, or where an installation
// has its packages.
fs::path PackageFolder() {
  const fs::path sources = SourceDirectory() / "python";
  std::error_code ignored;
  if (fs::exists(sources / "acltape", ignored)) return sources;
  return LibraryDirectory().parent_path().parent_path() / "python3" / "dist-packages";
}

fs::path Interpreter(const std::string& purpose) {
  const char* chosen = std::getenv("ACLTAPE_PYTHON");
  const fs::path found = chosen != nullptr ? FindExecutable(chosen) : FindInterpreter({});
  if (!found.empty()) return found;
  throw Error(ErrorKind::kDevice, purpose +
                                      ", and there is no python3 on PATH; install python3, or name "
                                      "one by ACLTAPE_PYTHON");
}

std::string LastLine(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

ErrorKind KindOf(int exit_code) {
  for (const ErrorKind kind : {ErrorKind::kUsage, ErrorKind::kTrace}) {
    if (exit_code == static_cast<int>(kind)) return kind;
  }
  return ErrorKind::kDevice;
}

}  // namespace

void RunPythonModule(const std::string& module, const std::vector<std::string>& words,
                     const std::string& purpose,
                     const std::function<void(const nlohmann::json&)>& take) {
  const fs::path python = Interpreter(purpose);
  // The folder of the package comes first on the interpreter's path, whatever else is installed.
  const std::string start = fmt::format(
      "import sys; sys.path.insert(0, sys.argv.pop(1)); from {} import main; sys.exit(main())",
      module);
  std::vector<std::string> argv{python.string(), "-B", "-c", start, PackageFolder().string()};
  argv.insert(argv.end(), words.begin(), words.end());
  std::string said;
  const ProgramOutput done = RunProgram(argv, Complaints::kJoined, [&](const std::string& line) {
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) {
      take(object);
    } else {
      said += line + "\n";
    }
  });
  if (done.started && done.exit_code == 0) return;
  throw Error(KindOf(done.exit_code),
              said.empty() ? fmt::format("{} ended with code {}", python.string(), done.exit_code)
                           : LastLine(said));
}

}  // namespace acltape::cli
