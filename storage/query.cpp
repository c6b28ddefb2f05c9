#include "storage/query.h"

#include <fmt/format.h>

#include <algorithm>

#include "meaning/options.h"
#include "storage/database.h"
#include "storage/step_breakdown.h"

namespace acltape::storage {
namespace {

// Only buffers that ever hold NaN or an infinity are looked at. What a call reads at a place of one
// is what the last call before it wrote at that place: a buffer can be the block of an allocator,
// with many tensors in it. What begins inside of an earlier result, such as a view, is looked for
// among the thousand calls before. The content of a buffer from outside has no statistics, so such
// inputs are not known. Nothing at all is known of a tensor without a buffer, such as one on a
// device whose memory the recording does not follow: calls that read one are named only up to the
// first result that is not finite. A call is one row, whatever the number of its results.
constexpr char kFirstNan[] = R"sql(
WITH bad_buffer AS (
  SELECT DISTINCT tensor_id >> 24 AS buffer_id FROM snapshot WHERE nan_count > 0 OR inf_count > 0
), known_buffer AS (
  SELECT DISTINCT tensor_id >> 24 AS buffer_id FROM snapshot WHERE nan_count IS NOT NULL
), written AS MATERIALIZED (
  SELECT s.call_id, s.tensor_id >> 24 AS buffer_id, l.byte_offset AS place,
    max(s.nan_count) AS nans, max(s.inf_count) AS infs
  FROM snapshot s JOIN layout l ON l.layout_id = s.tensor_id & 16777215
  WHERE s.moment = 'after' AND s.nan_count IS NOT NULL
    AND s.tensor_id >> 24 IN (SELECT buffer_id FROM bad_buffer) GROUP BY 1, 2, 3
), event AS (
  SELECT buffer_id, place, call_id, 1 AS is_write FROM written
  UNION ALL
  SELECT DISTINCT u.buffer_id, l.byte_offset, u.call_id, 0
  FROM tensor_use u JOIN layout l ON l.layout_id = u.layout_id
  WHERE u.direction <> 'out' AND u.buffer_id IN (SELECT buffer_id FROM bad_buffer)
    AND u.call_id IN (SELECT call_id FROM written WHERE nans > 0 OR infs > 0)
), reached AS MATERIALIZED (
  SELECT buffer_id, place, call_id, is_write, max(iif(is_write, call_id, NULL)) OVER
    (PARTITION BY buffer_id, place ORDER BY call_id, is_write ROWS UNBOUNDED PRECEDING) AS writer
  FROM event
), input AS (
  SELECT call_id, max(nans) AS nans, max(infs) AS infs FROM (
    SELECT r.call_id, w.nans, w.infs FROM reached r
    JOIN written w ON w.call_id = r.writer AND w.buffer_id = r.buffer_id AND w.place = r.place
    WHERE r.is_write = 0
    UNION ALL
    SELECT r.call_id, s.nan_count, s.inf_count FROM reached r
    JOIN snapshot s ON s.call_id = (
      SELECT max(e.call_id) FROM snapshot e JOIN layout l ON l.layout_id = e.tensor_id & 16777215
      WHERE e.call_id < r.call_id AND e.call_id >= r.call_id - 1000 AND e.moment = 'after'
        AND e.nan_count IS NOT NULL AND e.tensor_id >> 24 = r.buffer_id
        AND l.byte_offset < r.place AND l.byte_offset + e.bytes > r.place)
    JOIN layout l ON l.layout_id = s.tensor_id & 16777215
    WHERE r.is_write = 0 AND r.writer IS NULL AND s.moment = 'after'
      AND s.tensor_id >> 24 = r.buffer_id AND l.byte_offset < r.place
      AND l.byte_offset + s.bytes > r.place
  ) GROUP BY call_id
), turned AS (
  SELECT s.call_id, sum(s.nan_count) AS nan_count, sum(s.inf_count) AS inf_count,
    sum(s.bytes) AS bytes, min(s.min) AS min, max(s.max) AS max
  FROM snapshot s LEFT JOIN input i ON i.call_id = s.call_id
  WHERE s.moment = 'after' AND ((s.nan_count > 0 AND ifnull(i.nans, 0) = 0) OR
    (s.nan_count = 0 AND s.inf_count > 0 AND ifnull(i.nans, 0) = 0 AND ifnull(i.infs, 0) = 0))
    AND (s.call_id <= (SELECT min(call_id) FROM snapshot WHERE nan_count > 0 OR inf_count > 0)
      OR NOT EXISTS (SELECT 1 FROM tensor_use u WHERE u.call_id = s.call_id
                     AND u.direction <> 'out' AND u.buffer_id = 0))
  GROUP BY s.call_id
)
SELECT t.call_id, c.step, c.op, iif(t.nan_count > 0, 'NaN', 'Inf') AS turns,
  CASE WHEN i.infs > 0 THEN 'Inf' WHEN EXISTS (
    SELECT 1 FROM tensor_use u WHERE u.call_id = t.call_id AND u.direction <> 'out'
      AND u.buffer_id NOT IN (SELECT buffer_id FROM known_buffer)) THEN 'partly not known'
    ELSE 'finite' END AS inputs,
  t.nan_count, t.inf_count, t.bytes, t.min, t.max, p.path AS scope,
  (SELECT l.file || iif(l.line > 0, ':' || l.line, '') FROM call_location l
   WHERE l.call_id = t.call_id) AS "where"
FROM turned t JOIN call c ON c.call_id = t.call_id LEFT JOIN input i ON i.call_id = t.call_id
LEFT JOIN scope p ON p.scope_id = c.scope_id
WHERE 1 /*picked t.call_id*/ ORDER BY t.call_id)sql";

// The host is at fault when the call that ended the idle time began after the device had nothing
// left to do. Work that had been launched by then waited for an event, or for launching itself.
constexpr char kDeviceGaps[] = R"sql(
SELECT g.idle_ns, g.device, g.begin_ns, g.call_id AS ended_by, c.op, g.stream_id, c.step,
  iif(c.begin_ns >= g.begin_ns, 'the host was late', 'the work waited on the device') AS cause,
  (SELECT l.file || iif(l.line > 0, ':' || l.line, '') FROM call_location l
   WHERE l.call_id IN (c.call_id, c.parent_id) ORDER BY l.call_id DESC LIMIT 1) AS "where"
FROM (SELECT begin_ns - idle_from AS idle_ns, device, idle_from AS begin_ns, call_id,
        on_stream AS stream_id
      FROM device_work WHERE stream_id IS NULL AND begin_ns > idle_from /*picked call_id*/
      ORDER BY 1 DESC, call_id LIMIT 50) g
LEFT JOIN call c ON c.call_id = g.call_id ORDER BY g.idle_ns DESC, g.call_id)sql";

