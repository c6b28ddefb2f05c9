// The rows of a trace, each bound to its statement.
#include <algorithm>
#include <cmath>

#include "storage/json_text.h"
#include "storage/payload.h"
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

bool IsReal(std::string_view dtype) { return dtype.find("float") != std::string_view::npos; }

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
  return key + layout.format;
}

}  // namespace

void Writer::AddQuirk(const std::string& name, const std::string& description) {
  State_& s = *state_;
  s.Begin();
  Statement insert(s.database, "INSERT OR REPLACE INTO quirk VALUES(?,?)");
  insert.Bind(1, std::string_view(name));
  insert.Bind(2, std::string_view(description));
  insert.Run();
}

void Writer::AddProcess(int64_t process_id, int64_t pid, const std::string& name,
                        std::optional<int64_t> rank) {
  State_& s = *state_;
  s.Begin();
  Statement insert(s.database, "INSERT OR REPLACE INTO process VALUES(?,?,?,?)");
  insert.Bind(1, process_id);
  insert.Bind(2, pid);
  if (rank.has_value()) {
    insert.Bind(3, *rank);
  } else {
    insert.BindNull(3);
  }
  insert.Bind(4, std::string_view(name));
  insert.Run();
  s.Wrote();
}

void Writer::AddThread(int64_t thread_id, int64_t process_id, int64_t tid,
                       const std::string& name) {
  State_& s = *state_;
  s.Begin();
  Statement insert(s.database, "INSERT OR REPLACE INTO thread VALUES(?,?,?,?)");
  insert.Bind(1, thread_id);
  insert.Bind(2, process_id);
  insert.Bind(3, tid);
  insert.Bind(4, std::string_view(name));
  insert.Run();
  s.Wrote();
}

int64_t Writer::InternOp(const Op& op) {
  State_& s = *state_;
  const auto [found, fresh] = s.ops.try_emplace(OpKey(op), static_cast<int64_t>(s.ops.size()) + 1);
  if (!fresh) return found->second;
  s.Begin();
  s.add_op.Bind(1, found->second);
  s.add_op.Bind(2, std::string_view(op.dialect));
  s.add_op.Bind(3, std::string_view(op.name));
  s.add_op.Bind(4, std::string_view(op.overload));
  s.add_op.Bind(5, std::string_view(op.schema));
  s.add_op.Run();
  s.Wrote();
  return found->second;
}

int64_t Writer::InternLayout(const Layout& layout) {
  State_& s = *state_;
  const auto [found, fresh] =
      s.layouts.try_emplace(LayoutKey(layout), static_cast<int64_t>(s.layouts.size()) + 1);
  if (!fresh) return found->second;
  const std::string shape = IntegersText(layout.shape);
  const std::string strides = IntegersText(layout.strides);
  s.Begin();
  s.add_layout.Bind(1, found->second);
  s.add_layout.Bind(2, DTypeName(layout.dtype));
  s.add_layout.Bind(3, std::string_view(shape));
  s.add_layout.Bind(4, std::string_view(strides));
  s.add_layout.Bind(5, layout.byte_offset);
  const std::string_view plain =
      (layout.flags & meaning::kTensorOpaque) != 0 ? "opaque" : "strided";
  s.add_layout.Bind(6, layout.format.empty() ? plain : std::string_view(layout.format));
  s.add_layout.Bind(7, static_cast<int64_t>(layout.flags));
  s.add_layout.Run();
  s.Wrote();
  return found->second;
}

