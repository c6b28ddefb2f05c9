#include "storage/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "meaning/options.h"
#include "storage/database.h"
#include "storage/payload.h"
#include "storage/process_choice.h"
#include "storage/process_filter.h"
#include "storage/process_identity.h"
#include "storage/row_gate.h"
#include "storage/schema.h"
#include "storage/side_files.h"
#include "storage/trace_schema.h"

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
  JudgeSideFiles(path);
  return path;
}

// True when this process may write the file with its present rights, some of which it may have
// given up.
bool Writable(const std::string& path) {
  return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

// Lets SQLite undo what a command that was killed left half done, which a connection for reading
// alone cannot. The side files have been judged. Returns the path.
std::string RollBackUnfinished(std::string path) {
  if (access((path + kSqliteSuffixes[2]).c_str(), F_OK) != 0 || !Writable(path)) return path;
  try {
    Database(path, SQLITE_OPEN_READWRITE).Integer("SELECT count(*) FROM sqlite_master");
  } catch (const Error&) {
    // The connection that is opened next says what is wrong.
  }
  return path;
}

int64_t ToInteger(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// A row of another table that the trace does not have.
[[noreturn]] void RefuseMissing(const std::string& path, std::string_view row,
                                std::string_view what) {
  Refuse(
      fmt::format("'{}' cannot be used: {} names {}, which the trace does not have; no acltape "
                  "wrote that, so record the program again",
                  path, row, what));
}

}  // namespace

struct Reader::State_ {
  // The facts that all calls of a signature share.
  struct SignatureRow {
    int64_t op_id = 0;
    std::vector<SignatureArgument> arguments;
    // How many bytes the buffer of each slot must have at least.
    std::vector<int64_t> slot_bytes;
    // The layout that reaches so far.
    std::vector<int64_t> slot_layouts;
  };

  State_(const std::string& file, Mode mode, TracePart wanted)
      : path(RollBackUnfinished(CheckFile(file))),
        part(std::move(wanted)),
        database(path, mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) {
    sqlite3_busy_timeout(database.handle(), 5000);
    Distrust(database);
    CheckSchema();
    process = FindProcess(database, path, part.process);
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
  // Gives an operator of the ACL level the device of its stream.
  void PlaceByStream(Call& call);
  static void NoteSlot(SignatureRow& signature, const SlotRef& tensor, const Layout& layout);
  // The signatures are loaded. Refuses a call that does not fit its signature.
  const SignatureRow& SignatureOf(const Call& call);
  // Refuses a call with a tensor that reaches beyond its buffer.
  void CheckSpans(const Call& call);
  // Refuses a content that is not as long as its tensor, or whose tensor is not in its buffer.
  void CheckContent(const CheckedRow& row, const Snapshot& snapshot) const;

  std::string path;
  TracePart part;
  Database database;
  ProcessFilter Filter() const { return ProcessFilter(process); }
  // A WHERE for rows of call_row. Nothing when all are meant: SQLite counts a table without a
  // condition from its tree, and one with WHERE 1 row by row.
  std::string WhereCalls(bool leaves_only, const std::string& table = "") const {
    if (!leaves_only && process == 0) return "";
    return fmt::format("WHERE {} AND {}",
                       leaves_only ? fmt::format("{}bits & {}", table, meaning::kLeafBit) : "1",
                       Filter().OfThread(table + "thread_id"));
  }

  bool writable = false;
  int64_t process = 0;
  int64_t base_ns = 0;

  bool have_ops = false;
  bool have_layouts = false;
  bool have_signatures = false;
  bool have_buffers = false;
  bool have_payloads = false;
  std::optional<bool> payload_index;
  std::optional<std::unordered_map<int64_t, int>> stream_devices;
  std::unordered_map<int64_t, Op> ops;
  std::unordered_map<int64_t, Layout> layouts;
  std::unordered_map<int64_t, SignatureRow> signatures;
  std::unordered_map<int64_t, Buffer> buffers;
  std::unordered_map<int64_t, Buffer> unknown_buffers;
  struct Content {
    int64_t bytes;
    int64_t first_row;  // its pieces lie between these rows
    int64_t last_row;
  };
  std::unordered_map<std::string, Content> payloads;
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
    CheckSchemaObjects(database, version);
    base_ns = TakeBaseNs(path, database.Text("SELECT value FROM meta WHERE key = 'base_ns'"));
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
  Statement rows(database, fmt::format("SELECT {} FROM op", kOpColumns));
  const CheckedRow row(rows, path, "op");
  while (rows.Next()) {
    Op op = TakeOp(row);
    const int64_t op_id = op.op_id;
    ops.emplace(op_id, std::move(op));
  }
  have_ops = true;
}

void Reader::State_::LoadLayouts() {
  if (have_layouts) return;
  Statement rows(database, fmt::format("SELECT {} FROM layout", kLayoutColumns));
  const CheckedRow row(rows, path, "layout");
  while (rows.Next()) {
    Layout layout = TakeLayout(row);
    const int64_t layout_id = layout.layout_id;
    layouts.emplace(layout_id, std::move(layout));
  }
  have_layouts = true;
}

void Reader::State_::LoadSignatures() {
  if (have_signatures) return;
  LoadOps();
  LoadLayouts();
  {
    Statement rows(database, "SELECT signature_id, op_id FROM signature");
    const CheckedRow row(rows, path, "signature");
    while (rows.Next()) {
      SignatureRow& signature = signatures[row.Id("signature_id")];
      signature.op_id = row.Integer(1, "op_id", 1, kMostId);
      if (!ops.contains(signature.op_id)) {
        row.RefuseValue(1, "op_id", "which is no row of its table op");
      }
    }
  }
  Statement rows(database,
                 fmt::format("SELECT {} FROM signature_argument ORDER BY signature_id, position",
                             kArgumentColumns));
  const CheckedRow row(rows, path, "signature_argument");
  while (rows.Next()) {
    const auto signature = signatures.find(row.Id("signature_id"));
    if (signature == signatures.end()) {
      row.RefuseValue(0, "signature_id", "which is no row of its table signature");
    }
    std::vector<SignatureArgument>& arguments = signature->second.arguments;
    arguments.push_back(TakeArgument(row, static_cast<int>(arguments.size())));
    for (const SlotRef& tensor : arguments.back().tensors) {
      if (tensor.layout_id == 0) continue;
      const auto layout = layouts.find(tensor.layout_id);
      if (layout == layouts.end()) {
        row.Refuse(
            fmt::format("names layout {}, which is no row of its table layout", tensor.layout_id));
      }
      if (tensor.has_buffer()) NoteSlot(signature->second, tensor, layout->second);
    }
  }
  have_signatures = true;
}

void Reader::State_::NoteSlot(SignatureRow& signature, const SlotRef& tensor,
                              const Layout& layout) {
  const auto slot = static_cast<size_t>(tensor.slot);
  if (slot >= signature.slot_bytes.size()) {
    signature.slot_bytes.resize(slot + 1);
    signature.slot_layouts.resize(slot + 1);
  }
  if (layout.EndByte() < signature.slot_bytes[slot]) return;
  signature.slot_bytes[slot] = layout.EndByte();
  signature.slot_layouts[slot] = layout.layout_id;
}

void Reader::State_::LoadBuffers() {
  if (have_buffers) return;
  Statement rows(database, fmt::format("SELECT {} FROM buffer_row", kBufferColumns));
  const CheckedRow row(rows, path, "buffer_row");
  while (rows.Next()) {
    const Buffer buffer = TakeBuffer(row, base_ns);
    buffers.emplace(buffer.buffer_id, buffer);
  }
  have_buffers = true;
}

const Reader::State_::SignatureRow& Reader::State_::SignatureOf(const Call& call) {
  const auto signature = signatures.find(call.signature_id);
  if (signature == signatures.end()) {
    RefuseMissing(path, fmt::format("row {} of its table call_row", call.call_id),
                  fmt::format("signature {}", call.signature_id));
  }
  if (call.buffers.size() < signature->second.slot_bytes.size()) {
    Refuse(
        fmt::format("'{}' cannot be used: row {} of its table call_row has {} buffers, where its "
                    "signature {} has tensors in {}; no acltape wrote that, so record the "
                    "program again",
                    path, call.call_id, call.buffers.size(), call.signature_id,
                    signature->second.slot_bytes.size()));
  }
  return signature->second;
}

void Reader::State_::CheckSpans(const Call& call) {
  LoadBuffers();
  const SignatureRow& signature = SignatureOf(call);
  for (size_t slot = 0; slot < signature.slot_bytes.size(); ++slot) {
    const auto buffer = buffers.find(call.buffers[slot]);
    if (buffer == buffers.end() || signature.slot_bytes[slot] <= buffer->second.bytes) continue;
    Refuse(
        fmt::format("'{}' cannot be used: row {} of its table call_row has layout {} in buffer "
                    "{}, which reaches to byte {} of {}; no acltape wrote that, so record the "
                    "program again",
                    path, call.call_id, signature.slot_layouts[slot], call.buffers[slot],
                    signature.slot_bytes[slot], buffer->second.bytes));
  }
}

void Reader::State_::CheckContent(const CheckedRow& row, const Snapshot& snapshot) const {
  const auto layout = layouts.find(snapshot.tensor.layout_id);
  if (layout == layouts.end()) {
    row.Refuse(fmt::format("names layout {}, which is no row of its table layout",
                           snapshot.tensor.layout_id));
  }
  const auto buffer = buffers.find(snapshot.tensor.buffer_id);
  const int64_t bytes = layout->second.ElementCount() * DTypeBytes(layout->second.dtype);
  if (snapshot.position < 0 && buffer != buffers.end()) {
    // A range of the buffer. A trimmed trace may name it by the layout of a tensor that begins
    // there.
    if (snapshot.bytes > buffer->second.bytes - layout->second.FirstByte()) {
      row.RefuseValue(5, "bytes",
                      fmt::format("where buffer {} has {} after byte {}", snapshot.tensor.buffer_id,
                                  buffer->second.bytes - layout->second.FirstByte(),
                                  layout->second.FirstByte()));
    }
  } else if (snapshot.bytes != bytes) {
    row.RefuseValue(5, "bytes",
                    fmt::format("where its layout {} has {}", layout->second.layout_id, bytes));
  }
  if (buffer != buffers.end() && layout->second.EndByte() > buffer->second.bytes) {
    row.Refuse(fmt::format("has layout {} in buffer {}, which reaches to byte {} of {}",
                           layout->second.layout_id, snapshot.tensor.buffer_id,
                           layout->second.EndByte(), buffer->second.bytes));
  }
}

void Reader::State_::PlaceByStream(Call& call) {
  if (!call.leaf || call.device != Call::kDeviceNotKnown || call.stream_id == 0) return;
  if (!stream_devices) {
    stream_devices.emplace();
    Statement rows(database, "SELECT stream_id, device FROM stream");
    while (rows.Next()) {
      stream_devices->emplace(rows.Integer(0), static_cast<int>(rows.Integer(1)));
    }
  }
  const auto found = stream_devices->find(call.stream_id);
  if (found != stream_devices->end()) call.device = 1 + found->second;
}

void Reader::State_::LoadPayloads() {
  if (have_payloads) return;
  // No piece is longer than 256 MiB; a sum of wrong ones must not overflow.
  Statement rows(database,
                 "SELECT digest, sum(max(0, min(bytes, 1 << 28))), min(rowid), max(rowid) "
                 "FROM payload GROUP BY digest");
  const CheckedRow row(rows, path, "payload");
  while (rows.Next()) {
    payloads.emplace(row.Text(0, "digest"),
                     Content{rows.Integer(1), rows.Integer(2), rows.Integer(3)});
  }
  have_payloads = true;
}

Reader::Reader(const std::string& path, Mode mode, TracePart part)
    : state_(std::make_unique<State_>(path, mode, std::move(part))) {}
Reader::~Reader() = default;

const std::string& Reader::path() const { return state_->path; }
sqlite3* Reader::handle() const { return state_->database.handle(); }
Database& Reader::database() const { return state_->database; }
const TracePart& Reader::part() const { return state_->part; }
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
                 fmt::format("SELECT {} FROM call_row c LEFT JOIN call_extra x ON x.call_id = "
                             "c.call_id {} ORDER BY c.call_id",
                             kCallColumns, state_->WhereCalls(leaves_only, "c.")));
  state_->Filter().Bind(rows);
  const CheckedRow row(rows, path(), "call_row");
  while (rows.Next()) {
    TakeCall(row, state_->base_ns, call);
    call.op_id = state_->SignatureOf(call).op_id;
    state_->PlaceByStream(call);
    visit(call);
  }
}