// A copy between the device and memory that is not pinned waits, whatever its name says; the host's
// address is a number then. A thread that launches for operators of another thread waits for
// itself: the program waits in the operator. Where the ACL level was not recorded, operators of
// PyTorch that bring a value of the device to the host stand for what they wait in.
constexpr char kHostWaits[] = R"sql(
WITH waiting AS MATERIALIZED (
  SELECT s.signature_id AS signature_id, o.dialect = 'aten' AS is_aten
  FROM signature s JOIN op o ON o.op_id = s.op_id
  WHERE o.name GLOB 'aclrtSynchronize*'
    OR o.name IN ('aclmdlRIExecute', 'aclrtMemcpy', 'aclrtMemcpy2d', 'aclrtMemset')
    OR (o.name IN ('aclrtMemcpyAsync', 'aclrtMemcpy2dAsync') AND EXISTS (
      SELECT 1 FROM signature_argument a WHERE a.signature_id = s.signature_id
        AND a.name IN ('dst', 'src') AND a.kind = 'int' AND a.integer <> 0))
    OR (o.dialect = 'aten' AND NOT EXISTS (SELECT 1 FROM op WHERE dialect = 'aclrt')
      AND EXISTS (SELECT 1 FROM barrier_op b WHERE b.op_id = o.op_id AND b.code IS NOT NULL))
), launching AS MATERIALIZED (
  SELECT DISTINCT c.thread_id FROM call_row c JOIN call_row p ON p.call_id = c.parent_id
  WHERE c.thread_id <> p.thread_id
  EXCEPT
  SELECT DISTINCT c.thread_id FROM call_row c JOIN signature s ON s.signature_id = c.signature_id
  JOIN op o ON o.op_id = s.op_id WHERE o.dialect = 'aten'
)
SELECT c.call_id, c.step, c.op, p.op AS inside_of, c.stream_id, c.duration_ns,
  p.duration_ns AS inside_ns, c.thread_id
