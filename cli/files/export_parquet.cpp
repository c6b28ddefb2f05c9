#include "cli/files/export_parquet.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/environment/installation.h"
#include "cli/environment/interpreter.h"
#include "meaning/options.h"
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

fs::path Interpreter() {
  const char* chosen = std::getenv("ACLTAPE_PYTHON");
  const fs::path found = chosen != nullptr ? FindExecutable(chosen) : FindInterpreter({});
  if (!found.empty()) return found;
  throw Error(ErrorKind::kDevice,
              "parquet files are written by Python, and there is no python3 on PATH; install "
              "python3, or name one by ACLTAPE_PYTHON");
}

std::string LastLine(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Table ExportParquet(const std::string& trace, const std::string& folder, bool overwrite) {
  const fs::path python = Interpreter();
  // The folder of the package comes first on the interpreter's path, whatever else is installed.
  constexpr char kStart[] =
      "import sys; sys.path.insert(0, sys.argv.pop(1)); "
      "from acltape.to_parquet import main; sys.exit(main())";
  std::vector<std::string> words{python.string(),          "-B",  "-c",  kStart,
                                 PackageFolder().string(), trace, folder};
  if (overwrite) words.emplace_back("@force"_cli);
  Table table({"view", "rows", "file"});
  std::string said;
  const ProgramOutput done = RunProgram(words, Complaints::kJoined, [&](const std::string& line) {
    const auto row = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object()) {
      said += line + "\n";
      return;
    }
    table.Add({row["view"].get<std::string>(), row["rows"].get<int64_t>(),
               row["file"].get<std::string>()});
  });
  if (done.started && done.exit_code == 0) return table;
  const std::string why =
      said.empty() ? fmt::format("{} ended with code {}", python.string(), done.exit_code)
                   : LastLine(said);
  const ErrorKind kind = done.exit_code == static_cast<int>(ErrorKind::kUsage) ? ErrorKind::kUsage
                         : done.exit_code == static_cast<int>(ErrorKind::kTrace)
                             ? ErrorKind::kTrace
                             : ErrorKind::kDevice;
  throw Error(kind, why);
}

}  // namespace acltape::cli