std::vector<Call> Reader::CallsInside(int64_t call_id) const {
  state_->LoadSignatures();
  Statement rows(state_->database,
                 fmt::format("SELECT {} FROM call_row c LEFT JOIN call_extra x ON x.call_id = "
                             "c.call_id WHERE c.parent_id = ? ORDER BY c.call_id",
                             kCallColumns));
  rows.Bind(1, call_id);
  const CheckedRow row(rows, path(), "call_row");
  std::vector<Call> calls;
  while (rows.Next()) {
    Call& call = calls.emplace_back();
    TakeCall(row, state_->base_ns, call);
    call.op_id = state_->SignatureOf(call).op_id;
  }
  return calls;
}

int64_t Reader::CallCount(bool leaves_only) const {
  Statement rows(state_->database,
                 fmt::format("SELECT count(*) FROM call_row {}", state_->WhereCalls(leaves_only)));
  state_->Filter().Bind(rows);
  return rows.Next() ? rows.Integer(0) : 0;
}

const std::vector<SignatureArgument>& Reader::SignatureArguments(int64_t signature_id) const {
  state_->LoadSignatures();
  static const std::vector<SignatureArgument> kNone;
  const auto found = state_->signatures.find(signature_id);
  return found == state_->signatures.end() ? kNone : found->second.arguments;
}