FROM call_row r JOIN waiting w ON w.signature_id = r.signature_id
CROSS JOIN call c ON c.call_id = r.call_id LEFT JOIN call p ON p.call_id = c.parent_id
WHERE r.thread_id NOT IN (SELECT thread_id FROM launching) AND (w.is_aten = 0 OR c.device > 0)
  /*picked c.call_id*/
ORDER BY c.duration_ns DESC, c.call_id)sql";

constexpr char kTopOpsOfPicked[] = R"sql(
SELECT c.op AS op, o.dialect AS dialect, count(*) AS calls, sum(c.duration_ns) AS total_ns,
  sum(c.duration_ns) / count(*) AS mean_ns, min(c.duration_ns) AS min_ns,
  max(c.duration_ns) AS max_ns,
  round(100.0 * sum(c.duration_ns) / nullif(sum(sum(c.duration_ns)) OVER (), 0), 2) AS percent,
  count(DISTINCT c.signature_id) AS signatures, sum(v.device_ns) AS device_ns,
  sum(v.device_ns) / count(v.device_ns) AS device_mean_ns,
  round(100.0 * sum(v.device_ns) / nullif(sum(sum(v.device_ns)) OVER (PARTITION BY o.dialect), 0),
    2) AS device_percent
FROM temp.picked p CROSS JOIN call c ON c.call_id = p.call_id JOIN op o ON o.op_id = c.op_id
LEFT JOIN device_time v ON v.call_id = c.call_id
WHERE c.leaf = 1 GROUP BY c.op_id ORDER BY total_ns DESC, c.op)sql";

constexpr char kTopLinesOfPicked[] = R"sql(
SELECT l.file AS file, l.line AS line, l.function AS function, count(*) AS leaves,
  sum(c.duration_ns) AS total_ns,
  round(100.0 * sum(c.duration_ns) / sum(sum(c.duration_ns)) OVER (), 1) AS share_percent,
  sum(iif(c.bits & 3 = 0, c.duration_ns, 0)) AS forward_ns,
  sum(iif(c.bits & 3 = 1, c.duration_ns, 0)) AS backward_ns,
  sum(iif(c.bits & 3 = 2, c.duration_ns, 0)) AS optimizer_ns
FROM temp.picked p CROSS JOIN call_row c ON c.call_id = p.call_id
CROSS JOIN call_location l ON l.call_id = c.call_id
WHERE c.bits & 4 GROUP BY l.file, l.line, l.function ORDER BY total_ns DESC LIMIT 50)sql";

constexpr char kStepsOfPicked[] =
    "SELECT * FROM step_summary WHERE EXISTS (SELECT 1 FROM temp.picked p WHERE p.call_id BETWEEN "
    "first_call AND last_call)";

constexpr char kScopesOfPicked[] =
    "SELECT s.path, s.kind, count(*) AS times, sum(r.end_ns - r.begin_ns) AS total_ns, "
    "min(r.first_call) AS first_call, max(r.last_call) AS last_call FROM scope s "
    "JOIN scope_range r ON r.scope_id = s.scope_id WHERE EXISTS (SELECT 1 FROM temp.picked p "
    "WHERE p.call_id BETWEEN r.first_call AND r.last_call) GROUP BY s.scope_id ORDER BY s.scope_id";

