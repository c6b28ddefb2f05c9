#include "storage/schema.h"

#include <fmt/format.h>

#include "meaning/torch_operators.h"
#include "storage/database.h"

namespace acltape::storage {
namespace {

// Tables of what is recorded. Three of them grow with the program: call_row, buffer_row and, where
// values are kept, snapshot. All that calls repeat is interned in the others. Columns that are
// rarely set are in call_extra, because even a NULL costs a byte and a bind on the hot path.
constexpr char kRecordedTables[] = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE quirk(name TEXT PRIMARY KEY, description TEXT) WITHOUT ROWID;
CREATE TABLE ledger(kind TEXT, severity TEXT, count INTEGER, subject TEXT, cause TEXT, remedy TEXT,
  PRIMARY KEY(kind, subject));

CREATE TABLE process(process_id INTEGER PRIMARY KEY, pid INTEGER, rank INTEGER, name TEXT);
CREATE TABLE thread(thread_id INTEGER PRIMARY KEY, process_id INTEGER, tid INTEGER, name TEXT);

CREATE TABLE op(op_id INTEGER PRIMARY KEY, dialect TEXT, name TEXT, overload TEXT, schema TEXT);
CREATE TABLE layout(layout_id INTEGER PRIMARY KEY, dtype TEXT, shape TEXT, strides TEXT,
  byte_offset INTEGER, format TEXT, flags INTEGER);
CREATE TABLE signature(signature_id INTEGER PRIMARY KEY, op_id INTEGER);
CREATE TABLE signature_argument(signature_id INTEGER, position INTEGER, name TEXT, direction TEXT,
  kind TEXT, layout_id INTEGER, slot INTEGER, integer INTEGER, real REAL, text TEXT, list TEXT,
  PRIMARY KEY(signature_id, position)) WITHOUT ROWID;

CREATE TABLE call_row(call_id INTEGER PRIMARY KEY, signature_id INTEGER, thread_id INTEGER,
  parent_id INTEGER, scope_id INTEGER, bits INTEGER, begin_ns INTEGER, duration_ns INTEGER,
  buffers TEXT);
CREATE TABLE call_extra(call_id INTEGER PRIMARY KEY, status INTEGER, stream_id INTEGER,
  stack_id INTEGER, prepare_ns INTEGER, launch_ns INTEGER, model_id INTEGER, forward_call INTEGER);
CREATE TABLE buffer_row(buffer_id INTEGER PRIMARY KEY, address INTEGER, bytes INTEGER,
  alloc_call INTEGER, free_call INTEGER, flags INTEGER, alloc_ns INTEGER, life_ns INTEGER);

CREATE TABLE payload(digest TEXT, piece INTEGER, bytes INTEGER, codec TEXT, data BLOB,
  PRIMARY KEY(digest, piece));
CREATE TABLE snapshot(call_id INTEGER, position INTEGER, moment TEXT, tensor_id INTEGER,
  digest TEXT, bytes INTEGER, packing INTEGER, changed INTEGER, min REAL, max REAL, mean REAL,
  l2 REAL, nan_count INTEGER, inf_count INTEGER);

CREATE TABLE scope(scope_id INTEGER PRIMARY KEY, parent_id INTEGER, kind TEXT, name TEXT,
  path TEXT);
CREATE TABLE scope_range(scope_id INTEGER, thread_id INTEGER, first_call INTEGER,
  last_call INTEGER, begin_ns INTEGER, end_ns INTEGER);
CREATE TABLE stack(stack_id INTEGER PRIMARY KEY, frames TEXT);
CREATE TABLE stream(stream_id INTEGER PRIMARY KEY, process_id INTEGER, handle INTEGER,
  device INTEGER, flags INTEGER, create_call INTEGER, destroy_call INTEGER);
CREATE TABLE event(event_id INTEGER PRIMARY KEY, process_id INTEGER, handle INTEGER,
  flags INTEGER, create_call INTEGER, destroy_call INTEGER);
CREATE TABLE model(model_id INTEGER PRIMARY KEY, process_id INTEGER, handle INTEGER, mode TEXT,
  begin_call INTEGER, end_call INTEGER, destroy_call INTEGER);
)sql";

// Tables that tools fill later.
constexpr char kResultTables[] = R"sql(
CREATE TABLE step(step INTEGER PRIMARY KEY, first_call INTEGER, last_call INTEGER, found_by TEXT);
CREATE INDEX step_by_first_call ON step(first_call);
CREATE TABLE buffer_role(buffer_id INTEGER PRIMARY KEY, role TEXT, pool TEXT);
CREATE TABLE dependency(source_call INTEGER, target_call INTEGER, kind TEXT, buffer_id INTEGER,
  first_byte INTEGER, last_byte INTEGER);
CREATE TABLE finding(finding_id INTEGER PRIMARY KEY, rule TEXT, severity TEXT, call_id INTEGER,
  code INTEGER, message TEXT, evidence TEXT, verdict TEXT);
CREATE UNIQUE INDEX finding_once ON finding(rule, call_id, message);
CREATE TABLE plan(plan_id INTEGER PRIMARY KEY, name TEXT, options TEXT, document TEXT);
CREATE TABLE region(region_id INTEGER PRIMARY KEY, plan_id INTEGER, kind TEXT, first_call INTEGER,
  last_call INTEGER, reason TEXT);
CREATE TABLE placement(plan_id INTEGER, call_id INTEGER, stream INTEGER,
  PRIMARY KEY(plan_id, call_id)) WITHOUT ROWID;
CREATE TABLE sync(plan_id INTEGER, event INTEGER, record_call INTEGER, wait_call INTEGER,
  reason TEXT);
CREATE TABLE run(run_id INTEGER PRIMARY KEY, mode TEXT, device TEXT, plan_id INTEGER, options TEXT,
  begin_ns INTEGER, end_ns INTEGER, exit_code INTEGER);
CREATE TABLE sample(run_id INTEGER, repetition INTEGER, step INTEGER, call_id INTEGER,
  region_id INTEGER, host_ns INTEGER, device_ns INTEGER);
CREATE TABLE comparison(run_id INTEGER, step INTEGER, call_id INTEGER, position INTEGER,
  metrics TEXT, verdict TEXT);
)sql";

