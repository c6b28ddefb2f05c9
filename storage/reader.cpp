#include "storage/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "storage/database.h"
#include "storage/json_text.h"
#include "storage/payload.h"
#include "storage/process_choice.h"
#include "storage/process_identity.h"
#include "storage/schema.h"

namespace acltape::storage {
namespace {

[[noreturn]] void Refuse(const std::string& sentence) { throw Error(ErrorKind::kTrace, sentence); }

// Finds what SQLite need not be asked for: there is no such file, it is a folder, or it does not
// begin like a database.
const std::string& CheckFile(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    Refuse(errno == ENOENT ? fmt::format("there is no trace '{}'", path)
                           : fmt::format("cannot read '{}' ({})", path, std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) Refuse(fmt::format("'{}' is a folder, not a trace", path));
  if (!S_ISREG(status.st_mode)) Refuse(fmt::format("'{}' is not a trace: not a file", path));
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) Refuse(fmt::format("cannot read '{}' ({})", path, std::strerror(errno)));
  char head[16] = {};
  const ssize_t bytes = read(file, head, sizeof(head));
  close(file);
  if (bytes == 0) Refuse(fmt::format("'{}' is empty: nothing was recorded into it", path));
  if (bytes != sizeof(head) || std::memcmp(head, "SQLite format 3", 16) != 0) {
    Refuse(fmt::format("'{}' is not a trace: it is not an SQLite file", path));
  }
  return path;
}

// True when this process may write the file with its present rights, some of which it may have
// given up.
bool Writable(const std::string& path) {
  return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

int64_t ToInteger(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

template <typename T, size_t N>
T FromName(std::string_view name, std::string_view (*name_of)(T), T otherwise) {
  for (size_t i = 0; i < N; ++i) {
    if (name_of(static_cast<T>(i)) == name) return static_cast<T>(i);
  }
  return otherwise;
}

Direction DirectionFromName(std::string_view name) {
  if (name == "out") return Direction::kOut;
  return name == "inout" ? Direction::kInOut : Direction::kIn;
}

}  // namespace

struct Reader::State_ {
  State_(const std::string& file, Mode mode)
      : path(CheckFile(file)),
        database(path, mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) {
    sqlite3_busy_timeout(database.handle(), 5000);
    CheckSchema();
    process = ChosenProcess(database, path);
    const std::string folder =
        path.find('/') == std::string::npos ? "." : path.substr(0, path.rfind('/') + 1);
    writable = mode == Mode::kReadWrite && sqlite3_db_readonly(database.handle(), "main") == 0 &&
               Writable(path) && Writable(folder);
  }

  void CheckSchema();
  void LoadOps();
  void LoadLayouts();
  void LoadSignatures();
  void LoadBuffers();
  void LoadPayloads();

  std::string path;
  Database database;
  // SQL conditions, true of all when no process was chosen.
  std::string OfProcess() const {
    return process == 0 ? "1" : fmt::format("process_id = {}", process);
  }
  std::string ThreadOfProcess(const char* column) const {
    return process == 0
               ? "1"
               : fmt::format("{} IN (SELECT thread_id FROM thread WHERE {})", column, OfProcess());
  }
  // A WHERE for rows of call_row. Nothing when all are meant: SQLite counts a table without a
  // condition from its tree, and one with WHERE 1 row by row.
  std::string WhereCalls(bool leaves_only, const std::string& table = "") const {
    if (!leaves_only && process == 0) return "";
    return fmt::format("WHERE {} AND {}",
                       leaves_only ? fmt::format("{}bits & {}", table, meaning::kLeafBit) : "1",
                       ThreadOfProcess((table + "thread_id").c_str()));
  }

  bool writable = false;
  int64_t process = 0;
  int64_t base_ns = 0;

  bool have_ops = false;
  bool have_layouts = false;
  bool have_signatures = false;
  bool have_buffers = false;
  bool have_payloads = false;
  std::unordered_map<int64_t, Op> ops;
  std::unordered_map<int64_t, Layout> layouts;
  std::unordered_map<int64_t, int64_t> signature_ops;
  // Tensors name slots here: buffer_id is slot + 1, 0 for none.
  std::unordered_map<int64_t, std::vector<Argument>> signatures;
  std::unordered_map<int64_t, Buffer> buffers;
  std::unordered_map<int64_t, Buffer> unknown_buffers;
  std::unordered_set<std::string> payloads;
};

void Reader::State_::CheckSchema() {
  try {
    const int64_t application = database.Integer("PRAGMA application_id");
    if (application != kApplicationId) {
      Refuse(fmt::format("'{}' is an SQLite file but not a trace of acltape", path));
    }
    const int64_t version = database.Integer("PRAGMA user_version");
    if (version > kSchemaVersion) {
      Refuse(
          fmt::format("'{}' was written by a newer acltape (schema {}, this one knows up to {}); "
                      "update acltape",
                      path, version, kSchemaVersion));
    }
    base_ns = database.Integer("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns'");
    // Touches both ends of the table that grows, which finds a truncated file.
    database.Integer("SELECT min(call_id) FROM call_row");
    database.Integer("SELECT max(call_id) FROM call_row");
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kTrace) throw;
    // Whatever keeps a reader from reading makes the trace unusable.
    Refuse(error.what());
  }
}

void Reader::State_::LoadOps() {
  if (have_ops) return;
  have_ops = true;
  Statement rows(database, "SELECT op_id, dialect, name, overload, schema FROM op");
  while (rows.Next()) {
    ops.emplace(rows.Integer(0),
                Op{rows.Integer(0), std::string(rows.Text(1)), std::string(rows.Text(2)),
                   std::string(rows.Text(3)), std::string(rows.Text(4))});
  }
}

void Reader::State_::LoadLayouts() {
  if (have_layouts) return;
  have_layouts = true;
  Statement rows(database,
                 "SELECT layout_id, dtype, byte_offset, shape, strides, flags, format FROM layout");
  while (rows.Next()) {
    Layout layout;
    layout.layout_id = rows.Integer(0);
    layout.dtype = DTypeFromName(rows.Text(1));
    layout.byte_offset = rows.Integer(2);
    layout.shape = ParseIntegers(rows.Text(3));
    layout.strides = ParseIntegers(rows.Text(4));
    layout.flags = static_cast<uint32_t>(rows.Integer(5));
    const std::string_view format = rows.Text(6);
    if (format != "strided" && format != "opaque") layout.format = format;
    layouts.emplace(layout.layout_id, std::move(layout));
  }
}

void Reader::State_::LoadSignatures() {
  if (have_signatures) return;
  have_signatures = true;
  {
    Statement rows(database, "SELECT signature_id, op_id FROM signature");
    while (rows.Next()) signature_ops.emplace(rows.Integer(0), rows.Integer(1));
  }
  Statement rows(database,
                 "SELECT signature_id, position, name, direction, kind, layout_id, slot, integer, "
                 "real, text, list FROM signature_argument ORDER BY signature_id, position");
  while (rows.Next()) {
    Argument argument;
    argument.position = static_cast<int>(rows.Integer(1));
    argument.name = rows.Text(2);
    argument.direction = DirectionFromName(rows.Text(3));
    argument.kind = FromName<ValueKind, 18>(rows.Text(4), ValueKindName, ValueKind::kOther);
    argument.integer = rows.Integer(7);
    argument.real = rows.Real(8);
    argument.text = rows.Text(9);
    switch (argument.kind) {
      case ValueKind::kTensor:
        argument.tensors.push_back(
            {rows.IsNull(6) ? 0 : rows.Integer(6) + 1, rows.IsNull(5) ? 0 : rows.Integer(5)});
        break;
      case ValueKind::kTensorList: {
        const std::vector<int64_t> pairs = ParseIntegers(rows.Text(10));
        for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
          argument.tensors.push_back({pairs[i] + 1, pairs[i + 1]});
        }
        break;
      }
      case ValueKind::kReal:
        if (rows.IsNull(8)) argument.real = std::numeric_limits<double>::quiet_NaN();
        if (argument.text == "-0.0") argument.real = -0.0;
        argument.text.clear();
        break;
      case ValueKind::kScalar:
        argument.reals = ParseReals(rows.Text(10));
        if (rows.IsNull(8)) break;
        if (argument.text.find("float") != std::string::npos) {
          argument.real = std::bit_cast<double>(argument.integer);
        }
        break;
      case ValueKind::kIntList:
      case ValueKind::kBoolList:
      case ValueKind::kScalarList:
        argument.integers = ParseIntegers(rows.Text(10));
        break;
      case ValueKind::kRealList:
      case ValueKind::kComplex:
        argument.reals = ParseReals(rows.Text(10));
        break;
      default:
        break;
    }
    signatures[rows.Integer(0)].push_back(std::move(argument));
  }
}

void Reader::State_::LoadBuffers() {
  if (have_buffers) return;
  have_buffers = true;
  Statement rows(database,
                 "SELECT buffer_id, address, bytes, alloc_call, free_call, flags, alloc_ns, "
                 "life_ns FROM buffer_row");
  while (rows.Next()) {
    Buffer buffer;
    buffer.buffer_id = rows.Integer(0);
    buffer.address = rows.Integer(1);
    buffer.bytes = rows.Integer(2);
    buffer.alloc_call = rows.Integer(3);
    buffer.free_call = rows.Integer(4);
    buffer.foreign = (rows.Integer(5) & 1) != 0;
    buffer.device = static_cast<int>(rows.Integer(5) >> 8);
    if (!rows.IsNull(6)) buffer.alloc_ns = rows.Integer(6) + base_ns;
    if (!rows.IsNull(6) && !rows.IsNull(7)) buffer.free_ns = buffer.alloc_ns + rows.Integer(7);
    buffers.emplace(buffer.buffer_id, buffer);
  }
}

void Reader::State_::LoadPayloads() {
  if (have_payloads) return;
  have_payloads = true;
  Statement rows(database, "SELECT DISTINCT digest FROM payload");
  while (rows.Next()) payloads.emplace(rows.Text(0));
}

Reader::Reader(const std::string& path, Mode mode) : state_(std::make_unique<State_>(path, mode)) {}
Reader::~Reader() = default;

const std::string& Reader::path() const { return state_->path; }
sqlite3* Reader::handle() const { return state_->database.handle(); }
Database& Reader::database() const { return state_->database; }
int64_t Reader::process() const { return state_->process; }

bool Reader::writable() const { return state_->writable; }

std::string Reader::Meta(const std::string& key, const std::string& otherwise) const {
  Statement rows(state_->database, "SELECT value FROM meta WHERE key = ?");
  rows.Bind(1, std::string_view(key));
  return rows.Next() ? std::string(rows.Text(0)) : otherwise;
}

std::map<std::string, std::string> Reader::AllMeta() const {
  std::map<std::string, std::string> all;
  Statement rows(state_->database, "SELECT key, value FROM meta");
  while (rows.Next()) all.emplace(rows.Text(0), rows.Text(1));
  return all;
}

std::string Reader::State() const {
  std::string state = Meta("state", "partial");
  if (state != "recording") return state;
  const bool alive = Meta("collector_boot") == BootIdentity() &&
                     ProcessRuns(ToInteger(Meta("collector_pid")),
                                 static_cast<uint64_t>(ToInteger(Meta("collector_start"))));
  return alive ? state : "partial";
}

const Op& Reader::GetOp(int64_t op_id) const {
  state_->LoadOps();
  const auto found = state_->ops.find(op_id);
  if (found == state_->ops.end()) {
    Refuse(fmt::format("'{}' names op {}, which it does not have", path(), op_id));
  }
  return found->second;
}

const Layout& Reader::GetLayout(int64_t layout_id) const {
  state_->LoadLayouts();
  const auto found = state_->layouts.find(layout_id);
  if (found == state_->layouts.end()) {
    Refuse(fmt::format("'{}' names layout {}, which it does not have", path(), layout_id));
  }
  return found->second;
}

bool Reader::HasBuffer(int64_t buffer_id) const {
  state_->LoadBuffers();
  return state_->buffers.contains(buffer_id);
}

const Buffer& Reader::GetBuffer(int64_t buffer_id) const {
  state_->LoadBuffers();
  const auto found = state_->buffers.find(buffer_id);
  if (found != state_->buffers.end()) return found->second;
  Buffer& empty = state_->unknown_buffers[buffer_id];
  empty.buffer_id = buffer_id;
  return empty;
}

std::vector<Call> Reader::Calls(bool leaves_only) const {
  std::vector<Call> calls;
  calls.reserve(static_cast<size_t>(CallCount(leaves_only)));
  VisitCalls(leaves_only, [&](const Call& call) { calls.push_back(call); });
  return calls;
}

void Reader::VisitCalls(bool leaves_only,
                        const std::function<void(const Call& call)>& visit) const {
  state_->LoadSignatures();
  Call call;
  Statement rows(state_->database,
                 fmt::format("SELECT c.call_id, c.signature_id, c.thread_id, c.parent_id, "
                             "c.scope_id, c.bits, c.begin_ns, c.duration_ns, c.buffers, x.status, "
                             "x.stream_id, x.model_id, x.prepare_ns, x.launch_ns "
                             "FROM call_row c LEFT JOIN call_extra x ON x.call_id = c.call_id "
                             "{} ORDER BY c.call_id",
                             state_->WhereCalls(leaves_only, "c.")));
  while (rows.Next()) {
    call.call_id = rows.Integer(0);
    call.signature_id = rows.Integer(1);
    call.thread_id = rows.Integer(2);
    call.parent_id = rows.Integer(3);
    call.scope_id = rows.Integer(4);
    call.phase = static_cast<Phase>(rows.Integer(5) & meaning::kPhaseBits);
    call.leaf = (rows.Integer(5) & meaning::kLeafBit) != 0;
    call.begin_ns = rows.Integer(6) + state_->base_ns;
    call.end_ns = call.begin_ns + rows.Integer(7);
    ParseIntegers(rows.Text(8), call.buffers);
    call.status = static_cast<int32_t>(rows.Integer(9));
    call.stream_id = rows.Integer(10);
    call.model_id = rows.Integer(11);
    call.prepare_ns = rows.Integer(12);
    call.launch_ns = rows.Integer(13);
    const auto op = state_->signature_ops.find(call.signature_id);
    if (op == state_->signature_ops.end()) {
      Refuse(fmt::format("'{}' is damaged: call {} has no signature", path(), call.call_id));
    }
    call.op_id = op->second;
    visit(call);
  }
}

int64_t Reader::CallCount(bool leaves_only) const {
  const std::string sql =
      fmt::format("SELECT count(*) FROM call_row {}", state_->WhereCalls(leaves_only));
  return state_->database.Integer(sql.c_str());
}

const std::vector<Argument>& Reader::SignatureArguments(int64_t signature_id) const {
  state_->LoadSignatures();
  static const std::vector<Argument> kNone;
  const auto found = state_->signatures.find(signature_id);
  return found == state_->signatures.end() ? kNone : found->second;
}

std::vector<Argument> Reader::Arguments(const Call& call) const {
  return Arguments(call.signature_id, call.buffers);
}

std::vector<Argument> Reader::Arguments(int64_t signature_id,
                                        std::span<const int64_t> buffers) const {
  std::vector<Argument> arguments = SignatureArguments(signature_id);
  for (Argument& argument : arguments) {
    for (TensorRef& tensor : argument.tensors) {
      const auto slot = static_cast<size_t>(tensor.buffer_id);
      tensor.buffer_id = slot >= 1 && slot <= buffers.size() ? buffers[slot - 1] : 0;
    }
  }
  return arguments;
}

std::vector<Handle> Reader::Streams() const {
  std::vector<Handle> streams;
  Statement rows(state_->database,
                 fmt::format("SELECT stream_id, process_id, handle, device, flags, create_call, "
                             "destroy_call FROM stream WHERE {} ORDER BY stream_id",
                             state_->OfProcess()));
  while (rows.Next()) {
    Handle& stream = streams.emplace_back();
    stream.id = rows.Integer(0);
    stream.process_id = rows.Integer(1);
    stream.handle = rows.Integer(2);
    stream.device = rows.Integer(3);
    stream.flags = rows.Integer(4);
    stream.create_call = rows.Integer(5);
    stream.destroy_call = rows.Integer(6);
  }
  return streams;
}

std::vector<Handle> Reader::Events() const {
  std::vector<Handle> events;
  Statement rows(state_->database,
                 fmt::format("SELECT event_id, process_id, handle, flags, create_call, "
                             "destroy_call FROM event WHERE {} ORDER BY event_id",
                             state_->OfProcess()));
  while (rows.Next()) {
    Handle& event = events.emplace_back();
    event.id = rows.Integer(0);
    event.process_id = rows.Integer(1);
    event.handle = rows.Integer(2);
    event.flags = rows.Integer(3);
    event.create_call = rows.Integer(4);
    event.destroy_call = rows.Integer(5);
  }
  return events;
}

std::vector<Handle> Reader::Models() const {
  std::vector<Handle> models;
  Statement rows(state_->database,
                 fmt::format("SELECT model_id, process_id, handle, mode, begin_call, end_call, "
                             "destroy_call FROM model WHERE {} ORDER BY model_id",
                             state_->OfProcess()));
  while (rows.Next()) {
    Handle& model = models.emplace_back();
    model.id = rows.Integer(0);
    model.process_id = rows.Integer(1);
    model.handle = rows.Integer(2);
    model.mode = rows.Text(3);
    model.create_call = rows.Integer(4);
    model.end_call = rows.Integer(5);
    model.destroy_call = rows.Integer(6);
  }
  return models;
}

std::vector<Step> Reader::Steps() const {
  std::vector<Step> steps;
  // The steps of one process are its own ranges, counted from 0: those of all lie between each
  // other, and a range begins with whatever call came next.
  Statement rows(
      state_->database,
      state_->process == 0
          ? "SELECT step, first_call, last_call, found_by FROM step ORDER BY step"
          : fmt::format(
                "SELECT row_number() OVER (ORDER BY first_call) - 1, first_call, last_call, "
                "found_by "
                "FROM (SELECT DISTINCT r.first_call, r.last_call, t.found_by FROM scope_range r "
                "JOIN scope s USING (scope_id) JOIN step t ON t.first_call = r.first_call AND "
                "t.last_call = r.last_call AND t.found_by = 'range:' || s.name WHERE {})",
                state_->ThreadOfProcess("r.thread_id")));
  while (rows.Next()) {
    steps.push_back({rows.Integer(0), rows.Integer(1), rows.Integer(2), std::string(rows.Text(3))});
  }
  return steps;
}

std::vector<Snapshot> Reader::Snapshots() const {
  state_->LoadPayloads();
  std::vector<Snapshot> snapshots;
  Statement rows(state_->database,
                 "SELECT call_id, position, moment, tensor_id, digest, bytes, packing, changed "
                 "FROM snapshot ORDER BY call_id, moment DESC, position, rowid");
  while (rows.Next()) {
    Snapshot& snapshot = snapshots.emplace_back();
    snapshot.call_id = rows.Integer(0);
    snapshot.position = static_cast<int>(rows.Integer(1));
    snapshot.after = rows.Text(2) == "after";
    snapshot.tensor = {rows.Integer(3) >> 24, rows.Integer(3) & 0xffffff};
    snapshot.digest = rows.Text(4);
    snapshot.bytes = rows.Integer(5);
    snapshot.packing = static_cast<int>(rows.Integer(6));
    snapshot.changed = rows.Integer(7) != 0;
    snapshot.has_payload = state_->payloads.contains(snapshot.digest);
  }
  return snapshots;
}

bool Reader::HasPayload(const std::string& digest) const {
  state_->LoadPayloads();
  return state_->payloads.contains(digest);
}

std::vector<uint8_t> Reader::Payload(const std::string& digest) const {
  std::vector<uint8_t> content;
  bool any = false;
  bool sound = true;
  Statement rows(state_->database,
                 "SELECT bytes, codec, data FROM payload WHERE digest = ? ORDER BY piece");
  rows.Bind(1, std::string_view(digest));
  while (sound && rows.Next()) {
    any = true;
    const int64_t bytes = rows.Integer(0);
    const std::string_view data = rows.Text(2);
    if (bytes < 0 || static_cast<uint64_t>(bytes) > kPayloadPieceBytes) {
      sound = false;
      break;
    }
    const size_t at = content.size();
    content.resize(at + static_cast<size_t>(bytes));
    if (rows.Text(1) == "zstd") {
      sound = Decompress(data, content.data() + at, static_cast<size_t>(bytes));
    } else {
      sound = data.size() == static_cast<size_t>(bytes);
      if (sound && bytes > 0) std::memcpy(content.data() + at, data.data(), data.size());
    }
  }
  if (!any) {
    Refuse(fmt::format("'{}' holds no payload {}; record it with --payload inputs or all", path(),
                       digest));
  }
  if (!sound || DigestOf(content.data(), content.size()) != digest) {
    Refuse(fmt::format("payload {} of '{}' is damaged: its content does not match its digest",
                       digest, path()));
  }
  return content;
}

std::vector<LedgerEntry> Reader::Ledger() const {
  std::vector<LedgerEntry> ledger;
  Statement rows(state_->database,
                 "SELECT kind, severity, count, subject, cause, remedy FROM ledger ORDER BY kind, "
                 "subject");
  while (rows.Next()) {
    ledger.push_back({std::string(rows.Text(0)),
                      FromName<Severity, 4>(rows.Text(1), SeverityName, Severity::kError),
                      rows.Integer(2), std::string(rows.Text(3)), std::string(rows.Text(4)),
                      std::string(rows.Text(5))});
  }
  return ledger;
}

}  // namespace acltape::storage