constexpr NamedQuery kQueries[] = {
    {"top_ops", "operators by total host time, with the device's time where it was recorded",
     "SELECT * FROM top_ops", "", kTopOpsOfPicked},
    {"top_device_ops", "all that the device did, by its time (record @device-times)"_cli,
     "SELECT c.op, count(*) AS tasks, sum(d.end_ns - d.begin_ns) AS device_ns, "
     "sum(d.end_ns - d.begin_ns) / count(*) AS mean_ns, min(d.end_ns - d.begin_ns) AS min_ns, "
     "max(d.end_ns - d.begin_ns) AS max_ns, round(100.0 * sum(d.end_ns - d.begin_ns) / "
     "nullif(sum(sum(d.end_ns - d.begin_ns)) OVER (), 0), 2) AS percent FROM device_span d "
     "JOIN call c USING (call_id) WHERE 1 /*picked call_id*/ GROUP BY c.op_id ORDER BY device_ns "
     "DESC, c.op"},
    {"device_idle", "how much of its time each device, and each stream, idled",
     "SELECT process_id, device, stream_id, tasks, busy_ns, idle_ns, idle_percent, "
     "longest_idle_ns, launch_ns FROM device_use"},
    {"device_gaps", "the 50 longest times in which a device idled, and what ended them",
     kDeviceGaps},
    {"host_waits",
     "calls in which the host waits for the device, the longest first, and the operator around "
     "each",
     kHostWaits, "call_id"},
    {"top_lines", "the 50 lines of the program's source on which most of the leaves' time goes",
     "SELECT file, line, function, leaves, total_ns, "
     "round(100.0 * total_ns / sum(total_ns) OVER (), 1) AS share_percent, forward_ns, "
     "backward_ns, "
     "optimizer_ns FROM location_summary ORDER BY total_ns DESC LIMIT 50",
     "", kTopLinesOfPicked},
    {"slowest_calls", "the 50 slowest leaves",
     "SELECT call_id, op, step, phase, duration_ns, thread_id FROM call WHERE leaf = 1 "
     "/*picked call_id*/ ORDER BY duration_ns DESC LIMIT 50",
     "call_id"},
    {"host_gaps", "the 50 longest times between two leaves of a thread",
     "SELECT * FROM longest_host_gaps WHERE 1 /*picked after_call*/ LIMIT 50", "after_call",
     "SELECT * FROM host_gaps WHERE 1 /*picked after_call*/ LIMIT 50"},
    {"capture_breaks", "leaves that end a captured region, and why",
     "SELECT * FROM capture_breaks WHERE 1 /*picked call_id*/ ORDER BY call_id", "call_id"},
    {"steps", "steps with their calls and times", "SELECT * FROM step_summary", "", kStepsOfPicked},
    {"step_breakdown",
     "where the time of each step goes: loading data, waiting, copying, computing on the host, "
     "issuing, the program itself; the device's computing, copying and idling",
     kStepBreakdown},
    {"ops_by_phase", "operators by phase (forward, backward, optimizer)",
     "SELECT phase, op, count(*) AS calls, sum(duration_ns) AS total_ns FROM call "
     "WHERE leaf = 1 /*picked call_id*/ GROUP BY phase, op ORDER BY phase, total_ns DESC"},
    {"tensors_by_size", "the 50 largest buffers",
     "SELECT buffer_id, bytes, role, alloc_call, free_call, is_foreign FROM buffer "
     "WHERE 1 /*picked alloc_call*/ ORDER BY bytes DESC, buffer_id LIMIT 50"},
    {"scopes", "user and module ranges with their time",
     "SELECT s.path, s.kind, count(r.scope_id) AS times, sum(r.end_ns - r.begin_ns) AS total_ns, "
     "min(r.first_call) AS first_call, max(r.last_call) AS last_call FROM scope s "
     "LEFT JOIN scope_range r ON r.scope_id = s.scope_id GROUP BY s.scope_id ORDER BY s.scope_id",
     "", kScopesOfPicked},
    {"threads", "threads with their calls",
     "SELECT t.thread_id, t.process_id, p.pid, t.tid, t.name, "
     "iif(EXISTS (SELECT 1 FROM thread_total), "
     "ifnull((SELECT c.calls FROM thread_total c WHERE c.thread_id = t.thread_id), 0), "
     "(SELECT count(*) FROM call_row c WHERE c.thread_id = t.thread_id)) AS calls "
     "FROM thread t LEFT JOIN process p ON p.process_id = t.process_id ORDER BY t.thread_id"},
    {"windows", "stretches of time in which calls were recorded",
     "SELECT window_id, process_id, first_call, last_call, begin_ns, end_ns - begin_ns AS wall_ns "
     "FROM recorded_window ORDER BY window_id"},
    {"payloads", "the 50 largest payloads",
     "SELECT digest, sum(bytes) AS bytes, codec, sum(length(data)) AS stored_bytes FROM payload "
     "GROUP BY digest ORDER BY bytes DESC LIMIT 50"},
    {"findings", "claims about this trace",
     "SELECT finding_id, rule, severity, call_id, code, verdict, message FROM finding "
     "WHERE 1 /*picked call_id*/ ORDER BY finding_id"},
    {"runs", "replays of this trace, calibrations and diffs",
     "SELECT r.run_id, r.mode, r.device, r.plan_id, r.exit_code, "
     "(r.end_ns - r.begin_ns) / 1000000 AS wall_ms, "
     "(SELECT count(*) FROM comparison c WHERE c.run_id = r.run_id) AS comparisons, "
     "(SELECT count(*) FROM comparison c WHERE c.run_id = r.run_id AND c.verdict <> 'equal') "
     "AS not_equal FROM run r ORDER BY r.run_id"},
    {"differences", "what the latest diff against another trace found",
     "SELECT c.step, c.call_id, k.op, c.verdict, json_extract(c.metrics, '$.cause') AS cause, "
     "json_extract(c.metrics, '$.calls') AS other_calls, "
     "json_extract(c.metrics, '$.output') AS output, "
     "json_extract(c.metrics, '$.change') AS change, "
     "json_extract(c.metrics, '$.relative_error') AS relative_error, "
     "json_extract(c.metrics, '$.max_ulp') AS max_ulp FROM comparison c "
     "LEFT JOIN call k ON k.call_id = c.call_id "
     "WHERE c.run_id = (SELECT max(run_id) FROM run WHERE mode = 'diff') "
     "/*picked c.call_id*/ ORDER BY c.rowid"},
    {"witnesses", "experiments in which a plan failed",
     "SELECT w.witness_id, w.kind, w.verdict, w.call_id, p.name AS plan, w.message, w.command "
     "FROM witness w LEFT JOIN plan p ON p.plan_id = w.plan_id "
     "WHERE 1 /*picked w.call_id*/ ORDER BY w.witness_id"},
    {"first_nan",
     "results that turn NaN, or infinite, although no input is known to be; the first one first",
     kFirstNan},
    {"ledger", "what was dropped, skipped or approximated",
     "SELECT severity, kind, count, subject, cause, remedy FROM ledger ORDER BY "
     "CASE severity WHEN 'error' THEN 0 WHEN 'data_loss' THEN 1 WHEN 'notice' THEN 2 ELSE 3 END, "
     "kind, subject"},
    {"meta", "facts about the recording", "SELECT key, value FROM meta ORDER BY key"},
};

