#include "cli/fleet/add_traces.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/environment/installation.h"
#include "cli/environment/python_module.h"
#include "cli/terminal/progress.h"
#include "meaning/options.h"
#include "storage/visible_text.h"

namespace acltape::cli {
namespace {

// By which the package finds the library that reads traces (python/acltape/fleet/columns.py).
constexpr char kLibraryVariable[] = "ACLTAPE_COLUMNS";

std::vector<std::string> WordsOf(const TracesToAdd& given) {
  std::vector<std::string> words;
  if (!given.run.empty()) words.insert(words.end(), {"@name"_cli, given.run});
  if (given.rank >= 0) words.insert(words.end(), {"@rank"_cli, std::to_string(given.rank)});
  if (!given.label.empty()) words.insert(words.end(), {"@label"_cli, given.label});
  if (given.overwrite) words.emplace_back("@force"_cli);
  // After this word names may begin with "-".
  words.insert(words.end(), {"--", given.folder});
  words.insert(words.end(), given.traces.begin(), given.traces.end());
  return words;
}

}  // namespace

Table TableOfParts() {
  return Table({"run", "rank", "calls", "rows", "files", "bytes", "lacks", "trace"});
}

void AddTraces(const TracesToAdd& given, Table& parts) {
  const std::string library = LibraryDirectory() / "libacltape_columns.so";
  setenv(kLibraryVariable, library.c_str(), /*overwrite=*/0);
  Progress progress("MiB of traces");
  int64_t failed = 0;
  RunPythonModule("acltape.fleet.add_traces", WordsOf(given), "fleet tables are written by Python",
                  [&](const nlohmann::json& said) {
                    if (said.contains("progress")) {
                      progress.Update(said["progress"][0].get<int64_t>(),
                                      said["progress"][1].get<int64_t>());
                    }
                    // The first one is the sentence with which the module ends.
                    if (said.contains("failed") && ++failed > 1) {
                      progress.Clear();
                      fmt::print(stderr, "acltape: {}\n",
                                 storage::VisibleText(said["failed"]["why"].get<std::string>()));
                    }
                    if (!said.contains("row")) return;
                    const nlohmann::json& row = said["row"];
                    const auto number = [&](const char* key) { return row[key].get<int64_t>(); };
                    parts.Add({row["run"].get<std::string>(), number("rank"), number("calls"),
                               number("rows"), number("files"), number("bytes"), number("lacks"),
                               row["trace"].get<std::string>()});
                  });
}

}  // namespace acltape::cli