std::vector<Argument> Reader::Arguments(const Call& call) const {
  state_->LoadSignatures();
  state_->CheckSpans(call);
  return Arguments(call.signature_id, call.buffers);
}

std::vector<Argument> Reader::Arguments(int64_t signature_id,
                                        std::span<const int64_t> buffers) const {
  std::vector<Argument> arguments;
  for (const SignatureArgument& shared : SignatureArguments(signature_id)) {
    Argument& argument = arguments.emplace_back(Argument{shared, {}});
    for (const SlotRef& tensor : shared.tensors) {
      const bool known = tensor.has_buffer() && static_cast<size_t>(tensor.slot) < buffers.size();
      argument.tensors.push_back({known ? buffers[tensor.slot] : 0, tensor.layout_id});
    }
  }
  return arguments;
}

std::vector<Handle> Reader::Streams() const {
  std::vector<Handle> streams;
  Statement rows(state_->database,
                 fmt::format("SELECT stream_id, process_id, handle, device, flags, create_call, "
                             "destroy_call FROM stream WHERE {} ORDER BY stream_id",
                             state_->Filter().OfProcess()));
  state_->Filter().Bind(rows);
  const CheckedRow row(rows, path(), "stream");
  while (rows.Next()) streams.push_back(TakeStream(row));
  return streams;
}