constexpr std::string_view kPicked = "/*picked ";

[[noreturn]] void RefuseSql(std::string_view why) {
  throw Error(ErrorKind::kUsage, fmt::format("this query cannot be run: {}", why));
}

// SQLite's own guard against statements that write through a connection that could.
class QueryOnly {
 public:
  explicit QueryOnly(sqlite3* handle) : handle_(handle) { Set("PRAGMA query_only=1"); }
  ~QueryOnly() { Set("PRAGMA query_only=0"); }
  QueryOnly(const QueryOnly&) = delete;
  QueryOnly& operator=(const QueryOnly&) = delete;

 private:
  void Set(const char* sql) { sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr); }
  sqlite3* handle_;
};

// Pragmas that only tell something, also as tables: pragma_table_info('call').
constexpr std::string_view kToldByName[] = {
    "table_info",    "table_xinfo",      "table_list",     "index_list",    "index_info",
    "index_xinfo",   "foreign_key_list", "collation_list", "function_list", "compile_options",
    "database_list", "integrity_check",  "quick_check"};
// Pragmas that only tell something when they are given no value.
constexpr std::string_view kToldWithoutValue[] = {"application_id", "encoding",    "freelist_count",
                                                  "page_count",     "page_size",   "user_version",
                                                  "schema_version", "journal_mode"};
// Functions that load code, or tell addresses of this process.
constexpr std::string_view kRefusedFunctions[] = {"load_extension", "fts3_tokenizer"};

bool Has(std::span<const std::string_view> names, const char* name) {
  const std::string_view wanted = name == nullptr ? "" : name;
  return std::any_of(names.begin(), names.end(), [&](std::string_view known) {
    return wanted.size() == known.size() &&
           sqlite3_strnicmp(wanted.data(), known.data(), static_cast<int>(known.size())) == 0;
  });
}