int64_t Writer::AddSignature(int64_t op_id, const std::vector<Argument>& arguments) {
  static constexpr std::string_view kDirections[] = {"in", "out", "inout"};
  State_& s = *state_;
  const int64_t signature_id = ++s.last_signature;
  s.Begin();
  s.add_signature.Bind(1, signature_id);
  s.add_signature.Bind(2, op_id);
  s.add_signature.Run();
  for (const Argument& argument : arguments) {
    Statement& add = s.add_argument;
    std::string list;
    for (int column = 6; column <= 11; ++column) add.BindNull(column);
    add.Bind(1, signature_id);
    add.Bind(2, static_cast<int64_t>(argument.position));
    add.Bind(3, std::string_view(argument.name));
    add.Bind(4, kDirections[static_cast<size_t>(argument.direction) % 3]);
    add.Bind(5, ValueKindName(argument.kind));
    switch (argument.kind) {
      case ValueKind::kNone:
        break;
      case ValueKind::kTensor:
        if (!argument.tensors.empty() && argument.tensors[0].defined()) {
          add.Bind(6, argument.tensors[0].layout_id);
          if (argument.tensors[0].buffer_id > 0) add.Bind(7, argument.tensors[0].buffer_id - 1);
        }
        break;
      case ValueKind::kTensorList:
        // Pairs of slot and layout; [-1,0] stands for an undefined tensor.
        list += '[';
        for (const TensorRef& tensor : argument.tensors) {
          if (list.size() > 1) list += ',';
          const int64_t pair[] = {tensor.buffer_id - 1, tensor.layout_id};
          AppendIntegers(list, pair, 2);
        }
        list += ']';
        break;
      case ValueKind::kReal:
        // SQLite keeps neither NaN, which becomes NULL, nor the sign of a zero.
        if (std::isnan(argument.real)) {
          add.Bind(10, std::string_view("nan"));
        } else {
          add.Bind(9, argument.real);
          if (argument.real == 0 && std::signbit(argument.real)) {
            add.Bind(10, std::string_view("-0.0"));
          }
        }
        break;
      case ValueKind::kText:
      case ValueKind::kDevice:
      case ValueKind::kOther:
        add.Bind(10, std::string_view(argument.text));
        break;
      case ValueKind::kScalar:
        add.Bind(10, std::string_view(argument.text));
        if (!argument.reals.empty()) {
          list = RealsText(argument.reals);
          break;
        }
        add.Bind(8, argument.integer);
        if (IsReal(argument.text)) add.Bind(9, argument.real);
        break;
      case ValueKind::kScalarList:
        add.Bind(10, std::string_view(argument.text));
        list = IntegersText(argument.integers);
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
        add.Bind(8, argument.integer);
        add.Bind(10, DTypeName(static_cast<DType>(argument.integer)));
        break;
      default:
        add.Bind(8, argument.integer);
    }
    if (!list.empty()) add.Bind(11, std::string_view(list));
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
  Statement insert(s.database, "INSERT INTO scope VALUES(?,?,?,?,?)");
  insert.Bind(1, scope_id);
  insert.BindNonZero(2, parent_scope);
  insert.Bind(3, std::string_view(kind));
  insert.Bind(4, std::string_view(name));
  insert.Bind(5, std::string_view(path));
  insert.Run();
  s.Wrote();
  return scope_id;
}

void Writer::AddScopeRange(int64_t scope_id, int64_t thread_id, int64_t first_call,
                           int64_t last_call, int64_t begin_ns, int64_t end_ns) {
  State_& s = *state_;
  s.Begin();
  Statement insert(s.database, "INSERT INTO scope_range VALUES(?,?,?,?,?,?)");
  insert.Bind(1, scope_id);
  insert.Bind(2, thread_id);
  insert.Bind(3, first_call);
  insert.Bind(4, last_call);
  insert.Bind(5, begin_ns);
  insert.Bind(6, end_ns);
  insert.Run();
  s.Wrote();
}

void Writer::AddStack(int64_t stack_id, const std::vector<Frame>& frames) {
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
  Statement insert(s.database, "INSERT OR REPLACE INTO stack VALUES(?,?)");
  insert.Bind(1, stack_id);
  insert.Bind(2, std::string_view(json));
  insert.Run();
  s.Wrote();
}

void Writer::AddCall(const Call& call, int64_t scope_id, int64_t stack_id, int64_t forward_call) {
  State_& s = *state_;
  s.Begin();
  RowBatch& row = s.calls;
  row.Begin();
  row.Add(call.call_id);
  row.Add(call.signature_id);
  row.Add(call.thread_id);
  row.AddNonZero(call.parent_id);
  row.AddNonZero(scope_id);
  row.Add(static_cast<int64_t>(call.phase) | (call.leaf ? meaning::kLeafBit : 0));
  row.Add(call.begin_ns - s.options.base_ns);
  row.Add(call.end_ns - call.begin_ns);
  if (call.buffers.empty()) {
    row.AddNull();
  } else {
    s.json.clear();
    AppendIntegers(s.json, call.buffers.data(), call.buffers.size());
    row.Add(std::string_view(s.json));
  }
  if ((call.status | call.stream_id | call.model_id | call.prepare_ns | call.launch_ns | stack_id |
       forward_call) != 0) {
    RowBatch& extra = s.extras;
    extra.Begin();
    extra.Add(call.call_id);
    extra.AddNonZero(call.status);
    extra.AddNonZero(call.stream_id);
    extra.AddNonZero(stack_id);
    extra.AddNonZero(call.prepare_ns);
    extra.AddNonZero(call.launch_ns);
    extra.AddNonZero(call.model_id);
    extra.AddNonZero(forward_call);
  }
  s.Wrote();
}

void Writer::AddBuffer(const Buffer& buffer) {
  State_& s = *state_;
  s.Begin();
  RowBatch& row = s.buffers;
  row.Begin();
  row.Add(buffer.buffer_id);
  row.Add(buffer.address);
  row.Add(buffer.bytes);
  row.AddNonZero(buffer.alloc_call);
  row.AddNonZero(buffer.free_call);
  row.AddNonZero((int64_t{buffer.device} << 8) | (buffer.foreign ? 1 : 0));
  if (buffer.alloc_ns == 0) {
    row.AddNull();
  } else {
    row.Add(buffer.alloc_ns - s.options.base_ns);
  }
  if (buffer.alloc_ns == 0 || buffer.free_ns == 0) {
    row.AddNull();
  } else {
    row.Add(buffer.free_ns - buffer.alloc_ns);
  }
  s.Wrote();
}

void Writer::AddStream(const Handle& stream) {
  State_& s = *state_;
  s.Begin();
  Statement insert(s.database, "INSERT OR REPLACE INTO stream VALUES(?,?,?,?,?,?,?)");
  insert.Bind(1, stream.id);
  insert.Bind(2, stream.process_id);
  insert.Bind(3, stream.handle);
  insert.Bind(4, stream.device);
  insert.Bind(5, stream.flags);
  insert.BindNonZero(6, stream.create_call);
  insert.BindNonZero(7, stream.destroy_call);
  insert.Run();
  s.Wrote();
}

void Writer::AddEvent(const Handle& event) {
  State_& s = *state_;
  s.Begin();
  Statement insert(s.database, "INSERT OR REPLACE INTO event VALUES(?,?,?,?,?,?)");
  insert.Bind(1, event.id);
  insert.Bind(2, event.process_id);
  insert.Bind(3, event.handle);
  insert.Bind(4, event.flags);
  insert.BindNonZero(5, event.create_call);
  insert.BindNonZero(6, event.destroy_call);
  insert.Run();
  s.Wrote();
}

void Writer::AddModel(const Handle& model) {
  State_& s = *state_;
  s.Begin();
  Statement insert(s.database, "INSERT OR REPLACE INTO model VALUES(?,?,?,?,?,?,?)");
  insert.Bind(1, model.id);
  insert.Bind(2, model.process_id);
  insert.Bind(3, model.handle);
  insert.Bind(4, std::string_view(model.mode));
  insert.BindNonZero(5, model.create_call);
  insert.BindNonZero(6, model.end_call);
  insert.BindNonZero(7, model.destroy_call);
  insert.Run();
  s.Wrote();
}

bool Writer::HasPayload(const std::string& digest) const {
  return state_->payloads.contains(digest);
}

void Writer::AddPayload(const std::string& digest, const void* data, size_t bytes) {
  State_& s = *state_;
  if (s.payloads.contains(digest)) return;
  s.Begin();
  s.payload_rows.Add(digest, data, bytes, s.options.compression_level);
  s.payloads.insert(digest);
  s.payload_bytes += static_cast<int64_t>(bytes);
  s.pending_bytes += static_cast<int64_t>(bytes);
  if (s.pending_bytes >= s.options.commit_bytes) s.CommitNow();
  s.Wrote();
}

void Writer::AddSnapshot(const Snapshot& snapshot, const std::optional<Statistics>& statistics) {
  State_& s = *state_;
  s.Begin();
  Statement& add = s.add_snapshot;
  add.Bind(1, snapshot.call_id);
  add.Bind(2, static_cast<int64_t>(snapshot.position));
  add.Bind(3, std::string_view(snapshot.after ? "after" : "before"));
  add.Bind(4, snapshot.tensor.tensor_id());
  add.Bind(5, std::string_view(snapshot.digest));
  add.Bind(6, snapshot.bytes);
  add.Bind(7, static_cast<int64_t>(snapshot.packing));
  add.Bind(8, static_cast<int64_t>(snapshot.changed));
  if (statistics.has_value()) {
    add.Bind(9, statistics->min);
    add.Bind(10, statistics->max);
    add.Bind(11, statistics->mean);
    add.Bind(12, statistics->l2);
    add.Bind(13, statistics->nan_count);
    add.Bind(14, statistics->inf_count);
  } else {
    for (int column = 9; column <= 14; ++column) add.BindNull(column);
  }
  add.Run();
  s.Wrote();
}

void Writer::AddStep(const Step& step) {
  State_& s = *state_;
  s.Begin();
  Statement insert(s.database, "INSERT OR REPLACE INTO step VALUES(?,?,?,?)");
  insert.Bind(1, step.step);
  insert.Bind(2, step.first_call);
  insert.Bind(3, step.last_call);
  insert.Bind(4, std::string_view(step.found_by));
  insert.Run();
  s.Wrote();
}

void Writer::State_::AddLedger(const LedgerEntry& entry) {
  Begin();
  add_ledger.Bind(1, std::string_view(entry.kind));
  add_ledger.Bind(2, SeverityName(entry.severity));
  add_ledger.Bind(3, entry.count);
  add_ledger.Bind(4, std::string_view(entry.subject));
  add_ledger.Bind(5, std::string_view(entry.cause));
  add_ledger.Bind(6, std::string_view(entry.remedy));
  add_ledger.Run();
  Wrote();
}

void Writer::AddLedger(const LedgerEntry& entry) { state_->AddLedger(entry); }

}  // namespace acltape::storage