std::vector<Handle> Reader::Events() const {
  std::vector<Handle> events;
  Statement rows(state_->database,
                 fmt::format("SELECT event_id, process_id, handle, flags, create_call, "
                             "destroy_call FROM event WHERE {} ORDER BY event_id",
                             state_->Filter().OfProcess()));
  state_->Filter().Bind(rows);
  const CheckedRow row(rows, path(), "event");
  while (rows.Next()) events.push_back(TakeEvent(row));
  return events;
}

std::vector<Handle> Reader::Models() const {
  std::vector<Handle> models;
  Statement rows(state_->database,
                 fmt::format("SELECT model_id, process_id, handle, mode, begin_call, end_call, "
                             "destroy_call FROM model WHERE {} ORDER BY model_id",
                             state_->Filter().OfProcess()));
  state_->Filter().Bind(rows);
  const CheckedRow row(rows, path(), "model");
  while (rows.Next()) models.push_back(TakeModel(row));
  return models;
}

std::vector<Step> Reader::Steps() const {
  std::vector<Step> steps;
  // The steps of one process are its own ranges, counted from 0: those of all lie between each
  // other, and a range begins with whatever call came next. A step that ends with an optimizer is
  // of the process whose optimizer it is.
  Statement rows(
      state_->database,
      state_->process == 0
          ? "SELECT step, first_call, last_call, found_by FROM step ORDER BY step"
          : fmt::format(
                "SELECT row_number() OVER (ORDER BY first_call) - 1, first_call, last_call, "
                "found_by "
                "FROM (SELECT DISTINCT t.first_call, t.last_call, t.found_by FROM scope_range r "
                "JOIN scope s USING (scope_id) JOIN step t ON t.last_call = r.last_call AND "
                "(t.first_call = r.first_call AND t.found_by = 'range:' || s.name OR "
                "t.found_by = 'optimizer' AND s.name GLOB 'Optimizer.step*') WHERE {})",
                state_->Filter().OfThread("r.thread_id")));
  state_->Filter().Bind(rows);
  const CheckedRow row(rows, path(), "step");
  while (rows.Next()) steps.push_back(TakeStep(row));
  return steps;
}

