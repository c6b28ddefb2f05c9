#include "storage/results.h"

#include <fmt/format.h>
#include <time.h>

#include <utility>

#include "storage/database.h"
#include "storage/payload.h"
#include "storage/payload_rows.h"
#include "storage/schema.h"
#include "storage/stored_totals.h"
#include "storage/table_rows.h"

namespace acltape::storage {
namespace {

constexpr int64_t kRowsPerTransaction = 20000;

int64_t WallNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

Database& Writable(Reader& reader) {
  if (!reader.writable()) {
    throw Error(ErrorKind::kDevice,
                fmt::format("results cannot be added to '{}': the file or its folder is read-only; "
                            "copy the trace to a writable folder",
                            reader.path()));
  }
  if (reader.State() == "recording") {
    throw Error(ErrorKind::kDevice,
                fmt::format("results cannot be added to '{}' while it is being recorded; wait for "
                            "the recording to end",
                            reader.path()));
  }
  return reader.database();
}

}  // namespace

struct Results::State_ {
  explicit State_(Database& trace) : database(trace) {}

  void Begin() {
    if (open) return;
    database.Execute("BEGIN IMMEDIATE");
    open = true;
  }
  void Commit() {
    pending = 0;
    if (!open) return;
    database.Execute("COMMIT");
    open = false;
  }
  template <typename T>
  void Run(T& statement) {
    Begin();
    statement.Run();
    CountRow();
  }
  void CountRow() {
    if (++pending >= kRowsPerTransaction) Commit();
  }

