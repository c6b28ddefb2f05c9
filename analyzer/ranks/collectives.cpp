#include "analyzer/ranks/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/ranks/fused_operators.h"
#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/device_spans.h"
#include "storage/process_ranks.h"

namespace acltape::analyzer::ranks {
namespace {

using storage::CheckedRow;
using storage::Statement;

std::optional<int64_t> Some(const CheckedRow& row, int column, const char* name) {
  if (row.IsNull(column)) return std::nullopt;
  return row.Integer(column, name, -kMost, kMost);
}

std::vector<Collective> LoadCollectives(const storage::Reader& trace) {
  Statement rows(
      trace.database(),
      "SELECT call_id, process_id, communicator, rank, ranks, op, count, dtype, "
      "reduction, root, peer, sent_bytes, received_bytes, stream_id, model_id, "
      "begin_ns, message, matrix, parent_id FROM collective WHERE communicator IS NOT NULL "
      "AND status = 0 ORDER BY call_id, item");
  const CheckedRow row(rows, trace.path(), "collective");
  std::vector<Collective> collectives;
  while (rows.Next()) {
    Collective one;
    one.call_id = row.Id("call_id");
    one.process_id = row.Integer(1, "process_id", 0, kMost);
    one.communicator = row.Text(2, "communicator");
    one.ranks = row.Integer(4, "ranks", 0, UINT32_MAX);
    one.rank = row.Integer(3, "rank", 0, UINT32_MAX);
    one.op = row.Text(5, "op");
    one.count = Some(row, 6, "count");
    one.dtype = row.TextOrNull(7, "dtype");
    one.reduction = row.TextOrNull(8, "reduction");
    one.root = Some(row, 9, "root");
    one.peer = Some(row, 10, "peer");
    one.sent_bytes = row.IntegerOrNull(11, "sent_bytes", 0, kMost);
    one.received_bytes = row.IntegerOrNull(12, "received_bytes", 0, kMost);
    one.stream_id = row.IntegerOrNull(13, "stream_id", 0, kMost);
    one.model_id = row.IntegerOrNull(14, "model_id", 0, kMost);
    one.begin_ns = row.Integer(15, "begin_ns", -kMost, kMost);
    one.sends = row.TextOrNull(16, "message") == "send";
    one.matrix = row.TextOrNull(17, "matrix");
    one.asked_call = row.IsNull(18) ? one.call_id : row.Integer(18, "parent_id", 0, kMost);
    collectives.push_back(std::move(one));
  }
  return collectives;
}

struct Execution {
  int64_t call_id = 0;
  int64_t process_id = 0;
  int64_t model_id = 0;
  int64_t begin_ns = 0;
};

// The executions of graphs that succeeded, in order.
std::vector<Execution> LoadExecutions(const storage::Reader& trace) {
  Statement rows(
      trace.database(),
      "SELECT c.call_id, t.process_id, a.integer, c.begin_ns FROM op o "
      "JOIN signature s ON s.op_id = o.op_id "
      "JOIN signature_argument a ON a.signature_id = s.signature_id AND a.name = 'modelRI' "
      "JOIN call c ON c.signature_id = s.signature_id JOIN thread t ON t.thread_id = c.thread_id "
      "WHERE o.name IN ('aclmdlRIExecute', 'aclmdlRIExecuteAsync') AND a.integer IS NOT NULL "
      "AND c.model_id IS NULL AND c.status = 0 ORDER BY c.call_id");
  const CheckedRow row(rows, trace.path(), "call");
  std::vector<Execution> executions;
  while (rows.Next()) {
    executions.push_back({row.Id("call_id"), row.Integer(1, "process_id", 0, kMost),
                          row.Integer(2, "modelRI", -kMost, kMost),
                          row.Integer(3, "begin_ns", -kMost, kMost)});
  }
  return executions;
}

// When the work of each call began on the device.
std::map<int64_t, int64_t> LoadArrivals(const storage::Reader& trace) {
  std::map<int64_t, int64_t> arrivals;
  if (!storage::HasDeviceSpans(trace)) return arrivals;
  Statement rows(trace.database(),
                 "SELECT call_id, min(begin_ns) FROM device_span GROUP BY call_id");
  const CheckedRow row(rows, trace.path(), "device_span");
  while (rows.Next()) {
    arrivals[row.Id("call_id")] = row.Integer(1, "begin_ns", -kMost, kMost);
  }
  return arrivals;
}

void AddRuns(const storage::Reader& trace, Communication& all) {
  const std::map<int64_t, int64_t> arrivals = LoadArrivals(trace);
  all.on_device = !arrivals.empty();
  std::map<int64_t, std::vector<const Collective*>> captured;  // by model
  for (const Collective& one : all.collectives) {
    if (one.model_id != 0) captured[one.model_id].push_back(&one);
  }
  const auto add = [&](const Collective& what, int64_t process, int64_t call_id, int64_t begin_ns) {
    const auto arrival = arrivals.find(call_id);
    all.runs[process].push_back(
        {&what, call_id, begin_ns, arrival == arrivals.end() ? begin_ns : arrival->second});
  };
  const std::vector<Execution> executions =
      captured.empty() ? std::vector<Execution>() : LoadExecutions(trace);
  auto execution = executions.begin();
  const auto add_executions_before = [&](int64_t call_id) {
    for (; execution != executions.end() && execution->call_id < call_id; ++execution) {
      const auto inside = captured.find(execution->model_id);
      if (inside == captured.end()) continue;
      for (const Collective* one : inside->second) {
        add(*one, execution->process_id, execution->call_id, execution->begin_ns);
      }
    }
  };
  for (const Collective& one : all.collectives) {
    if (one.model_id != 0) continue;
    add_executions_before(one.call_id);
    add(one, one.process_id, one.call_id, one.begin_ns);
  }
  add_executions_before(INT64_MAX);
}

void CountGraphs(const storage::Reader& trace, Communication& all) {
  Statement rows(trace.database(),
                 "SELECT t.process_id, o.name = 'aclmdlRICaptureEnd', count(*) FROM op o "
                 "JOIN signature s ON s.op_id = o.op_id "
                 "JOIN call c ON c.signature_id = s.signature_id "
                 "JOIN thread t ON t.thread_id = c.thread_id "
                 "WHERE o.name IN ('aclmdlRICaptureEnd', 'aclmdlRIExecute', "
                 "'aclmdlRIExecuteAsync') AND c.status = 0 GROUP BY 1, 2");
  const CheckedRow row(rows, trace.path(), "call");
  while (rows.Next()) {
    GraphUse& use = all.graphs[row.Integer(0, "process_id", 0, kMost)];
    (rows.Integer(1) != 0 ? use.captured : use.executions) = rows.Integer(2);
  }
}

void FindHostWaits(const storage::Reader& trace, Communication& all) {
  std::string waiting;
  Statement ops(trace.database(), "SELECT op_id, name FROM op WHERE name LIKE 'acl%'");
  while (ops.Next()) {
    if (!WaitsOnHost(FindAclFunction(ops.Text(1)).kind)) continue;
    waiting += fmt::format("{}{}", waiting.empty() ? "" : ",", ops.Integer(0));
  }
  Statement rows(
      trace.database(),
      fmt::format("SELECT c.call_id, t.process_id, c.begin_ns, c.end_ns FROM signature s "
                  "CROSS JOIN call c ON c.signature_id = s.signature_id "
                  "JOIN thread t ON t.thread_id = c.thread_id "
                  "WHERE s.op_id IN ({}) ORDER BY c.call_id",
                  waiting));
  const CheckedRow row(rows, trace.path(), "call");
  while (rows.Next()) {
    all.host_waits[row.Integer(1, "process_id", 0, kMost)].emplace_back(
        row.Integer(2, "begin_ns", -kMost, kMost), row.Integer(3, "end_ns", -kMost, kMost));
  }
}

// Finds the ranks of the processes that have a communicator.
void FindRanks(const storage::Reader& trace, Communication& all) {
  const std::map<int64_t, int64_t> ranks =
      storage::RanksOfProcesses(trace.database(), trace.path());
  Statement rows(trace.database(), "SELECT DISTINCT process_id FROM communicator");
  const CheckedRow row(rows, trace.path(), "communicator");
  while (rows.Next()) {
    const int64_t process = row.Integer(0, "process_id", 0, kMost);
    const auto rank = ranks.find(process);
    if (rank != ranks.end()) all.ranks[process] = rank->second;
  }
}

}  // namespace

std::string Collective::Text() const {
  std::string text = op;
  std::string inside;
  const auto add = [&inside](const std::string& part) {
    inside += (inside.empty() ? "" : ", ") + part;
  };
  if (count) add(fmt::format("count {}", *count));
  if (!dtype.empty()) add(dtype);
  if (!reduction.empty()) add(reduction);
  if (root) add(fmt::format("root {}", *root));
  if (!matrix.empty()) add("counts " + matrix);
  if (peer) add(fmt::format("{} rank {}", sends ? "to" : "from", *peer));
  return inside.empty() ? text : text + "(" + inside + ")";
}

int64_t Communication::CountUpTo(int64_t process_id, int64_t call_id, storage::Level level) const {
  const auto of_process = runs.find(process_id);
  if (of_process == runs.end()) return 0;
  return std::ranges::count_if(of_process->second, [&](const Run& run) {
    const bool asked = level == storage::Level::kAten && run.call_id == run.what->call_id;
    return (asked ? run.what->asked_call : run.call_id) <= call_id;
  });
}

std::string Communication::NameOf(int64_t process_id) const {
  const auto rank = ranks.find(process_id);
  return rank == ranks.end() ? fmt::format("process {}", process_id)
                             : fmt::format("rank {}", rank->second);
}

std::string Communication::NamesOf(std::vector<int64_t> process_ids) const {
  std::ranges::sort(process_ids, {}, [this](int64_t process) {
    const auto rank = ranks.find(process);
    return std::pair(rank == ranks.end() ? INT64_MAX : rank->second, process);
  });
  std::string names;
  for (const int64_t process : process_ids) {
    names += (names.empty() ? "" : ", ") + NameOf(process);
  }
  return names;
}

Communication LoadCommunication(const storage::Reader& trace) {
  Communication all;
  all.collectives = LoadCollectives(trace);
  const std::vector<Collective> operators = LoadFusedOperators(trace);
  all.collectives.insert(all.collectives.end(), operators.begin(), operators.end());
  std::ranges::stable_sort(all.collectives, {}, &Collective::call_id);
  AddRuns(trace, all);
  FindRanks(trace, all);
  CountGraphs(trace, all);
  if (!all.on_device) FindHostWaits(trace, all);
  all.in_parts = trace.database().Integer(
                     "SELECT count(*) FROM recorded_window w WHERE EXISTS (SELECT 1 FROM "
                     "recorded_window o WHERE o.process_id = w.process_id "
                     "AND o.window_id <> w.window_id)") > 0;
  return all;
}

}  // namespace acltape::analyzer::ranks
