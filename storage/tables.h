// The tables of a trace, described once. The schema, the rows that are written, the copies that
// trimming and redacting make, and the test of docs/schema.md take them from here.
//
// A column is named where a row is written, and the compiler finds its place:
//
//   RowInsert<kOp> row(database);
//   row.Set<"name">("aten::mm");
//   row.Run();
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "storage/database.h"
#include "storage/row_batch.h"

namespace acltape::storage {

struct StoredColumn {
  std::string_view name;
  std::string_view type;  // as SQL has it, with PRIMARY KEY where it is one alone
};

struct StoredTable {
  std::string_view name;
  std::span<const StoredColumn> columns;
  std::string_view constraint;  // "PRIMARY KEY(digest, piece)"; may be empty
  bool without_rowid = false;
};

namespace columns {
inline constexpr StoredColumn kMeta[] = {{"key", "TEXT PRIMARY KEY"}, {"value", "TEXT"}};
inline constexpr StoredColumn kQuirk[] = {{"name", "TEXT PRIMARY KEY"}, {"description", "TEXT"}};
inline constexpr StoredColumn kLedger[] = {{"kind", "TEXT"},     {"severity", "TEXT"},
                                           {"count", "INTEGER"}, {"subject", "TEXT"},
                                           {"cause", "TEXT"},    {"remedy", "TEXT"}};
inline constexpr StoredColumn kProcess[] = {{"process_id", "INTEGER PRIMARY KEY"},
                                            {"pid", "INTEGER"},
                                            {"rank", "INTEGER"},
                                            {"name", "TEXT"}};
inline constexpr StoredColumn kThread[] = {{"thread_id", "INTEGER PRIMARY KEY"},
                                           {"process_id", "INTEGER"},
                                           {"tid", "INTEGER"},
                                           {"name", "TEXT"}};
inline constexpr StoredColumn kOp[] = {{"op_id", "INTEGER PRIMARY KEY"},
                                       {"dialect", "TEXT"},
                                       {"name", "TEXT"},
                                       {"overload", "TEXT"},
                                       {"schema", "TEXT"}};
inline constexpr StoredColumn kLayout[] = {{"layout_id", "INTEGER PRIMARY KEY"},
                                           {"dtype", "TEXT"},
                                           {"shape", "TEXT"},
                                           {"strides", "TEXT"},
                                           {"byte_offset", "INTEGER"},
                                           {"format", "TEXT"},
                                           {"flags", "INTEGER"},
                                           {"memory", "TEXT"}};
inline constexpr StoredColumn kSignature[] = {{"signature_id", "INTEGER PRIMARY KEY"},
                                              {"op_id", "INTEGER"}};
inline constexpr StoredColumn kSignatureArgument[] = {{"signature_id", "INTEGER"},
                                                      {"position", "INTEGER"},
                                                      {"name", "TEXT"},
                                                      {"direction", "TEXT"},
                                                      {"kind", "TEXT"},
                                                      {"layout_id", "INTEGER"},
                                                      {"slot", "INTEGER"},
                                                      {"integer", "INTEGER"},
                                                      {"real", "REAL"},
                                                      {"text", "TEXT"},
                                                      {"list", "TEXT"}};
inline constexpr StoredColumn kCallRow[] = {{"call_id", "INTEGER PRIMARY KEY"},
                                            {"signature_id", "INTEGER"},
                                            {"thread_id", "INTEGER"},
                                            {"parent_id", "INTEGER"},
                                            {"scope_id", "INTEGER"},
                                            {"bits", "INTEGER"},
                                            {"begin_ns", "INTEGER"},
                                            {"duration_ns", "INTEGER"},
                                            {"buffers", "TEXT"},
                                            {"stack_id", "INTEGER"}};
inline constexpr StoredColumn kCallExtra[] = {{"call_id", "INTEGER PRIMARY KEY"},
                                              {"status", "INTEGER"},
                                              {"stream_id", "INTEGER"},
                                              {"stack_id", "INTEGER"},
                                              {"prepare_ns", "INTEGER"},
                                              {"launch_ns", "INTEGER"},
                                              {"model_id", "INTEGER"},
                                              {"forward_call", "INTEGER"}};
inline constexpr StoredColumn kBufferRow[] = {{"buffer_id", "INTEGER PRIMARY KEY"},
                                              {"address", "INTEGER"},
                                              {"bytes", "INTEGER"},
                                              {"alloc_call", "INTEGER"},
                                              {"free_call", "INTEGER"},
                                              {"flags", "INTEGER"},
                                              {"alloc_ns", "INTEGER"},
                                              {"life_ns", "INTEGER"},
                                              {"block", "INTEGER"}};
inline constexpr StoredColumn kPayload[] = {{"digest", "TEXT"},
                                            {"piece", "INTEGER"},
                                            {"bytes", "INTEGER"},
                                            {"codec", "TEXT"},
                                            {"data", "BLOB"}};
inline constexpr StoredColumn kSnapshot[] = {
    {"call_id", "INTEGER"},   {"position", "INTEGER"}, {"moment", "TEXT"},
    {"tensor_id", "INTEGER"}, {"digest", "TEXT"},      {"bytes", "INTEGER"},
    {"packing", "INTEGER"},   {"changed", "INTEGER"},  {"min", "REAL"},
    {"max", "REAL"},          {"mean", "REAL"},        {"l2", "REAL"},
    {"nan_count", "INTEGER"}, {"inf_count", "INTEGER"}};
inline constexpr StoredColumn kScope[] = {{"scope_id", "INTEGER PRIMARY KEY"},
                                          {"parent_id", "INTEGER"},
                                          {"kind", "TEXT"},
                                          {"name", "TEXT"},
                                          {"path", "TEXT"}};
inline constexpr StoredColumn kScopeRange[] = {{"scope_id", "INTEGER"},   {"thread_id", "INTEGER"},
                                               {"first_call", "INTEGER"}, {"last_call", "INTEGER"},
                                               {"begin_ns", "INTEGER"},   {"end_ns", "INTEGER"}};
inline constexpr StoredColumn kStack[] = {
    {"stack_id", "INTEGER PRIMARY KEY"}, {"frames", "TEXT"}, {"user_frame", "INTEGER"}};
inline constexpr StoredColumn kStream[] = {{"stream_id", "INTEGER PRIMARY KEY"},
                                           {"process_id", "INTEGER"},
                                           {"handle", "INTEGER"},
                                           {"device", "INTEGER"},
                                           {"flags", "INTEGER"},
                                           {"create_call", "INTEGER"},
                                           {"destroy_call", "INTEGER"}};
inline constexpr StoredColumn kEvent[] = {{"event_id", "INTEGER PRIMARY KEY"},
                                          {"process_id", "INTEGER"},
                                          {"handle", "INTEGER"},
                                          {"flags", "INTEGER"},
                                          {"create_call", "INTEGER"},
                                          {"destroy_call", "INTEGER"}};
inline constexpr StoredColumn kModel[] = {{"model_id", "INTEGER PRIMARY KEY"},
                                          {"process_id", "INTEGER"},
                                          {"handle", "INTEGER"},
                                          {"mode", "TEXT"},
                                          {"begin_call", "INTEGER"},
                                          {"end_call", "INTEGER"},
                                          {"destroy_call", "INTEGER"}};
inline constexpr StoredColumn kCommunicator[] = {{"communicator_id", "INTEGER PRIMARY KEY"},
                                                 {"process_id", "INTEGER"},
                                                 {"handle", "INTEGER"},
                                                 {"name", "TEXT"},
                                                 {"rank", "INTEGER"},
                                                 {"ranks", "INTEGER"}};
inline constexpr StoredColumn kRecordedWindow[] = {{"window_id", "INTEGER PRIMARY KEY"},
                                                   {"process_id", "INTEGER"},
                                                   {"first_call", "INTEGER"},
                                                   {"last_call", "INTEGER"},
                                                   {"begin_ns", "INTEGER"},
                                                   {"end_ns", "INTEGER"}};
inline constexpr StoredColumn kDeviceSpan[] = {{"call_id", "INTEGER"},
                                               {"stream_id", "INTEGER"},
                                               {"begin_ns", "INTEGER"},
                                               {"end_ns", "INTEGER"},
                                               {"error_ns", "INTEGER"}};
inline constexpr StoredColumn kFailureText[] = {{"call_id", "INTEGER PRIMARY KEY"},
                                                {"text", "TEXT"}};
inline constexpr StoredColumn kStep[] = {{"step", "INTEGER PRIMARY KEY"},
                                         {"first_call", "INTEGER"},
                                         {"last_call", "INTEGER"},
                                         {"found_by", "TEXT"}};
inline constexpr StoredColumn kBufferRole[] = {
    {"buffer_id", "INTEGER PRIMARY KEY"}, {"role", "TEXT"}, {"pool", "TEXT"}};
inline constexpr StoredColumn kDependency[] = {
    {"source_call", "INTEGER"}, {"target_call", "INTEGER"}, {"kind", "TEXT"},
    {"buffer_id", "INTEGER"},   {"first_byte", "INTEGER"},  {"last_byte", "INTEGER"}};
inline constexpr StoredColumn kFinding[] = {{"finding_id", "INTEGER PRIMARY KEY"},
                                            {"rule", "TEXT"},
                                            {"severity", "TEXT"},
                                            {"call_id", "INTEGER"},
                                            {"code", "INTEGER"},
                                            {"message", "TEXT"},
                                            {"evidence", "TEXT"},
                                            {"verdict", "TEXT"}};
inline constexpr StoredColumn kPlan[] = {{"plan_id", "INTEGER PRIMARY KEY"},
                                         {"name", "TEXT"},
                                         {"options", "TEXT"},
                                         {"document", "TEXT"}};
inline constexpr StoredColumn kRegion[] = {{"region_id", "INTEGER PRIMARY KEY"},
                                           {"plan_id", "INTEGER"},
                                           {"kind", "TEXT"},
                                           {"first_call", "INTEGER"},
                                           {"last_call", "INTEGER"},
                                           {"reason", "TEXT"}};
inline constexpr StoredColumn kPlacement[] = {
    {"plan_id", "INTEGER"}, {"call_id", "INTEGER"}, {"stream", "INTEGER"}};
inline constexpr StoredColumn kSync[] = {{"plan_id", "INTEGER"},
                                         {"event", "INTEGER"},
                                         {"record_call", "INTEGER"},
                                         {"wait_call", "INTEGER"},
                                         {"reason", "TEXT"}};
inline constexpr StoredColumn kRun[] = {{"run_id", "INTEGER PRIMARY KEY"},
                                        {"mode", "TEXT"},
                                        {"device", "TEXT"},
                                        {"plan_id", "INTEGER"},
                                        {"options", "TEXT"},
                                        {"begin_ns", "INTEGER"},
                                        {"end_ns", "INTEGER"},
                                        {"exit_code", "INTEGER"}};
inline constexpr StoredColumn kSample[] = {{"run_id", "INTEGER"},    {"repetition", "INTEGER"},
                                           {"step", "INTEGER"},      {"call_id", "INTEGER"},
                                           {"region_id", "INTEGER"}, {"host_ns", "INTEGER"},
                                           {"device_ns", "INTEGER"}};
inline constexpr StoredColumn kComparison[] = {{"run_id", "INTEGER"},  {"step", "INTEGER"},
                                               {"call_id", "INTEGER"}, {"position", "INTEGER"},
                                               {"metrics", "TEXT"},    {"verdict", "TEXT"}};
inline constexpr StoredColumn kWitness[] = {{"witness_id", "INTEGER PRIMARY KEY"},
                                            {"kind", "TEXT"},
                                            {"options", "TEXT"},
                                            {"plan_id", "INTEGER"},
                                            {"call_id", "INTEGER"},
                                            {"position", "INTEGER"},
                                            {"message", "TEXT"},
                                            {"verdict", "TEXT"},
                                            {"command", "TEXT"}};
inline constexpr StoredColumn kTableTotal[] = {{"table_name", "TEXT PRIMARY KEY"},
                                               {"rows", "INTEGER"}};
inline constexpr StoredColumn kSignatureTotal[] = {{"signature_id", "INTEGER PRIMARY KEY"},
                                                   {"calls", "INTEGER"},
                                                   {"first_call", "INTEGER"},
                                                   {"leaves", "INTEGER"},
                                                   {"total_ns", "INTEGER"},
                                                   {"min_ns", "INTEGER"},
                                                   {"max_ns", "INTEGER"}};
inline constexpr StoredColumn kThreadTotal[] = {
    {"thread_id", "INTEGER PRIMARY KEY"}, {"calls", "INTEGER"}, {"leaves", "INTEGER"}};
inline constexpr StoredColumn kStepTotal[] = {
    {"step", "INTEGER PRIMARY KEY"}, {"first_call", "INTEGER"},
    {"last_call", "INTEGER"},        {"calls", "INTEGER"},
    {"leaves", "INTEGER"},           {"wall_ns", "INTEGER"},
    {"leaf_ns", "INTEGER"},          {"signatures", "INTEGER"},
    {"backward_leaves", "INTEGER"},  {"breaks", "INTEGER"}};
inline constexpr StoredColumn kHostGap[] = {{"gap_ns", "INTEGER"},
                                            {"thread_id", "INTEGER"},
                                            {"after_call", "INTEGER"},
                                            {"before_call", "INTEGER"}};
inline constexpr StoredColumn kBarrierRule[] = {
    {"op_name", "TEXT PRIMARY KEY"}, {"code", "INTEGER"}, {"reason", "TEXT"}};
}  // namespace columns

namespace tables {

// The tables of the recording. Four tables grow with the program: call_row, buffer_row and, where
// they are kept, snapshot and device_span. All that calls repeat is interned in the others. Columns
// that are rarely set are in call_extra, because even a NULL costs a byte and a bind on the hot
// path.
inline constexpr StoredTable kMeta{"meta", columns::kMeta, "", true};
inline constexpr StoredTable kQuirk{"quirk", columns::kQuirk, "", true};
inline constexpr StoredTable kLedger{"ledger", columns::kLedger, "PRIMARY KEY(kind, subject)"};
inline constexpr StoredTable kProcess{"process", columns::kProcess};
inline constexpr StoredTable kThread{"thread", columns::kThread};
inline constexpr StoredTable kOp{"op", columns::kOp};
inline constexpr StoredTable kLayout{"layout", columns::kLayout};
inline constexpr StoredTable kSignature{"signature", columns::kSignature};
inline constexpr StoredTable kSignatureArgument{"signature_argument", columns::kSignatureArgument,
                                                "PRIMARY KEY(signature_id, position)", true};
inline constexpr StoredTable kCallRow{"call_row", columns::kCallRow};
inline constexpr StoredTable kCallExtra{"call_extra", columns::kCallExtra};
inline constexpr StoredTable kBufferRow{"buffer_row", columns::kBufferRow};
inline constexpr StoredTable kPayload{"payload", columns::kPayload};
inline constexpr StoredTable kSnapshot{"snapshot", columns::kSnapshot};
inline constexpr StoredTable kScope{"scope", columns::kScope};
inline constexpr StoredTable kScopeRange{"scope_range", columns::kScopeRange};
inline constexpr StoredTable kStack{"stack", columns::kStack};
inline constexpr StoredTable kStream{"stream", columns::kStream};
inline constexpr StoredTable kEvent{"event", columns::kEvent};
inline constexpr StoredTable kModel{"model", columns::kModel};
inline constexpr StoredTable kCommunicator{"communicator", columns::kCommunicator};
inline constexpr StoredTable kRecordedWindow{"recorded_window", columns::kRecordedWindow};
inline constexpr StoredTable kDeviceSpan{"device_span", columns::kDeviceSpan};
inline constexpr StoredTable kFailureText{"failure_text", columns::kFailureText};

// The results of tools.
inline constexpr StoredTable kStep{"step", columns::kStep};
inline constexpr StoredTable kBufferRole{"buffer_role", columns::kBufferRole};
inline constexpr StoredTable kDependency{"dependency", columns::kDependency};
inline constexpr StoredTable kFinding{"finding", columns::kFinding};
inline constexpr StoredTable kPlan{"plan", columns::kPlan};
inline constexpr StoredTable kRegion{"region", columns::kRegion};
inline constexpr StoredTable kPlacement{"placement", columns::kPlacement,
                                        "PRIMARY KEY(plan_id, call_id)", true};
inline constexpr StoredTable kSync{"sync", columns::kSync};
inline constexpr StoredTable kRun{"run", columns::kRun};
inline constexpr StoredTable kSample{"sample", columns::kSample};
inline constexpr StoredTable kComparison{"comparison", columns::kComparison};
// Made on demand in a trace of an older schema.
inline constexpr StoredTable kWitness{"witness", columns::kWitness,
                                      "UNIQUE(kind, options, plan_id, call_id)"};

// The totals of all calls (stored_totals.h).
inline constexpr StoredTable kTableTotal{"table_total", columns::kTableTotal, "", true};
inline constexpr StoredTable kSignatureTotal{"signature_total", columns::kSignatureTotal};
inline constexpr StoredTable kThreadTotal{"thread_total", columns::kThreadTotal};
inline constexpr StoredTable kStepTotal{"step_total", columns::kStepTotal};
inline constexpr StoredTable kHostGap{"host_gap", columns::kHostGap};

// A constant of the schema, the same in each trace.
inline constexpr StoredTable kBarrierRule{"barrier_rule", columns::kBarrierRule, "", true};

// In an order in which they can be copied.
inline constexpr const StoredTable* kRecorded[] = {&kMeta,       &kQuirk,       &kLedger,
                                                   &kProcess,    &kThread,      &kOp,
                                                   &kLayout,     &kSignature,   &kSignatureArgument,
                                                   &kCallRow,    &kCallExtra,   &kBufferRow,
                                                   &kPayload,    &kSnapshot,    &kScope,
                                                   &kStack,      &kScopeRange,  &kStream,
                                                   &kEvent,      &kModel,       &kRecordedWindow,
                                                   &kDeviceSpan, &kFailureText, &kCommunicator};
inline constexpr const StoredTable* kResults[] = {&kStep, &kBufferRole, &kDependency, &kFinding,
                                                  &kPlan, &kRegion,     &kPlacement,  &kSync,
                                                  &kRun,  &kSample,     &kComparison, &kWitness};
// Tables of the recording that a trace of an older schema lacks, and that views need: they read as
// empty there.
inline constexpr const StoredTable* kLater[] = {&kCommunicator};  // schema version 9
// Never copied: a copy has totals of its own. From schema version 6 on; the views need them, and in
// a trace that lacks one it reads as empty.
inline constexpr const StoredTable* kTotals[] = {&kTableTotal, &kSignatureTotal, &kThreadTotal,
                                                 &kStepTotal, &kHostGap};

}  // namespace tables

// Returns the statement that creates a table.
std::string CreateText(const StoredTable& table);
// Returns "INSERT INTO op(op_id, ...) VALUES(?, ...)". `verb` is "INSERT INTO" or the like, and
// `schema` "main." or the like.
std::string InsertText(const StoredTable& table, std::string_view verb, std::string_view schema);

// A name that is a template argument.
template <size_t kBytes>
struct ColumnName {
  constexpr ColumnName(const char (&text)[kBytes]) {  // NOLINT: "name" becomes one
    std::copy_n(text, kBytes, characters);
  }
  char characters[kBytes] = {};
  constexpr std::string_view view() const { return {characters, kBytes - 1}; }
};

// The number of a column, from 0. A name that the table does not have ends the compilation.
consteval int NumberOf(const StoredTable& table, std::string_view name) {
  for (size_t column = 0; column < table.columns.size(); ++column) {
    if (table.columns[column].name == name) return static_cast<int>(column);
  }
  throw "the table has no such column";
}

inline constexpr std::string_view kReplace = "INSERT OR REPLACE INTO";
// Follows a row of the table `ledger`: one for a kind and subject that is there already counts on.
inline constexpr std::string_view kAddToCount =
    "ON CONFLICT(kind, subject) DO UPDATE SET count = count + excluded.count";

// A statement that adds rows to a table. A column that is never set is NULL; one that was set keeps
// its value for the next row.
template <const StoredTable& kTable>
class RowInsert {
 public:
  // `tail` follows the values, such as ON CONFLICT.
  explicit RowInsert(Database& database, std::string_view verb = "INSERT INTO",
                     std::string_view tail = "", std::string_view schema = "")
      : statement_(database, InsertText(kTable, verb, schema) + std::string(tail)) {}