  Database& database;
  bool open = false;
  bool payloads_indexed = false;  // AddValue saw to it
  int64_t pending = 0;
  RowInsert<tables::kRun> add_run{database};
  Statement finish_run{database, "UPDATE run SET end_ns = ?, exit_code = ? WHERE run_id = ?"};
  RowInsert<tables::kSample> add_sample{database};
  RowInsert<tables::kComparison> add_comparison{database};
  RowInsert<tables::kFinding> add_finding{
      database, "INSERT INTO",
      "ON CONFLICT(rule, call_id, message) DO UPDATE SET "
      "severity = excluded.severity, code = excluded.code, evidence = excluded.evidence, "
      "verdict = excluded.verdict WHERE excluded.verdict <> 'predicted' OR "
      "finding.verdict = 'predicted' OR finding.code IS NOT excluded.code"};
  Statement find_plan{database, "SELECT plan_id FROM plan WHERE document = ?"};
  RowInsert<tables::kPlan> add_plan{database};
  RowInsert<tables::kRegion> add_region{database};
  RowInsert<tables::kPlacement> add_placement{database};
  RowInsert<tables::kSync> add_sync{database};
  std::optional<RowInsert<tables::kWitness>>
      add_witness;  // the table may be missing until it is asked for
  RowInsert<tables::kStep> add_step{database, kReplace};
  RowInsert<tables::kDependency> add_dependency{database};
  RowInsert<tables::kBufferRole> set_role{
      database, "INSERT INTO", "ON CONFLICT(buffer_id) DO UPDATE SET role = excluded.role"};
  RowInsert<tables::kLedger> add_ledger{database, "INSERT INTO", kAddToCount};
  Statement add_same_value{
      database,
      "INSERT INTO snapshot SELECT ?, ?, 'after', ?, digest, bytes, packing, 0, min, max, mean, "
      "l2, nan_count, inf_count FROM snapshot WHERE call_id = ? AND position = ? AND moment = ? "
      "AND tensor_id = ? LIMIT 1"};
  RowInsert<tables::kSnapshot> add_value{database};
  Statement set_parent{
      database,
      "UPDATE call_row SET parent_id = ?2, stack_id = ifnull(stack_id, (SELECT stack_id FROM call "
      "WHERE call_id = ?2)) WHERE call_id = ?1 AND parent_id IS NULL"};
  PayloadRows payload_rows{database};
  RowInsert<tables::kMeta> set_meta{database, kReplace};
};

Results::Results(Reader& reader) : state_(std::make_unique<State_>(Writable(reader))) {}

Results::~Results() {
  try {
    state_->Commit();
  } catch (const Error&) {
    // Whoever needs to know calls Commit. The open transaction goes away with the connection.
    sqlite3_exec(state_->database.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

int64_t Results::AddRun(const struct Run& run) {
  auto& add = state_->add_run;
  add.Set<"mode">(run.mode);
  add.Set<"device">(run.device);
  add.Set<"plan_id">(run.plan_id);
  add.Set<"options">(run.options);
  add.Set<"begin_ns">(run.begin_ns != 0 ? run.begin_ns : WallNs());
  state_->Run(add);
  return sqlite3_last_insert_rowid(state_->database.handle());
}

void Results::FinishRun(int64_t run_id, int exit_code) {
  state_->finish_run.Bind(1, WallNs());
  state_->finish_run.Bind(2, static_cast<int64_t>(exit_code));
  state_->finish_run.Bind(3, run_id);
  state_->Run(state_->finish_run);
}

void Results::AddSample(const Sample& sample) {
  auto& add = state_->add_sample;
  add.Set<"run_id">(sample.run_id);
  add.Set<"repetition">(sample.repetition);
  add.Set<"step">(sample.step);
  add.Set<"call_id">(sample.call_id);
  add.Set<"region_id">(sample.region_id);
  add.Set<"host_ns">(sample.host_ns);
  add.Set<"device_ns">(sample.device_ns);
  state_->Run(add);
}

void Results::AddComparison(const Comparison& comparison) {
  auto& add = state_->add_comparison;
  add.Set<"run_id">(comparison.run_id);
  add.Set<"step">(comparison.step);
  add.Set<"call_id">(comparison.call_id);
  add.Set<"position">(static_cast<int64_t>(comparison.position));
  add.Set<"metrics">(comparison.metrics);
  add.Set<"verdict">(comparison.verdict);
  state_->Run(add);
}

void Results::AddFinding(const Finding& finding) {
  auto& add = state_->add_finding;
  add.Set<"rule">(finding.rule);
  add.Set<"severity">(SeverityName(finding.severity));
  // 0 rather than NULL: NULLs differ from each other, and the finding would be stored twice.
  add.Set<"call_id">(finding.call_id);
  add.SetNonZero<"code">(finding.code);
  add.Set<"message">(finding.message);
  add.Set<"evidence">(finding.evidence);
  add.Set<"verdict">(finding.verdict);
  state_->Run(add);
}

int64_t Results::AddPlan(const PlanRecord& plan) {
  Statement& find = state_->find_plan;
  find.Bind(1, std::string_view(plan.document));
  const int64_t known = find.Next() ? find.Integer(0) : 0;
  find.Reset();
  if (known != 0) return known;
  auto& add = state_->add_plan;
  add.Set<"name">(plan.name);
  add.Set<"options">(plan.options);
  add.Set<"document">(plan.document);
  state_->Run(add);
  const int64_t plan_id = sqlite3_last_insert_rowid(state_->database.handle());
  for (const PlanRecord::Region& region : plan.regions) {
    auto& row = state_->add_region;
    row.Set<"plan_id">(plan_id);
    row.Set<"kind">(region.kind);
    row.Set<"first_call">(region.first_call);
    row.Set<"last_call">(region.last_call);
    row.Set<"reason">(region.reason);
    state_->Run(row);
  }
  for (const PlanRecord::Placement& placement : plan.placements) {
    auto& row = state_->add_placement;
    row.Set<"plan_id">(plan_id);
    row.Set<"call_id">(placement.call_id);
    row.Set<"stream">(placement.stream);
    state_->Run(row);
  }
  for (const PlanRecord::Sync& sync : plan.syncs) {
    auto& row = state_->add_sync;
    row.Set<"plan_id">(plan_id);
    row.Set<"event">(sync.event);
    row.Set<"record_call">(sync.record_call);
    row.Set<"wait_call">(sync.wait_call);
    row.Set<"reason">(sync.reason);
    state_->Run(row);
  }
  return plan_id;
}

int64_t Results::AddWitness(const Witness& witness) {
  if (!state_->add_witness) {
    state_->Commit();
    CreateWitnessTable(state_->database);
    state_->add_witness.emplace(
        state_->database, "INSERT INTO",
        "ON CONFLICT(kind, options, plan_id, call_id) DO UPDATE SET "
        "position = excluded.position, message = excluded.message, verdict = excluded.verdict, "
        "command = excluded.command RETURNING witness_id");
  }
  auto& add = *state_->add_witness;
  add.Set<"kind">(witness.kind);
  add.Set<"options">(witness.options);
  add.Set<"plan_id">(witness.plan_id);
  add.Set<"call_id">(witness.call_id);
  add.Set<"position">(static_cast<int64_t>(witness.position));
  add.Set<"message">(witness.message);
  add.Set<"verdict">(witness.verdict);
  add.Set<"command">(witness.command);
  state_->Begin();
  Statement& statement = add.statement();
  const int64_t witness_id = statement.Next() ? statement.Integer(0) : 0;
  statement.Reset();
  return witness_id;
}

void Results::ReplaceSteps(const std::vector<Step>& steps) {
  state_->Begin();
  state_->database.Execute("DELETE FROM step");
  for (const Step& step : steps) AddRow(state_->add_step, step);
  state_->Commit();
  AddUpSteps(state_->database);
}

void Results::ReplaceDependencies(const std::vector<Dependency>& dependencies) {
  state_->Begin();
  state_->database.Execute("DELETE FROM dependency");
  auto& add = state_->add_dependency;
  for (const Dependency& row : dependencies) {
    add.Set<"source_call">(row.source_call);
    add.Set<"target_call">(row.target_call);
    add.Set<"kind">(row.kind);
    add.SetNonZero<"buffer_id">(row.buffer_id);
    add.Set<"first_byte">(row.buffer_id == 0 ? std::nullopt : std::optional(row.first_byte));
    add.Set<"last_byte">(row.buffer_id == 0 ? std::nullopt : std::optional(row.last_byte));
    add.Run();
  }
  state_->Commit();
}

void Results::SetBufferRole(int64_t buffer_id, const std::string& role) {
  state_->set_role.Set<"buffer_id">(buffer_id);
  state_->set_role.Set<"role">(role);
  state_->Run(state_->set_role);
}

void Results::AddLedger(const LedgerEntry& entry) {
  state_->Begin();
  AddRow(state_->add_ledger, entry);
  state_->CountRow();
}

void Results::AddSameValue(const Snapshot& kept, int64_t call_id, int position,
                           const TensorRef& tensor) {
  Statement& add = state_->add_same_value;
  add.Bind(1, call_id);
  add.Bind(2, static_cast<int64_t>(position));
  add.Bind(3, tensor.tensor_id());
  add.Bind(4, kept.call_id);
  add.Bind(5, static_cast<int64_t>(kept.position));
  add.Bind(6, std::string_view(kept.after ? "after" : "before"));
  add.Bind(7, kept.tensor.tensor_id());
  state_->Run(add);
}

void Results::AddValue(int64_t call_id, int position, const TensorRef& tensor, bool dense,
                       const std::vector<uint8_t>& packed) {
  const std::string digest = DigestOf(packed.data(), packed.size());
  state_->Begin();
  if (!std::exchange(state_->payloads_indexed, true)) IndexPayloads(state_->database);
  state_->payload_rows.Add(digest, packed.data(), packed.size(), {});
  Snapshot snapshot;
  snapshot.call_id = call_id;
  snapshot.position = position;
  snapshot.after = true;
  snapshot.tensor = tensor;
  snapshot.digest = digest;
  snapshot.bytes = static_cast<int64_t>(packed.size());
  snapshot.packing = dense ? 0 : 1;
  AddRow(state_->add_value, snapshot, nullptr);
  state_->CountRow();
}

void Results::SetParent(int64_t call_id, int64_t parent_id) {
  state_->set_parent.Bind(1, call_id);
  state_->set_parent.Bind(2, parent_id);
  state_->Run(state_->set_parent);
}

void Results::SetMeta(const std::string& key, const std::string& value) {
  state_->set_meta.Set<"key">(key);
  state_->set_meta.Set<"value">(value);
  state_->Run(state_->set_meta);
}

void Results::Commit() { state_->Commit(); }

}  // namespace acltape::storage