// Allows a query the listed actions; all others are refused.
int Authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return Has(kRefusedFunctions, second) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      return Has(kToldByName, first) || (second == nullptr && Has(kToldWithoutValue, first))
                 ? SQLITE_OK
                 : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

// Makes SQLite's tables without a file (json_each, pragma_index_list) known to the connection.
// SQLite declares each where a statement first names it, by a statement of its own that Authorize
// would refuse.
void DeclareTables(Database& database) {
  for (const char* table : {"json_each", "json_tree"}) {
    const Statement declares(database, fmt::format("SELECT 1 FROM {}", table));
  }
  for (const std::string_view pragma : kToldByName) {
    const Statement declares(database, fmt::format("SELECT 1 FROM pragma_{}", pragma));
  }
}

// Asks Authorize about all that is prepared while it lives: a query can prepare more when it runs.
class Authorized {
 public:
  explicit Authorized(Database& database) : handle_(database.handle()) {
    DeclareTables(database);
    sqlite3_set_authorizer(handle_, Authorize, nullptr);
  }
  ~Authorized() { sqlite3_set_authorizer(handle_, nullptr, nullptr); }
  Authorized(const Authorized&) = delete;
  Authorized& operator=(const Authorized&) = delete;

 private:
  sqlite3* handle_;
};

}  // namespace

std::span<const NamedQuery> NamedQueries() { return kQueries; }

const NamedQuery* FindNamedQuery(std::string_view name) {
  for (const NamedQuery& query : kQueries) {
    if (query.name == name) return &query;
  }
  return nullptr;
}

bool NamedQuery::TakesCalls() const {
  return !over_picked.empty() || sql.find(kPicked) != std::string_view::npos;
}

std::string PickedSql(std::string_view sql, bool in) {
  std::string text;
  for (size_t open = 0; (open = sql.find(kPicked)) != std::string_view::npos;) {
    const size_t close = sql.find("*/", open);
    const size_t column = open + kPicked.size();
    text += fmt::format("{}AND {} {}IN (SELECT call_id FROM temp.picked)", sql.substr(0, open),
                        sql.substr(column, close - column), in ? "" : "NOT ");
    sql.remove_prefix(close + 2);
  }
  return text.append(sql);
}

void RunQuery(const Reader& reader, std::string_view sql,
              const std::function<void(const std::vector<std::string>&)>& on_columns,
              const std::function<bool(std::vector<Cell>&)>& on_row) {
  sqlite3* handle = reader.handle();
  const QueryOnly guard(handle);
  const Authorized authorized(reader.database());
  std::string_view tail;
  Statement rows(reader.database(), sql, tail, [&](int code) {
    if ((code & 0xff) == SQLITE_CORRUPT) return;
    if ((code & 0xff) == SQLITE_AUTH) RefuseSql("queries only read the trace");
    RefuseSql(sqlite3_errmsg(handle));
  });
  if (rows.handle() == nullptr) RefuseSql("it is empty");
  if (sqlite3_stmt_readonly(rows.handle()) == 0) RefuseSql("queries only read the trace");
  if (tail.find_first_not_of(" \t\r\n;") != std::string_view::npos && !tail.starts_with("--")) {
    std::string_view rest;
    constexpr std::string_view kSecond = "it holds more than one statement";
    const Statement more(reader.database(), tail, rest, [&](int) { RefuseSql(kSecond); });
    if (more.handle() != nullptr) RefuseSql(kSecond);
  }
  const int count = ColumnCount(rows);
  std::vector<std::string> columns;
  columns.reserve(count);
  for (int column = 0; column < count; ++column) columns.emplace_back(NameOfColumn(rows, column));
  on_columns(columns);
  std::vector<Cell> row;
  for (;;) {
    const int code = sqlite3_step(rows.handle());
    if (code == SQLITE_DONE) return;
    if (code != SQLITE_ROW) {
      if ((code & 0xff) == SQLITE_ERROR) RefuseSql(sqlite3_errmsg(handle));
      reader.database().Fail(code, "reading");
    }
    row.clear();
    for (int column = 0; column < count; ++column) row.push_back(CellOf(rows, column));
    if (!on_row(row)) return;
  }
}

}  // namespace acltape::storage
