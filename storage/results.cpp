#include "storage/results.h"

#include <fmt/format.h>
#include <time.h>

#include "storage/database.h"
#include "storage/payload.h"
#include "storage/payload_rows.h"
#include "storage/schema.h"

namespace acltape::storage {
namespace {

constexpr int64_t kRowsPerTransaction = 20000;

int64_t WallNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

void Bind(Statement& statement, int parameter, const std::optional<int64_t>& value) {
  if (value.has_value()) {
    statement.Bind(parameter, *value);
  } else {
    statement.BindNull(parameter);
  }
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
  void Run(Statement& statement) {
    Begin();
    statement.Run();
    if (++pending >= kRowsPerTransaction) Commit();
  }

  Database& database;
  bool open = false;
  int64_t pending = 0;
  Statement add_run{database,
                    "INSERT INTO run(mode, device, plan_id, options, begin_ns) VALUES(?,?,?,?,?)"};
  Statement finish_run{database, "UPDATE run SET end_ns = ?, exit_code = ? WHERE run_id = ?"};
  Statement add_sample{database, "INSERT INTO sample VALUES(?,?,?,?,?,?,?)"};
  Statement add_comparison{database, "INSERT INTO comparison VALUES(?,?,?,?,?,?)"};
  Statement add_finding{
      database,
      "INSERT INTO finding(rule, severity, call_id, code, message, evidence, verdict) "
      "VALUES(?,?,?,?,?,?,?) ON CONFLICT(rule, call_id, message) DO UPDATE SET "
      "severity = excluded.severity, code = excluded.code, evidence = excluded.evidence, "
      "verdict = excluded.verdict WHERE excluded.verdict <> 'predicted' OR "
      "finding.verdict = 'predicted' OR finding.code IS NOT excluded.code"};
  Statement find_plan{database, "SELECT plan_id FROM plan WHERE document = ?"};
  Statement add_plan{database, "INSERT INTO plan(name, options, document) VALUES(?,?,?)"};
  Statement add_region{database,
                       "INSERT INTO region(plan_id, kind, first_call, last_call, reason) "
                       "VALUES(?,?,?,?,?)"};
  Statement add_placement{database, "INSERT INTO placement VALUES(?,?,?)"};
  Statement add_sync{database, "INSERT INTO sync VALUES(?,?,?,?,?)"};
  std::optional<Statement> add_witness;  // the table may be missing until it is asked for
  Statement add_step{database, "INSERT OR REPLACE INTO step VALUES(?,?,?,?)"};
  Statement add_dependency{database, "INSERT INTO dependency VALUES(?,?,?,?,?,?)"};
  Statement set_role{database,
                     "INSERT INTO buffer_role(buffer_id, role) VALUES(?,?) ON CONFLICT(buffer_id) "
                     "DO UPDATE SET role = excluded.role"};
  Statement add_ledger{database,
                       "INSERT INTO ledger VALUES(?,?,?,?,?,?) ON CONFLICT(kind, subject) DO "
                       "UPDATE SET count = count + excluded.count"};
  Statement add_same_value{
      database,
      "INSERT INTO snapshot SELECT ?, ?, 'after', ?, digest, bytes, packing, 0, min, max, mean, "
      "l2, nan_count, inf_count FROM snapshot WHERE call_id = ? AND position = ? AND moment = ? "
      "AND tensor_id = ? LIMIT 1"};
  Statement add_value{database,
                      "INSERT INTO snapshot(call_id, position, moment, tensor_id, digest, bytes, "
                      "packing, changed) VALUES(?,?,'after',?,?,?,?,0)"};
  PayloadRows payload_rows{database};
  Statement set_meta{database, "INSERT OR REPLACE INTO meta VALUES(?,?)"};
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
  Statement& add = state_->add_run;
  add.Bind(1, std::string_view(run.mode));
  add.Bind(2, std::string_view(run.device));
  Bind(add, 3, run.plan_id);
  add.Bind(4, std::string_view(run.options));
  add.Bind(5, run.begin_ns != 0 ? run.begin_ns : WallNs());
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
  Statement& add = state_->add_sample;
  add.Bind(1, sample.run_id);
  add.Bind(2, sample.repetition);
  Bind(add, 3, sample.step);
  Bind(add, 4, sample.call_id);
  Bind(add, 5, sample.region_id);
  Bind(add, 6, sample.host_ns);
  Bind(add, 7, sample.device_ns);
  state_->Run(add);
}

void Results::AddComparison(const Comparison& comparison) {
  Statement& add = state_->add_comparison;
  add.Bind(1, comparison.run_id);
  Bind(add, 2, comparison.step);
  add.Bind(3, comparison.call_id);
  add.Bind(4, static_cast<int64_t>(comparison.position));
  add.Bind(5, std::string_view(comparison.metrics));
  add.Bind(6, std::string_view(comparison.verdict));
  state_->Run(add);
}

void Results::AddFinding(const Finding& finding) {
  Statement& add = state_->add_finding;
  add.Bind(1, std::string_view(finding.rule));
  add.Bind(2, SeverityName(finding.severity));
  // 0 rather than NULL: NULLs differ from each other, and the finding would be stored twice.
  add.Bind(3, finding.call_id);
  add.BindNonZero(4, finding.code);
  add.Bind(5, std::string_view(finding.message));
  add.Bind(6, std::string_view(finding.evidence));
  add.Bind(7, std::string_view(finding.verdict));
  state_->Run(add);
}

int64_t Results::AddPlan(const PlanRecord& plan) {
  Statement& find = state_->find_plan;
  find.Bind(1, std::string_view(plan.document));
  const int64_t known = find.Next() ? find.Integer(0) : 0;
  find.Reset();
  if (known != 0) return known;
  Statement& add = state_->add_plan;
  add.Bind(1, std::string_view(plan.name));
  add.Bind(2, std::string_view(plan.options));
  add.Bind(3, std::string_view(plan.document));
  state_->Run(add);
  const int64_t plan_id = sqlite3_last_insert_rowid(state_->database.handle());
  for (const PlanRecord::Region& region : plan.regions) {
    Statement& row = state_->add_region;
    row.Bind(1, plan_id);
    row.Bind(2, std::string_view(region.kind));
    row.Bind(3, region.first_call);
    row.Bind(4, region.last_call);
    row.Bind(5, std::string_view(region.reason));
    state_->Run(row);
  }
  for (const PlanRecord::Placement& placement : plan.placements) {
    Statement& row = state_->add_placement;
    row.Bind(1, plan_id);
    row.Bind(2, placement.call_id);
    row.Bind(3, placement.stream);
    state_->Run(row);
  }
  for (const PlanRecord::Sync& sync : plan.syncs) {
    Statement& row = state_->add_sync;
    row.Bind(1, plan_id);
    row.Bind(2, sync.event);
    row.Bind(3, sync.record_call);
    row.Bind(4, sync.wait_call);
    row.Bind(5, std::string_view(sync.reason));
    state_->Run(row);
  }
  return plan_id;
}

int64_t Results::AddWitness(const Witness& witness) {
  if (!state_->add_witness) {
    state_->Commit();
    CreateWitnessTable(state_->database);
    state_->add_witness.emplace(
        state_->database,
        "INSERT INTO witness(kind, options, plan_id, call_id, position, message, verdict, command) "
        "VALUES(?,?,?,?,?,?,?,?) ON CONFLICT(kind, options, plan_id, call_id) DO UPDATE SET "
        "position = excluded.position, message = excluded.message, verdict = excluded.verdict, "
        "command = excluded.command RETURNING witness_id");
  }
  Statement& add = *state_->add_witness;
  add.Bind(1, std::string_view(witness.kind));
  add.Bind(2, std::string_view(witness.options));
  add.Bind(3, witness.plan_id);
  add.Bind(4, witness.call_id);
  add.Bind(5, static_cast<int64_t>(witness.position));
  add.Bind(6, std::string_view(witness.message));
  add.Bind(7, std::string_view(witness.verdict));
  add.Bind(8, std::string_view(witness.command));
  state_->Begin();
  const int64_t witness_id = add.Next() ? add.Integer(0) : 0;
  add.Reset();
  return witness_id;
}

void Results::ReplaceSteps(const std::vector<Step>& steps) {
  state_->Begin();
  state_->database.Execute("DELETE FROM step");
  for (const Step& step : steps) {
    state_->add_step.Bind(1, step.step);
    state_->add_step.Bind(2, step.first_call);
    state_->add_step.Bind(3, step.last_call);
    state_->add_step.Bind(4, std::string_view(step.found_by));
    state_->add_step.Run();
  }
  state_->Commit();
}

void Results::ReplaceDependencies(const std::vector<Dependency>& dependencies) {
  state_->Begin();
  state_->database.Execute("DELETE FROM dependency");
  Statement& add = state_->add_dependency;
  for (const Dependency& row : dependencies) {
    add.Bind(1, row.source_call);
    add.Bind(2, row.target_call);
    add.Bind(3, std::string_view(row.kind));
    add.BindNonZero(4, row.buffer_id);
    Bind(add, 5, row.buffer_id == 0 ? std::nullopt : std::optional(row.first_byte));
    Bind(add, 6, row.buffer_id == 0 ? std::nullopt : std::optional(row.last_byte));
    add.Run();
  }
  state_->Commit();
}

void Results::SetBufferRole(int64_t buffer_id, const std::string& role) {
  state_->set_role.Bind(1, buffer_id);
  state_->set_role.Bind(2, std::string_view(role));
  state_->Run(state_->set_role);
}

void Results::AddLedger(const LedgerEntry& entry) {
  Statement& add = state_->add_ledger;
  add.Bind(1, std::string_view(entry.kind));
  add.Bind(2, SeverityName(entry.severity));
  add.Bind(3, entry.count);
  add.Bind(4, std::string_view(entry.subject));
  add.Bind(5, std::string_view(entry.cause));
  add.Bind(6, std::string_view(entry.remedy));
  state_->Run(add);
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
  state_->payload_rows.Add(digest, packed.data(), packed.size(), kQuickCompression);
  Statement& add = state_->add_value;
  add.Bind(1, call_id);
  add.Bind(2, static_cast<int64_t>(position));
  add.Bind(3, tensor.tensor_id());
  add.Bind(4, std::string_view(digest));
  add.Bind(5, static_cast<int64_t>(packed.size()));
  add.Bind(6, static_cast<int64_t>(dense ? 0 : 1));
  state_->Run(add);
}

void Results::SetMeta(const std::string& key, const std::string& value) {
  state_->set_meta.Bind(1, std::string_view(key));
  state_->set_meta.Bind(2, std::string_view(value));
  state_->Run(state_->set_meta);
}

void Results::Commit() { state_->Commit(); }

}  // namespace acltape::storage