  // Takes what Statement::Bind takes. The caller keeps the bytes of a text alive until Run.
  template <ColumnName kName, typename Value>
  void Set(const Value& value) {
    statement_.Bind(kParameter<kName>, value);
  }
  template <ColumnName kName>
  void SetNonZero(int64_t value) {
    statement_.BindNonZero(kParameter<kName>, value);
  }
  template <ColumnName kName>
  void SetBlob(const void* data, size_t bytes) {
    statement_.BindBlob(kParameter<kName>, data, bytes);
  }
  template <ColumnName kName>
  void SetNull() {
    statement_.BindNull(kParameter<kName>);
  }
  // Makes every column NULL.
  void Clear() { sqlite3_clear_bindings(statement_.handle()); }
  void Run() { statement_.Run(); }
  Statement& statement() { return statement_; }

 private:
  template <ColumnName kName>
  static constexpr int kParameter = NumberOf(kTable, kName.view()) + 1;
  Statement statement_;
};

// The same for rows that are added many at a time. A column that is not set is NULL.
template <const StoredTable& kTable>
class TableBatch : public RowBatch {
 public:
  explicit TableBatch(Database& database, std::string_view verb = "INSERT INTO")
      : RowBatch(database, std::string(verb) + " " + std::string(kTable.name) + " VALUES",
                 static_cast<int>(kTable.columns.size())) {}

  template <ColumnName kName, typename Value>
  void Set(const Value& value) {
    RowBatch::Set(kNumber<kName>, value);
  }
  template <ColumnName kName>
  void SetNonZero(int64_t value) {
    if (value != 0) RowBatch::Set(kNumber<kName>, value);
  }

 private:
  template <ColumnName kName>
  static constexpr int kNumber = NumberOf(kTable, kName.view());
};

}  // namespace acltape::storage