// Added by schema version 2; made on demand in a trace of version 1.
constexpr char kWitnessTable[] = R"sql(
CREATE TABLE IF NOT EXISTS witness(witness_id INTEGER PRIMARY KEY, kind TEXT, options TEXT,
  plan_id INTEGER, call_id INTEGER, position INTEGER, message TEXT, verdict TEXT, command TEXT,
  UNIQUE(kind, options, plan_id, call_id));
)sql";

// Interface functions that end a captured region when they are met inside it. Codes are those of
// docs: 107027 a host read or wait on the capturing stream, 107030 a synchronous copy in a capture.
constexpr char kBarrierRules[] = R"sql(
CREATE TABLE barrier_rule(op_name TEXT PRIMARY KEY, code INTEGER, reason TEXT) WITHOUT ROWID;
INSERT INTO barrier_rule VALUES
 ('aclrtSynchronizeStream', 107027, 'the host waits for the stream'),
 ('aclrtSynchronizeStreamWithTimeout', 107027, 'the host waits for the stream'),
 ('aclrtSynchronizeDevice', 107027, 'the host waits for the device'),
 ('aclrtSynchronizeEvent', 107028, 'the host waits for an event'),
 ('aclrtQueryEventStatus', 107028, 'the host asks for the state of an event'),
 ('aclrtStreamQuery', 107027, 'the host asks for the state of the stream'),
 ('aclrtMemcpy', 107030, 'synchronous copy'),
 ('aclrtMemcpy2d', 107030, 'synchronous copy'),
 ('aclrtMemset', 107030, 'synchronous fill');
)sql";

constexpr char kIndexes[] = R"sql(
CREATE INDEX IF NOT EXISTS snapshot_by_call ON snapshot(call_id);
CREATE INDEX IF NOT EXISTS scope_range_by_scope ON scope_range(scope_id);
)sql";

// Leads from a leaf of PyTorch to the calls that it launched on a device. Only calls with a parent
// have an entry.
constexpr char kIndexOfParents[] =
    "CREATE INDEX IF NOT EXISTS call_by_parent ON call_row(parent_id) WHERE parent_id IS NOT NULL";

// Adds the operators of PyTorch that end a captured region, from their table. Those with masks are
// told by their arguments.
void AddOperatorRules(Database& database) {
  constexpr int64_t kStreamNotCaptured = 107027;
  Statement add(database, "INSERT INTO barrier_rule VALUES(?,?,?)");
  for (const meaning::TorchOperator& row : meaning::kTorchOperators) {
    if (row.barrier == meaning::Barrier::kNone || row.barrier == meaning::Barrier::kMask) continue;
    const std::string name =
        row.overload.empty() ? std::string(row.name) : fmt::format("{}.{}", row.name, row.overload);
    add.Bind(1, std::string_view(name));
    if (row.barrier == meaning::Barrier::kExchange) {
      add.BindNull(2);
    } else {
      add.Bind(2, kStreamNotCaptured);
    }
    add.Bind(3, row.reason);
    add.Run();
  }
}

}  // namespace

void CreateSchema(Database& database) {
  database.Execute("BEGIN IMMEDIATE");
  database.Execute(kRecordedTables);
  database.Execute(kResultTables);
  CreateWitnessTable(database);
  database.Execute(kBarrierRules);
  AddOperatorRules(database);
  CreateViews(database);
  database.Execute(fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", kApplicationId,
                               kSchemaVersion)
                       .c_str());
  database.Execute("COMMIT");
}

void CreateWitnessTable(Database& database) { database.Execute(kWitnessTable); }

void CreateIndexes(Database& database) {
  database.Execute(kIndexes);
  Statement places(database, "SELECT 1 FROM stack LIMIT 1");
  if (places.Next()) database.Execute(kIndexOfParents);
}

}  // namespace acltape::storage
