// The rows of a trace, each bound to its statement.
#include <algorithm>
#include <cmath>

#include "storage/json_text.h"
#include "storage/payload.h"
#include "storage/scalar_list.h"
#include "storage/table_rows.h"
#include "storage/writer_state.h"

namespace acltape::storage {
namespace {

std::string OpKey(const Op& op) {
  std::string key;
  for (const std::string* part : {&op.dialect, &op.name, &op.overload, &op.schema}) {
    key += *part;
    key += '\0';
  }
  return key;
}

std::string LayoutKey(const Layout& layout) {
  std::string key(1, static_cast<char>(layout.dtype));
  const auto append = [&key](int64_t value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  append(layout.flags);
  append(layout.byte_offset);
  append(static_cast<int64_t>(layout.shape.size()));
  for (const int64_t size : layout.shape) append(size);
  for (const int64_t stride : layout.strides) append(stride);
  return key + layout.format + '\0' + layout.memory;
}

}  // namespace

void Writer::AddQuirk(const std::string& name, const std::string& description) {
  State_& s = *state_;
  s.Begin();
  RowInsert<tables::kQuirk> insert(s.database, kReplace);
  insert.Set<"name">(name);
  insert.Set<"description">(description);
  insert.Run();
}

void Writer::AddProcess(int64_t process_id, int64_t pid, const std::string& name,
                        std::optional<int64_t> rank) {
  State_& s = *state_;
  s.Begin();
  RowInsert<tables::kProcess> insert(s.database, kReplace);
  insert.Set<"process_id">(process_id);
  insert.Set<"pid">(pid);
  insert.Set<"rank">(rank);
  insert.Set<"name">(name);
  insert.Run();
  s.Wrote();
}

void Writer::AddThread(int64_t thread_id, int64_t process_id, int64_t tid,
                       const std::string& name) {
  State_& s = *state_;
  s.Begin();
  RowInsert<tables::kThread> insert(s.database, kReplace);
  insert.Set<"thread_id">(thread_id);
  insert.Set<"process_id">(process_id);
  insert.Set<"tid">(tid);
  insert.Set<"name">(name);
  insert.Run();
  s.Wrote();
}

int64_t Writer::InternOp(const Op& op) {
  State_& s = *state_;
  const auto [found, fresh] = s.ops.try_emplace(OpKey(op), static_cast<int64_t>(s.ops.size()) + 1);
  if (!fresh) return found->second;
  s.Begin();
  s.add_op.Set<"op_id">(found->second);
  s.add_op.Set<"dialect">(op.dialect);
  s.add_op.Set<"name">(op.name);
  s.add_op.Set<"overload">(op.overload);
  s.add_op.Set<"schema">(op.schema);
  s.add_op.Run();
  s.Wrote();
  return found->second;
}

int64_t Writer::InternLayout(const Layout& layout) {
  State_& s = *state_;
  const auto [found, fresh] =
      s.layouts.try_emplace(LayoutKey(layout), static_cast<int64_t>(s.layouts.size()) + 1);
  if (!fresh) return found->second;
  s.Begin();
  AddRow(s.add_layout, found->second, layout);
  s.Wrote();
  return found->second;
}

int64_t Writer::AddSignature(int64_t op_id, const std::vector<SignatureArgument>& arguments) {
  static constexpr std::string_view kDirections[] = {"in", "out", "inout"};
  State_& s = *state_;
  const int64_t signature_id = ++s.last_signature;
  s.Begin();
  s.add_signature.Set<"signature_id">(signature_id);
  s.add_signature.Set<"op_id">(op_id);
  s.add_signature.Run();
  for (const SignatureArgument& argument : arguments) {
    auto& add = s.add_argument;
    std::string list;
    add.Clear();
    add.Set<"signature_id">(signature_id);
    add.Set<"position">(static_cast<int64_t>(argument.position));
    add.Set<"name">(argument.name);
    add.Set<"direction">(kDirections[static_cast<size_t>(argument.direction) % 3]);
    add.Set<"kind">(ValueKindName(argument.kind));
    switch (argument.kind) {
      case ValueKind::kNone:
        break;
      case ValueKind::kTensor:
        if (!argument.tensors.empty() && argument.tensors[0].defined()) {
          add.Set<"layout_id">(argument.tensors[0].layout_id);
          if (argument.tensors[0].has_buffer()) add.Set<"slot">(int64_t{argument.tensors[0].slot});
        }
        break;
      case ValueKind::kTensorList:
        // Pairs of slot and layout; [-1,0] stands for an undefined tensor.
        list += '[';
        for (const SlotRef& tensor : argument.tensors) {
          if (list.size() > 1) list += ',';
          const int64_t pair[] = {tensor.slot, tensor.layout_id};
          AppendIntegers(list, pair, 2);
        }
        list += ']';
        break;
      case ValueKind::kReal:
        // SQLite keeps neither NaN, which becomes NULL, nor the sign of a zero.
        if (std::isnan(argument.real)) {
          add.Set<"text">(std::string_view("nan"));
        } else {
          add.Set<"real">(argument.real);
          if (argument.real == 0 && std::signbit(argument.real)) {
            add.Set<"text">(std::string_view("-0.0"));
          }
        }
        break;
      case ValueKind::kText:
      case ValueKind::kDevice:
      case ValueKind::kOther:
        add.Set<"text">(argument.text);
        break;
      case ValueKind::kScalar:
        add.Set<"text">(argument.text);
        if (!argument.reals.empty()) {
          list = RealsText(argument.reals);
          break;
        }
        add.Set<"integer">(argument.integer);
        if (IsRealDtype(argument.text)) add.Set<"real">(argument.real);
        break;
      case ValueKind::kScalarList:
        add.Set<"text">(argument.text);
        list = ScalarsText(argument.text, argument.integers);
        break;
      case ValueKind::kIntList:
      case ValueKind::kBoolList:
        list = IntegersText(argument.integers);
        break;
      case ValueKind::kRealList:
      case ValueKind::kComplex:
        list = RealsText(argument.reals);
        break;
      case ValueKind::kDtype:
        add.Set<"integer">(argument.integer);
        add.Set<"text">(DTypeName(static_cast<DType>(argument.integer)));
        break;
      default:
        add.Set<"integer">(argument.integer);
    }
    if (!list.empty()) add.Set<"list">(list);
    add.Run();
  }
  s.Wrote(1 + static_cast<int64_t>(arguments.size()));
  return signature_id;
}

int64_t Writer::InternScope(int64_t parent_scope, const std::string& kind,
                            const std::string& name) {
  State_& s = *state_;
  const auto [found, fresh] = s.scopes.try_emplace(std::make_tuple(parent_scope, kind, name),
                                                   static_cast<int64_t>(s.scopes.size()) + 1);
  if (!fresh) return found->second;
  const int64_t scope_id = found->second;
  const auto parent = s.scope_paths.find(parent_scope);
  const std::string path = parent == s.scope_paths.end() ? name : parent->second + "/" + name;
  s.scope_paths.emplace(scope_id, path);
  s.Begin();
  RowInsert<tables::kScope> insert(s.database);
  insert.Set<"scope_id">(scope_id);
  insert.SetNonZero<"parent_id">(parent_scope);
  insert.Set<"kind">(kind);
  insert.Set<"name">(name);
  insert.Set<"path">(path);
  insert.Run();
  s.Wrote();
  return scope_id;
}

void Writer::AddScopeRange(int64_t scope_id, int64_t thread_id, int64_t first_call,
                           int64_t last_call, int64_t begin_ns, int64_t end_ns) {
  State_& s = *state_;
  s.Begin();
  RowInsert<tables::kScopeRange> insert(s.database);
  insert.Set<"scope_id">(scope_id);
  insert.Set<"thread_id">(thread_id);
  insert.Set<"first_call">(first_call);
  insert.Set<"last_call">(last_call);
  insert.Set<"begin_ns">(begin_ns);
  insert.Set<"end_ns">(end_ns);
  insert.Run();
  s.Wrote();
}

void Writer::AddStack(int64_t stack_id, const std::vector<Frame>& frames, int64_t user_frame) {
  State_& s = *state_;
  std::string json = "[";
  for (const Frame& frame : frames) {
    json += json.size() == 1 ? R"({"file":)" : R"(,{"file":)";
    AppendQuoted(json, frame.file);
    json += R"(,"line":)" + std::to_string(frame.line) + R"(,"function":)";
    AppendQuoted(json, frame.function);
    json += '}';
  }
  json += ']';
  s.Begin();
  RowInsert<tables::kStack> insert(s.database, kReplace);
  insert.Set<"stack_id">(stack_id);
  insert.Set<"frames">(json);
  insert.SetNonZero<"user_frame">(user_frame);
  insert.Run();
  s.Wrote();
}

void Writer::AddCall(const Call& call, int64_t scope_id, int64_t stack_id, int64_t forward_call) {
  State_& s = *state_;
  s.Begin();
  // A program that damages its own recording can give an id twice. The later call replaces the
  // first.
  if (!s.call_ids.Add(call.call_id)) s.totals.GiveUp();
  s.totals.Add({call.call_id, call.signature_id, call.thread_id, call.leaf,
                call.begin_ns - s.options.base_ns, call.end_ns - call.begin_ns});
  auto& row = s.calls;
  row.Begin();
  row.Set<"call_id">(call.call_id);
  row.Set<"signature_id">(call.signature_id);
  row.Set<"thread_id">(call.thread_id);
  row.SetNonZero<"parent_id">(call.parent_id);
  row.SetNonZero<"scope_id">(scope_id);
  const int64_t place = call.device == Call::kDeviceNotKnown ? int64_t{meaning::kPlaceNotKnown}
                                                             : meaning::kPlaceHost + call.device;
  row.Set<"bits">(static_cast<int64_t>(call.phase) | (call.leaf ? meaning::kLeafBit : 0) |
                  place << meaning::kPlaceShift);
  row.Set<"begin_ns">(call.begin_ns - s.options.base_ns);
  row.Set<"duration_ns">(call.end_ns - call.begin_ns);
  if (!call.buffers.empty()) {
    s.json.clear();
    AppendIntegers(s.json, call.buffers.data(), call.buffers.size());
    row.Set<"buffers">(s.json);
  }
  row.SetNonZero<"stack_id">(stack_id);
  if ((call.status | call.stream_id | call.model_id | call.prepare_ns | call.launch_ns |
       forward_call) != 0) {
    auto& extra = s.extras;
    extra.Begin();
    extra.Set<"call_id">(call.call_id);
    extra.SetNonZero<"status">(call.status);
    extra.SetNonZero<"stream_id">(call.stream_id);
    extra.SetNonZero<"prepare_ns">(call.prepare_ns);
    extra.SetNonZero<"launch_ns">(call.launch_ns);
    extra.SetNonZero<"model_id">(call.model_id);
    extra.SetNonZero<"forward_call">(forward_call);
  }
  s.Wrote();
}

void Writer::AddDeviceSpan(const DeviceSpan& span) {
  State_& s = *state_;
  s.Begin();
  auto& row = s.device_spans;
  row.Begin();
  row.Set<"call_id">(span.call_id);
  row.Set<"stream_id">(span.stream_id);
  row.Set<"begin_ns">(span.begin_ns);
  row.Set<"end_ns">(span.end_ns);
  row.Set<"error_ns">(span.error_ns);
  s.Wrote();
}

void Writer::AddFailureText(int64_t call_id, const std::string& text) {
  State_& s = *state_;
  s.Begin();
  s.add_failure_text.Set<"call_id">(call_id);
  s.add_failure_text.Set<"text">(text);
  s.add_failure_text.Run();
  s.Wrote();
}

void Writer::AddBuffer(const Buffer& buffer) {
  State_& s = *state_;
  s.Begin();
  s.buffer_ids.Add(buffer.buffer_id);
  auto& row = s.buffers;
  row.Begin();
  row.Set<"buffer_id">(buffer.buffer_id);
  row.Set<"address">(buffer.address);
  row.Set<"bytes">(buffer.bytes);
  row.SetNonZero<"alloc_call">(buffer.alloc_call);
  row.SetNonZero<"free_call">(buffer.free_call);
  int64_t flags = int64_t{buffer.device} << meaning::kBufferDeviceShift;
  if (buffer.foreign) flags |= meaning::kBufferForeign;
  if (buffer.layer == BufferLayer::kBlock) flags |= meaning::kBufferBlock;
  if (buffer.layer == BufferLayer::kTensor) flags |= meaning::kBufferTensor;
  row.SetNonZero<"flags">(flags);
  if (buffer.alloc_ns != 0) {
    row.Set<"alloc_ns">(buffer.alloc_ns - s.options.base_ns);
    if (buffer.free_ns != 0) row.Set<"life_ns">(buffer.free_ns - buffer.alloc_ns);
  }
  row.SetNonZero<"block">(buffer.block_id);
  s.Wrote();
}

void Writer::StretchBuffer(int64_t buffer_id, int64_t bytes) {
  State_& s = *state_;
  s.Begin();
  Statement update(s.database, "UPDATE buffer_row SET bytes = max(bytes, ?) WHERE buffer_id = ?");
  update.Bind(1, bytes);
  update.Bind(2, buffer_id);
  update.Run();
  s.Wrote();
}

void Writer::AddStream(const Handle& stream) {
  State_& s = *state_;
  s.Begin();
  RowInsert<tables::kStream> insert(s.database, kReplace);
  insert.Set<"stream_id">(stream.id);
  insert.Set<"process_id">(stream.process_id);
  insert.Set<"handle">(stream.handle);
  insert.Set<"device">(stream.device);
  insert.Set<"flags">(stream.flags);
  insert.SetNonZero<"create_call">(stream.create_call);
  insert.SetNonZero<"destroy_call">(stream.destroy_call);
  insert.Run();
  s.Wrote();
}

void Writer::AddEvent(const Handle& event) {
  State_& s = *state_;
  s.Begin();
  RowInsert<tables::kEvent> insert(s.database, kReplace);
  insert.Set<"event_id">(event.id);
  insert.Set<"process_id">(event.process_id);
  insert.Set<"handle">(event.handle);
  insert.Set<"flags">(event.flags);
  insert.SetNonZero<"create_call">(event.create_call);
  insert.SetNonZero<"destroy_call">(event.destroy_call);
  insert.Run();
  s.Wrote();
}

void Writer::AddModel(const Handle& model) {
  State_& s = *state_;
  s.Begin();
  RowInsert<tables::kModel> insert(s.database, kReplace);
  insert.Set<"model_id">(model.id);
  insert.Set<"process_id">(model.process_id);
  insert.Set<"handle">(model.handle);
  insert.Set<"mode">(model.mode);
  insert.SetNonZero<"begin_call">(model.create_call);
  insert.SetNonZero<"end_call">(model.end_call);
  insert.SetNonZero<"destroy_call">(model.destroy_call);
  insert.Run();
  s.Wrote();
}

void Writer::AddCommunicator(const Communicator& communicator) {
  State_& s = *state_;
  s.Begin();
  RowInsert<tables::kCommunicator> insert(s.database, kReplace);
  insert.Set<"communicator_id">(communicator.id);
  insert.Set<"process_id">(communicator.process_id);
  insert.Set<"handle">(communicator.handle);
  insert.Set<"name">(communicator.name);
  insert.Set<"rank">(communicator.rank);
  insert.Set<"ranks">(communicator.ranks);
  insert.Run();
  s.Wrote();
}

bool Writer::HasPayload(const std::string& digest) const {
  return state_->payloads.contains(digest);
}

void Writer::State_::AddLargePayload(const std::string& digest, const void* data, size_t bytes) {
  CommitNow();
  room.Hold(true);
  try {
    Begin();
    payload_rows.Add(digest, data, bytes, options.compression);
    CommitNow();
    room.Hold(false);
  } catch (const Error&) {
    room.Hold(false);
    payloads.erase(digest);
    if (!room.in_use()) throw;
    Rollback();
    EmptyJournal();
    return;
  }
  payload_bytes += static_cast<int64_t>(bytes);
}

void Writer::AdoptContents(const std::string& path) {
  State_& s = *state_;
  s.CommitNow();
  Statement attach(s.database, "ATTACH ? AS other");
  attach.Bind(1, path);
  attach.Run();
  s.database.Execute("INSERT INTO main.payload SELECT * FROM other.payload; DETACH other");
  Statement rows(s.database, "SELECT digest, sum(bytes) FROM payload GROUP BY digest");
  while (rows.Next()) {
    if (s.payloads.insert(std::string(rows.Text(0))).second) s.payload_bytes += rows.Integer(1);
  }
}

void Writer::AddPayload(const std::string& digest, const void* data, size_t bytes) {
  State_& s = *state_;
  if (!s.payloads.insert(digest).second) return;
  if (static_cast<int64_t>(bytes) >= s.LargeContent()) {
    s.AddLargePayload(digest, data, bytes);
    return;
  }
  s.Begin();
  s.payload_rows.Add(digest, data, bytes, s.options.compression);
  s.payload_bytes += static_cast<int64_t>(bytes);
  s.pending_bytes += static_cast<int64_t>(bytes);
  if (s.pending_bytes >= s.options.commit_bytes) s.CommitNow();
  s.Wrote();
}

void Writer::AddSnapshot(const Snapshot& snapshot, const std::optional<Statistics>& statistics) {
  State_& s = *state_;
  s.Begin();
  AddRow(s.snapshots, snapshot, statistics ? &*statistics : nullptr);
  s.Wrote();
}

void Writer::AddStep(const Step& step) {
  State_& s = *state_;
  s.Begin();
  RowInsert<tables::kStep> insert(s.database, kReplace);
  AddRow(insert, step);
  s.Wrote();
}

void Writer::RemoveSteps() {
  state_->Begin();
  state_->database.Execute("DELETE FROM step");
}

void Writer::AddWindow(const RecordedWindow& window) {
  State_& s = *state_;
  s.Begin();
  RowInsert<tables::kRecordedWindow> insert(s.database, kReplace);
  insert.Set<"window_id">(window.window_id);
  insert.Set<"process_id">(window.process_id);
  insert.Set<"first_call">(window.first_call);
  insert.Set<"last_call">(window.last_call);
  insert.Set<"begin_ns">(window.begin_ns - s.options.base_ns);
  insert.Set<"end_ns">(window.end_ns - s.options.base_ns);
  insert.Run();
  s.Wrote();
}

void Writer::State_::AddLedger(const LedgerEntry& entry) {
  Begin();
  AddRow(add_ledger, entry);
  Wrote();
}

void Writer::AddLedger(const LedgerEntry& entry) { state_->AddLedger(entry); }

}  // namespace acltape::storage
