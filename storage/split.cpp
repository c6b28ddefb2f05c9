#include "storage/split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "storage/process_ranks.h"
#include "storage/recording_cost.h"
#include "storage/table_rows.h"
#include "storage/trace_copy.h"

namespace acltape::storage {
namespace {

struct Part {
  const StoredTable& table;
  std::string_view condition;  // {0}: the processes
};

// In an order in which a condition can name what was copied before. The new trace is the schema
// main, the old one source.
const Part kParts[] = {
    {tables::kQuirk, ""},
    {tables::kLedger, ""},
    {tables::kProcess, "process_id IN ({0})"},
    {tables::kThread, "process_id IN ({0})"},
    {tables::kCallRow, "thread_id IN (SELECT thread_id FROM main.thread)"},
    {tables::kCallExtra, "call_id IN (SELECT call_id FROM main.call_row)"},
    {tables::kFailureText, "call_id IN (SELECT call_id FROM main.call_row)"},
    {tables::kDeviceSpan, "call_id IN (SELECT call_id FROM main.call_row)"},
    {tables::kSnapshot, "call_id IN (SELECT call_id FROM main.call_row)"},
    {tables::kPayload, "digest IN (SELECT digest FROM main.snapshot)"},
    {tables::kSignature, "signature_id IN (SELECT signature_id FROM main.call_row)"},
    {tables::kSignatureArgument, "signature_id IN (SELECT signature_id FROM main.signature)"},
    {tables::kOp, "op_id IN (SELECT op_id FROM main.signature)"},
    {tables::kLayout, ""},
    {tables::kScope, ""},
    {tables::kScopeRange, "thread_id IN (SELECT thread_id FROM main.thread)"},
    {tables::kStack,
     "stack_id IN (SELECT stack_id FROM main.call_row UNION SELECT stack_id FROM "
     "main.call_extra)"},
    {tables::kStream, "process_id IN ({0})"},
    {tables::kEvent, "process_id IN ({0})"},
    {tables::kModel, "process_id IN ({0})"},
    {tables::kCommunicator, "process_id IN ({0})"},
    {tables::kRecordedWindow, "process_id IN ({0})"},
    {tables::kBufferRow,
     "alloc_call IN (SELECT call_id FROM main.call_row) OR buffer_id IN (SELECT id FROM "
     "temp.used)"},
};

// The buffers that the copied calls and their contents name, and the blocks in which they lie.
constexpr char kUsedBuffers[] = R"sql(
CREATE TEMP TABLE used(id INTEGER PRIMARY KEY);
INSERT OR IGNORE INTO temp.used
  SELECT j.value FROM main.call_row c, json_each(c.buffers) j WHERE c.buffers IS NOT NULL;
INSERT OR IGNORE INTO temp.used SELECT tensor_id >> 24 FROM main.snapshot;
INSERT OR IGNORE INTO temp.used SELECT b.block FROM source.buffer_row b
  WHERE b.block IS NOT NULL AND b.buffer_id IN (SELECT id FROM temp.used);
)sql";

// Each process numbers its steps from 0; together they are in the order of their first calls.
void CopySteps(const Reader& trace, const std::vector<int64_t>& processes, TraceCopy& copy) {
  std::vector<Step> steps;
  for (const int64_t process : processes) {
    const Reader of_one(trace.path(), TracePart{.process = std::to_string(process), .level = {}});
    for (Step& step : of_one.Steps()) steps.push_back(std::move(step));
  }
  std::ranges::stable_sort(steps, {}, &Step::first_call);
  auto row = copy.Insert<tables::kStep>();
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].step = static_cast<int64_t>(i);
    AddRow(row, steps[i]);
  }
}

// Keeps what the recording took from the threads of these processes.
void CopyRecordingCost(const Reader& trace, TraceCopy& copy) {
  std::optional<RecordingCost> cost = RecordingCostOf(trace);
  if (!cost) return;
  std::set<int64_t> here;
  Statement rows(copy.database(), "SELECT thread_id FROM main.thread");
  while (rows.Next()) here.insert(rows.Integer(0));
  std::erase_if(cost->threads,
                [&](const ThreadCost& thread) { return !here.contains(thread.thread_id); });
  copy.SetMeta(kRecordingCostKey, RecordingCostText(*cost));
}

}  // namespace

std::vector<RankProcesses> ProcessesByRank(const Reader& trace) {
  std::map<int64_t, std::vector<int64_t>> by_rank;
  std::vector<int64_t> without;
  const std::map<int64_t, int64_t> ranks = RanksOfProcesses(trace.database(), trace.path());
  Statement rows(trace.database(),
                 "SELECT process_id, EXISTS (SELECT 1 FROM call_row WHERE thread_id IN "
                 "(SELECT thread_id FROM thread WHERE process_id = p.process_id)) FROM process p "
                 "ORDER BY process_id");
  while (rows.Next()) {
    const auto rank = ranks.find(rows.Integer(0));
    if (rank != ranks.end()) {
      by_rank[rank->second].push_back(rows.Integer(0));
    } else if (rows.Integer(1) != 0) {
      without.push_back(rows.Integer(0));
    }
  }
  std::vector<RankProcesses> all;
  for (auto& [rank, processes] : by_rank) all.push_back({rank, std::move(processes)});
  if (!without.empty()) all.push_back({-1, std::move(without)});
  return all;
}

void CopyProcesses(const Reader& trace, const RankProcesses& of, const std::string& path,
                   bool overwrite) {
  TraceCopy copy(trace, path, overwrite);
  copy.CopyRows("meta", "key <> 'schema_version'");
  copy.SetMeta("state", trace.State());
  if (of.rank >= 0) copy.SetMeta("rank", std::to_string(of.rank));
  const std::string processes = fmt::format("{}", fmt::join(of.processes, ","));
  for (const Part& part : kParts) {
    if (&part.table == &tables::kBufferRow) copy.database().Execute(kUsedBuffers);
    copy.CopyRows(part.table.name, fmt::format(fmt::runtime(part.condition), processes));
  }
  CopySteps(trace, of.processes, copy);
  CopyRecordingCost(trace, copy);
  copy.Close();
  copy.ReadBack([](const Reader& written) { static_cast<void>(written.Steps()); });
  copy.Accept();
}

}  // namespace acltape::storage
