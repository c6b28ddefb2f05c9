#include "page/facts.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "meaning/engine_step.h"
#include "page/rows.h"
#include "storage/database.h"
#include "storage/shell_word.h"
#include "storage/stored_totals.h"

namespace acltape::page {
namespace {

using nlohmann::json;

// Facts of the table `meta` that the page shows.
constexpr const char* kMetaShown[] = {
    "command",       "cwd",           "exit_code",     "signal",          "host",
    "system",        "cpu",           "cpu_count",     "acltape_version", "levels",
    "payload",       "begin_wall_ns", "wall_ns",       "torch_version",   "torch_commit",
    "torch_library", "torch_threads", "schema_version"};

json MetaOf(const storage::Reader& trace) {
  json meta = json::object();
  const auto all = trace.AllMeta();
  for (const char* key : kMetaShown) {
    if (const auto found = all.find(key); found != all.end()) meta[key] = found->second;
  }
  return meta;
}

}  // namespace

json FactsOf(const storage::Reader& trace, const std::vector<storage::Step>& steps) {
  json facts;
  std::error_code ignored;
  facts["file"] = std::filesystem::path(trace.path()).filename().string();
  facts["word"] = storage::ShellWord(trace.path());
  facts["bytes"] = static_cast<int64_t>(std::filesystem::file_size(trace.path(), ignored));
  facts["state"] = trace.State();
  facts["process_shown"] = trace.process();
  facts["meta"] = MetaOf(trace);
  facts["processes"] = RowsOf(trace, "SELECT process_id, pid, rank, name FROM process");
  facts["threads"] = RowsOf(trace, "SELECT thread_id, process_id, tid, name FROM thread");
  facts["ops"] = storage::CountsOf(trace).ops;
  facts["streams"] = json::array();
  for (const storage::Handle& stream : trace.Streams()) {
    facts["streams"].push_back(
        {{"id", stream.id}, {"device", stream.device}, {"default", stream.handle == 0}});
  }
  facts["values_kept"] =
      RowsOf(trace,
             "SELECT count(*) AS snapshots, (SELECT ifnull(sum(bytes), 0) FROM payload) AS "
             "bytes FROM snapshot")[0];
  json rows = json::array();
  for (const storage::Step& step : steps) {
    const auto engine = meaning::EngineStepFoundBy(step.found_by);
    rows.push_back({step.step, step.first_call, step.last_call,
                    engine ? meaning::EngineStepWords(*engine) : ""});
  }
  facts["steps"] = std::move(rows);
  facts["steps_found_by"] = steps.empty() ? "" : steps.front().found_by;
  facts["steps_stored"] = !trace.Steps().empty();
  facts["breaks"] = RowsOf(trace,
                           "SELECT op, reason, count(*) AS calls, min(call_id) AS first_call "
                           "FROM capture_breaks GROUP BY op, reason ORDER BY calls DESC",
                           200);
  return facts;
}

json TotalsOf(const storage::Reader& trace) {
  json totals;
  totals["calls"] = trace.CallCount(false);
  totals["leaves"] = trace.CallCount(true);
  totals["operators"] =
      RowsOf(trace, "SELECT op, dialect, calls, total_ns, percent FROM top_ops", 2000);
  return totals;
}

}  // namespace acltape::page