std::vector<Snapshot> Reader::Snapshots() const {
  state_->LoadPayloads();
  state_->LoadLayouts();
  state_->LoadBuffers();
  std::vector<Snapshot> snapshots;
  Statement rows(state_->database,
                 fmt::format("SELECT {} FROM snapshot ORDER BY call_id, moment DESC, position, "
                             "rowid",
                             kSnapshotColumns));
  const CheckedRow row(rows, path(), "snapshot");
  while (rows.Next()) {
    Snapshot& snapshot = snapshots.emplace_back(TakeSnapshot(row));
    state_->CheckContent(row, snapshot);
    const auto payload = state_->payloads.find(snapshot.digest);
    snapshot.has_payload = payload != state_->payloads.end();
    if (snapshot.has_payload && payload->second.bytes != snapshot.bytes) {
      row.RefuseValue(5, "bytes", fmt::format("where its content has {}", payload->second.bytes));
    }
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
  State_::Content place{0, 0, INT64_MAX};
  if (!state_->payload_index) state_->payload_index = HasPayloadIndex(state_->database);
  const bool indexed = *state_->payload_index;
  if (!indexed) {
    state_->LoadPayloads();
    const auto found = state_->payloads.find(digest);
    if (found != state_->payloads.end()) place = found->second;
  }
  Statement rows(state_->database,
                 fmt::format("SELECT bytes, codec, data FROM payload WHERE digest = ?{} "
                             "ORDER BY piece",
                             indexed ? "" : " AND rowid BETWEEN ? AND ?"));
  rows.Bind(1, std::string_view(digest));
  if (!indexed) {
    rows.Bind(2, place.first_row);
    rows.Bind(3, place.last_row);
  }
  while (sound && rows.Next()) {
    any = true;
    const int64_t bytes = rows.Integer(0);
    const std::string_view data = rows.Text(2);
    if (bytes < 0 || static_cast<uint64_t>(bytes) > kPayloadPieceBytes) {
      sound = false;
      break;
    }
    const size_t offset = content.size();
    content.resize(offset + static_cast<size_t>(bytes));
    if (rows.Text(1) == "zstd") {
      sound = Decompress(data, content.data() + offset, static_cast<size_t>(bytes));
    } else {
      sound = data.size() == static_cast<size_t>(bytes);
      if (sound && bytes > 0) std::memcpy(content.data() + offset, data.data(), data.size());
    }
  }
  if (!any) {
    Refuse(fmt::format("'{}' holds no payload {}; record it with @payload inputs or all"_cli,
                       path(), digest));
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
  const CheckedRow row(rows, path(), "ledger");
  while (rows.Next()) ledger.push_back(TakeLedgerEntry(row));
  return ledger;
}

}  // namespace acltape::storage
