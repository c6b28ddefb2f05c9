#include "page/measurements.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "meaning/options.h"
#include "page/rows.h"
#include "storage/columns.h"

namespace acltape::page {
namespace {

using nlohmann::json;

constexpr int64_t kMostSamples = 200000;
constexpr size_t kMostExperiments = 5000;

// Keys of a journal's line that the page shows; its evidence may hold thousands of digests.
constexpr const char* kOfExperiment[] = {"experiment", "altered",        "verdict",
                                         "executions", "bad_executions", "seconds"};
constexpr const char* kOfEvidence[] = {"op", "call", "step", "expected", "actual", "max_ulp"};

json ReadJournal(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the journal {} cannot be read; @journal takes the file that "
                            "`acltape bisect @journal` wrote."_cli,
                            path));
  }
  json journal{{"file", path}, {"experiments", json::array()}, {"lines", 0}};
  std::string line;
  bool first = true;
  int64_t lines = 0;
  while (std::getline(file, line)) {
    const json row = ReadJson(line);
    if (first) {
      if (!row.is_object() || !row.contains("acltape_journal")) {
        throw Error(ErrorKind::kUsage, fmt::format("{} is no journal of `acltape bisect`.", path));
      }
      first = false;
      continue;
    }
    if (!row.is_object()) continue;  // a line that a crash has torn
    ++lines;
    if (journal["experiments"].size() >= kMostExperiments) continue;
    json shown;
    for (const char* key : kOfExperiment) {
      if (row.contains(key)) shown[key] = row[key];
    }
    if (row.contains("evidence") && row["evidence"].is_object()) {
      for (const char* key : kOfEvidence) {
        if (row["evidence"].contains(key)) shown["evidence"][key] = row["evidence"][key];
      }
    }
    journal["experiments"].push_back(std::move(shown));
  }
  journal["lines"] = lines;
  return journal;
}

}  // namespace

json RunsOf(const storage::Reader& trace) {
  json view;
  view["runs"] = RowsOf(trace,
                        "SELECT run_id, mode, device, plan_id, options, begin_ns, exit_code FROM "
                        "run ORDER BY run_id");
  json samples = json::object();
  const json rows = RowsOf(trace,
                           "SELECT run_id, step, host_ns, device_ns FROM sample "
                           "WHERE call_id IS NULL AND region_id IS NULL ORDER BY run_id",
                           kMostSamples);
  for (const json& row : rows) {
    json& of_run = samples[std::to_string(row["run_id"].get<int64_t>())];
    of_run["step"].push_back(row["step"]);
    of_run["host"].push_back(row["host_ns"]);
    of_run["device"].push_back(row["device_ns"]);
  }
  view["samples"] = std::move(samples);
  view["comparisons"] = RowsOf(
      trace,
      "SELECT run_id, verdict, count(*) AS results FROM comparison GROUP BY run_id, verdict");
  return view;
}

json SearchesOf(const storage::Reader& trace, const std::string& journal) {
  json view;
  view["witnesses"] =
      storage::HasColumns(trace, "witness", "kind")
          ? RowsOf(trace,
                   "SELECT witness_id, kind, call_id, position, message, verdict, command "
                   "FROM witness ORDER BY witness_id")
          : json::array();
  const std::string beside = trace.path() + ".bisect.jsonl";
  std::error_code ignored;
  if (!journal.empty()) {
    view["journal"] = ReadJournal(journal);
  } else if (std::filesystem::exists(beside, ignored)) {
    try {
      view["journal"] = ReadJournal(beside);
    } catch (const Error& error) {
      view["journal_problem"] = error.what();
    }
  }
  return view;
}

}  // namespace acltape::page
