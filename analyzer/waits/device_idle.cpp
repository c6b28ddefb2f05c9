#include "analyzer/waits/device_idle.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "storage/database.h"
#include "storage/device_spans.h"

namespace acltape::analyzer::waits {
namespace {

// The latest wait that began before `from` had passed; -1: none.
class WaitsByBegin {
 public:
  explicit WaitsByBegin(const std::vector<HostWait>& waits) : waits_(waits) {
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].kind != WaitKind::kQuery) order_.push_back(i);
    }
    std::ranges::sort(order_, {}, [&](size_t i) { return waits_[i].begin_ns; });
  }

  // The wait in which a thread was when the work ran out. A wait can end a moment before the
  // recorder's event after the work that it waited for, so `error_ns` counts as within it.
  int64_t Around(int64_t ns, int64_t error_ns) const {
    auto after =
        std::ranges::upper_bound(order_, ns, {}, [&](size_t i) { return waits_[i].begin_ns; });
    // Threads wait beside each other, so that the latest begin need not be the one.
    for (int looked = 0; after != order_.begin() && looked < 8; ++looked) {
      --after;
      if (waits_[*after].end_ns + error_ns >= ns) return static_cast<int64_t>(*after);
    }
    return -1;
  }

 private:
  const std::vector<HostWait>& waits_;
  std::vector<size_t> order_;
};

}  // namespace

std::string_view IdleCauseName(IdleCause cause) {
  constexpr std::array<std::string_view, 6> kNames = {
      "the host waited",           "a copy blocked the host",
      "first use of an operator",  "the host was inside of calls",
      "the program between calls", "the work waited on the device"};
  return kNames[static_cast<size_t>(cause)];
}

std::vector<IdleTime> FindIdleTimes(const Work& work, const HostWaits& waits) {
  std::vector<IdleTime> found;
  const storage::Reader& trace = *work.trace;
  if (!storage::HasDeviceSpans(trace)) return found;
  const WaitsByBegin by_begin(waits.waits);
  std::unordered_map<int32_t, int64_t> first_of;  // call id, by form's operator
  for (const WorkCall& call : work.calls) {
    first_of.try_emplace(static_cast<int32_t>(work.forms[call.form].op->op_id), call.call_id);
  }
  // The call is in the thread of an operator of PyTorch, or launched by it: the operator's times
  // are those in which the program's thread was busy with it.
  storage::Statement rows(
      trace.database(),
      "SELECT g.begin_ns - g.idle_from, g.idle_from, g.call_id, c.begin_ns, "
      "ifnull(p.begin_ns, c.begin_ns), ifnull(d.error_ns, 0) FROM device_work g JOIN call c ON "
      "c.call_id = g.call_id LEFT JOIN call p ON p.call_id = c.parent_id LEFT JOIN device_span d "
      "ON d.call_id = g.call_id WHERE g.stream_id IS NULL AND g.begin_ns > g.idle_from");
  while (rows.Next()) {
    IdleTime& idle = found.emplace_back();
    idle.ns = rows.Integer(0);
    const int64_t from = rows.Integer(1);
    const int64_t ended_by = rows.Integer(2);
    idle.ended_by = work.Find(ended_by);
    if (rows.Integer(3) < from) continue;  // it had been launched
    idle.wait = by_begin.Around(from, rows.Integer(5));
    if (idle.wait >= 0) {
      const bool copies = waits.waits[idle.wait].kind == WaitKind::kCopy;
      idle.cause = copies ? IdleCause::kCopy : IdleCause::kWait;
      continue;
    }
    const bool first = idle.ended_by >= 0 &&
                       first_of[static_cast<int32_t>(work.op(idle.ended_by).op_id)] == ended_by;
    const bool inside = rows.Integer(4) < from;  // the operator had begun
    idle.cause = first ? IdleCause::kFirstUse : inside ? IdleCause::kCalls : IdleCause::kProgram;
  }
  return found;
}

}  // namespace acltape::analyzer::waits
