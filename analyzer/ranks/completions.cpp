#include "analyzer/ranks/completions.h"

#include <algorithm>
#include <set>
#include <string>

#include "analyzer/calls/acl_calls.h"
#include "storage/checked_row.h"
#include "storage/database.h"

namespace acltape::analyzer::ranks {
namespace {

using storage::CheckedRow;
using storage::Statement;

// A call that orders streams, or in which the host waits.
struct Ordering {
  int64_t call_id = 0;
  AclCallKind kind = AclCallKind::kUnknown;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t stream_id = 0;
  int64_t event_id = 0;
};

bool Orders(AclCallKind kind) {
  return kind == AclCallKind::kEventRecord || kind == AclCallKind::kEventWait ||
         kind == AclCallKind::kDeviceSync || kind == AclCallKind::kStreamSync ||
         kind == AclCallKind::kEventSync;
}

// Processes that use several devices: a wait for the device is then one for the thread's.
std::set<int64_t> WithSeveralDevices(const storage::Reader& trace) {
  std::set<int64_t> processes;
  Statement rows(trace.database(),
                 "SELECT process_id FROM stream GROUP BY 1 HAVING count(DISTINCT device) > 1");
  while (rows.Next()) processes.insert(rows.Integer(0));
  return processes;
}

// By process, in order.
std::map<int64_t, std::vector<Ordering>> LoadOrderings(const storage::Reader& trace) {
  std::map<int64_t, std::vector<Ordering>> orderings;
  struct Function {
    int64_t op_id;
    AclFunction meaning;
  };
  std::vector<Function> functions;
  Statement ops(trace.database(), "SELECT op_id, name FROM op WHERE name LIKE 'acl%'");
  const CheckedRow op(ops, trace.path(), "op");
  while (ops.Next()) {
    const AclFunction meaning = FindAclFunction(op.TextOrNull(1, "name"));
    if (Orders(meaning.kind)) functions.push_back({op.Id("op_id"), meaning});
  }
  for (const Function& function : functions) {
    Statement rows(trace.database(),
                   "SELECT c.call_id, t.process_id, c.begin_ns, c.end_ns, c.stream_id, a.integer "
                   "FROM signature s CROSS JOIN call c ON c.signature_id = s.signature_id "
                   "JOIN thread t ON t.thread_id = c.thread_id "
                   "LEFT JOIN signature_argument a ON a.signature_id = s.signature_id "
                   "AND a.position = ?2 AND a.kind = 'int' "
                   "WHERE s.op_id = ?1 AND c.status = 0 AND c.model_id IS NULL");
    rows.Bind(1, function.op_id);
    rows.Bind(2, int64_t{function.meaning.object});
    const CheckedRow row(rows, trace.path(), "call");
    while (rows.Next()) {
      orderings[row.Integer(1, "process_id", 0, kMost)].push_back(
          {row.Id("call_id"), function.meaning.kind, row.Integer(2, "begin_ns", -kMost, kMost),
           row.Integer(3, "end_ns", -kMost, kMost), row.IntegerOrNull(4, "stream_id", 0, kMost),
           row.IntegerOrNull(5, "integer", INT64_MIN, INT64_MAX)});
    }
  }
  const std::set<int64_t> several = WithSeveralDevices(trace);
  for (auto& [process, of_one] : orderings) {
    if (several.contains(process)) {
      std::erase_if(of_one,
                    [](const Ordering& call) { return call.kind == AclCallKind::kDeviceSync; });
    }
    std::ranges::sort(of_one, {}, &Ordering::call_id);
  }
  return orderings;
}

// A run that has not ended yet, as far as the host knows: who waits for it, and since when.
struct Open {
  int64_t call_id = 0;
  std::map<int64_t, int64_t> streams;  // by id: the end of the call that made the stream wait
  std::map<int64_t, int64_t> events;   // by id: the end of the call that recorded it

  // Notes what the call does to those who wait. Returns true if the host knows after it that the
  // run had ended.
  bool Take(const Ordering& call) {
    const auto after = [&](const std::map<int64_t, int64_t>& waiting, int64_t id) {
      const auto found = waiting.find(id);
      return found != waiting.end() && found->second <= call.begin_ns;
    };
    switch (call.kind) {
      case AclCallKind::kEventRecord:
        if (after(streams, call.stream_id)) {
          events[call.event_id] = call.end_ns;
        } else {
          events.erase(call.event_id);
        }
        return false;
      case AclCallKind::kEventWait:
        if (after(events, call.event_id)) streams.try_emplace(call.stream_id, call.end_ns);
        return false;
      case AclCallKind::kEventSync:
        return after(events, call.event_id);
      case AclCallKind::kStreamSync:
        return after(streams, call.stream_id);
      default:
        return std::ranges::any_of(
            streams, [&](const auto& stream) { return stream.second <= call.begin_ns; });
    }
  }
};

struct IssuedCall {
  int64_t end_ns = 0;
  int64_t stream_id = 0;
};

IssuedCall LookUp(Statement& one, const std::string& path, int64_t call_id) {
  one.Bind(1, call_id);
  const CheckedRow row(one, path, "call");
  IssuedCall issued;
  if (one.Next()) {
    issued = {row.Integer(0, "end_ns", -kMost, kMost), row.IntegerOrNull(1, "stream_id", 0, kMost)};
  }
  one.Reset();
  return issued;
}

}  // namespace

std::map<int64_t, int64_t> FindCompletions(const storage::Reader& trace, const Communication& all,
                                           size_t most) {
  std::map<int64_t, int64_t> completions;
  const std::map<int64_t, std::vector<Ordering>> orderings = LoadOrderings(trace);
  Statement one(trace.database(), "SELECT end_ns, stream_id FROM call WHERE call_id = ?");
  for (const auto& [process, runs] : all.runs) {
    const auto of_process = orderings.find(process);
    if (of_process == orderings.end()) continue;
    const size_t stride = runs.size() / std::max<size_t>(most, 1) + 1;
    std::vector<Open> open;
    auto call = of_process->second.begin();
    const auto take_until = [&](int64_t call_id) {
      for (; call != of_process->second.end() && call->call_id < call_id; ++call) {
        std::erase_if(open, [&](Open& waiting) {
          if (!waiting.Take(*call)) return false;
          completions[waiting.call_id] = call->end_ns;
          return true;
        });
      }
    };
    for (size_t i = 0; i < runs.size(); i += stride) {
      take_until(runs[i].call_id);
      const IssuedCall issued = LookUp(one, trace.path(), runs[i].call_id);
      const int64_t stream = issued.stream_id != 0 ? issued.stream_id : runs[i].what->stream_id;
      open.push_back({runs[i].call_id, {{stream, issued.end_ns}}, {}});
    }
    take_until(INT64_MAX);
  }
  return completions;
}

}  // namespace acltape::analyzer::ranks
