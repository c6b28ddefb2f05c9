#include "storage/stored_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "meaning/recorded_values.h"
#include "storage/call_totals.h"
#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/process_filter.h"
#include "storage/reader.h"
#include "storage/tables.h"

namespace acltape::storage {
namespace {

// A transaction that is rolled back unless it is committed.
class Transaction {
 public:
  explicit Transaction(Database& trace) : trace_(trace) { trace_.Execute("BEGIN IMMEDIATE"); }
  ~Transaction() {
    if (open_) sqlite3_exec(trace_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void Commit() {
    trace_.Execute("COMMIT");
    open_ = false;
  }

 private:
  Database& trace_;
  bool open_ = true;
};

void WriteCount(Database& trace, std::string_view table, int64_t rows) {
  RowInsert<tables::kTableTotal> add(trace);
  add.Set<"table_name">(table);
  add.Set<"rows">(rows);
  add.Run();
}

void WriteSignatures(Database& trace, const CallTotals& totals) {
  RowInsert<tables::kSignatureTotal> add(trace);
  for (const auto& [signature_id, total] : totals.signatures()) {
    add.Clear();
    add.Set<"signature_id">(signature_id);
    add.Set<"calls">(total.calls);
    add.Set<"first_call">(total.first_call);
    add.Set<"leaves">(total.leaves);
    if (total.leaves != 0) {
      add.Set<"total_ns">(total.total_ns);
      add.Set<"min_ns">(total.min_ns);
      add.Set<"max_ns">(total.max_ns);
    }
    add.Run();
  }
}

void WriteThreads(Database& trace, const CallTotals& totals) {
  RowInsert<tables::kThreadTotal> add(trace);
  for (const auto& [thread_id, total] : totals.threads()) {
    add.Set<"thread_id">(thread_id);
    add.Set<"calls">(total.calls);
    add.Set<"leaves">(total.leaves);
    add.Run();
  }
}

void WriteGaps(Database& trace, const std::vector<HostGap>& gaps) {
  RowInsert<tables::kHostGap> add(trace);
  for (const HostGap& gap : gaps) {
    add.Set<"gap_ns">(gap.gap_ns);
    add.Set<"thread_id">(gap.thread_id);
    add.Set<"after_call">(gap.after_call);
    add.Set<"before_call">(gap.before_call);
    add.Run();
  }
}

// Adds up the calls of a step, one after the other.
class StepTotal {
 public:
  void Add(int64_t signature_id, int64_t bits, int64_t begin_ns, int64_t duration_ns, bool breaks) {
    if (begin_ns < -kMostNs || begin_ns > kMostNs || duration_ns < 0 || duration_ns > kMostNs) {
      sound_ = false;
      return;
    }
    first_ns_ = calls_ == 0 ? begin_ns : std::min(first_ns_, begin_ns);
    last_ns_ = calls_ == 0 ? begin_ns + duration_ns : std::max(last_ns_, begin_ns + duration_ns);
    ++calls_;
    if ((bits & meaning::kLeafBit) == 0) return;
    ++leaves_;
    if (__builtin_add_overflow(leaf_ns_, duration_ns, &leaf_ns_)) sound_ = false;
    signatures_.insert(signature_id);
    if ((bits & meaning::kPhaseBits) == kBackward) ++backward_leaves_;
    if (breaks) ++breaks_;
  }
  // False if there were times that cannot be added up, or no calls: the view has NULLs then.
  bool sound() const { return sound_ && calls_ != 0; }
  void Write(RowInsert<tables::kStepTotal>& add, const Step& step) const {
    add.Clear();
    add.Set<"step">(step.step);
    add.Set<"first_call">(step.first_call);
    add.Set<"last_call">(step.last_call);
    add.Set<"calls">(calls_);
    add.Set<"leaves">(leaves_);
    add.Set<"wall_ns">(last_ns_ - first_ns_);
    add.Set<"leaf_ns">(leaf_ns_);
    add.Set<"signatures">(static_cast<int64_t>(signatures_.size()));
    add.Set<"backward_leaves">(backward_leaves_);
    add.Set<"breaks">(breaks_);
    add.Run();
  }

 private:
  static constexpr auto kBackward = static_cast<int64_t>(Phase::kBackward);
  bool sound_ = true;
  int64_t calls_ = 0, leaves_ = 0, backward_leaves_ = 0, breaks_ = 0;
  int64_t first_ns_ = 0, last_ns_ = 0, leaf_ns_ = 0;
  std::unordered_set<int64_t> signatures_;
};

// The steps in order of calls. Empty if two of them share calls.
std::vector<Step> StepsApart(Database& trace) {
  std::vector<Step> steps;
  Statement rows(trace, "SELECT step, first_call, last_call FROM step ORDER BY first_call");
  while (rows.Next()) {
    Step step;
    step.step = rows.Integer(0);
    step.first_call = rows.Integer(1);
    step.last_call = rows.Integer(2);
    if (!steps.empty() && step.first_call <= steps.back().last_call) return {};
    steps.push_back(step);
  }
  return steps;
}

std::unordered_set<int64_t> BreakingSignatures(Database& trace) {
  std::unordered_set<int64_t> signatures;
  Statement rows(
      trace, "SELECT signature_id FROM signature WHERE op_id IN (SELECT op_id FROM barrier_op)");
  while (rows.Next()) signatures.insert(rows.Integer(0));
  return signatures;
}

// True when leaves of PyTorch ran on a device. Those of the host are beside it then, and break
// nothing.
bool RanOnDevice(Database& trace) {
  Statement rows(trace, "SELECT 1 FROM call_row WHERE bits >= ? LIMIT 1");
  rows.Bind(1, int64_t{meaning::kPlaceHost + 1} << meaning::kPlaceShift);
  return rows.Next();
}

bool OnHost(int64_t bits) { return bits >> meaning::kPlaceShift == meaning::kPlaceHost; }

void ReadCalls(Database& trace, CallTotals& totals) {
  Statement rows(trace,
                 "SELECT call_id, signature_id, thread_id, bits, begin_ns, duration_ns FROM "
                 "call_row");
  while (!totals.gave_up() && rows.Next()) {
    totals.Add({rows.Integer(0), rows.Integer(1), rows.Integer(2),
                (rows.Integer(3) & meaning::kLeafBit) != 0, rows.Integer(4), rows.Integer(5)});
  }
}

}  // namespace

bool WriteCallTotals(Database& trace, CallTotals& totals, std::optional<int64_t> buffers) {
  const std::optional<std::vector<HostGap>> gaps = totals.gaps().Finish();
  if (totals.gave_up() || !gaps) return false;
  if (!buffers) buffers = trace.Integer("SELECT count(*) FROM buffer_row");
  Transaction transaction(trace);
  trace.Execute(
      "DELETE FROM table_total; DELETE FROM signature_total; DELETE FROM thread_total; "
      "DELETE FROM host_gap");
  WriteCount(trace, "call_row", totals.calls());
  WriteCount(trace, "buffer_row", *buffers);
  WriteSignatures(trace, totals);
  WriteThreads(trace, totals);
  WriteGaps(trace, *gaps);
  transaction.Commit();
  return true;
}

void AddUpCalls(Database& trace) {
  CallTotals totals;
  ReadCalls(trace, totals);
  WriteCallTotals(trace, totals, std::nullopt);
}

void AddUpSteps(Database& trace) {
  if (trace.Integer("SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = "
                    "'step_total'") == 0) {
    return;
  }
  const std::vector<Step> steps = StepsApart(trace);
  const std::unordered_set<int64_t> breaking = BreakingSignatures(trace);
  const bool on_device = RanOnDevice(trace);
  Transaction transaction(trace);
  trace.Execute("DELETE FROM step_total");
  RowInsert<tables::kStepTotal> add(trace);
  Statement calls(trace,
                  "SELECT signature_id, bits, begin_ns, duration_ns FROM call_row WHERE call_id "
                  "BETWEEN ? AND ?");
  for (const Step& step : steps) {
    StepTotal total;
    calls.Bind(1, step.first_call);
    calls.Bind(2, step.last_call);
    while (calls.Next()) {
      const int64_t signature = calls.Integer(0);
      total.Add(signature, calls.Integer(1), calls.Integer(2), calls.Integer(3),
                breaking.contains(signature) && !(on_device && OnHost(calls.Integer(1))));
    }
    calls.Reset();
    if (total.sound()) total.Write(add, step);
  }
  transaction.Commit();
}

TraceCounts CountsOf(const Reader& reader) {
  // No table has so many rows. A sum of more would be an error of SQL.
  constexpr std::string_view kSums =
      "SELECT ifnull(sum(max(0, min(calls, 1 << 40))), 0), "
      "ifnull(sum(max(0, min(leaves, 1 << 40))), 0) FROM thread_total";
  TraceCounts counts;
  // The recorder notes some operators that it does not record.
  counts.ops = reader.database().Integer("SELECT count(DISTINCT op_id) FROM signature");
  Statement rows(reader.database(), "SELECT rows FROM table_total WHERE table_name = ?");
  rows.Bind(1, std::string_view("buffer_row"));
  counts.buffers =
      rows.Next() ? rows.Integer(0) : reader.database().Integer("SELECT count(*) FROM buffer_row");
  rows.Reset();
  rows.Bind(1, std::string_view("call_row"));
  if (!rows.Next()) {
    counts.calls = reader.CallCount(/*leaves_only=*/false);
    counts.leaves = reader.CallCount(/*leaves_only=*/true);
    return counts;
  }
  const ProcessFilter filter(reader.process());
  Statement sums(reader.database(), std::string(kSums) + " WHERE " + filter.OfThread("thread_id"));
  filter.Bind(sums);
  if (sums.Next()) {
    counts.calls = sums.Integer(0);
    counts.leaves = sums.Integer(1);
  }
  return counts;
}

}  // namespace acltape::storage
