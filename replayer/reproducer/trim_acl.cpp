#include "replayer/reproducer/trim_acl.h"

#include <cstring>
#include <optional>
#include <unordered_map>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/program/acl_leaves.h"
#include "generated/meaning/parameter_positions.h"
#include "storage/device_spans.h"
#include "storage/json_text.h"
#include "storage/table_rows.h"

namespace acltape::replayer::reproducer {
namespace {

using analyzer::Leaf;
using analyzer::LeafKind;
using analyzer::Program;
using storage::Snapshot;
using storage::Statement;

// Position of the source of a copy, and of the pitch of its rows.
namespace copy = meaning::position::aclrtMemcpy2d;

// A copy takes its source from the recording. Random numbers are drawn again, from the seed and the
// counter that the call names.
bool TakesRecordedBytes(const Leaf& leaf) {
  return leaf.kind == LeafKind::kSource &&
         analyzer::FindAclFunction(leaf.op->name).kind != analyzer::AclCallKind::kRandom;
}

class RowWriter {
 public:
  RowWriter(storage::TraceCopy& copy, const Program& program, const TrimPlan& plan,
            const AclNumbers& numbers, AddedLayouts& layouts)
      : copy_(copy),
        layouts_(layouts),
        program_(program),
        plan_(plan),
        ids_(numbers.ids),
        waits_(numbers.waits),
        add_call_(copy.database(),
                  "INSERT INTO main.call_row SELECT ?, signature_id, ?, NULL, scope_id, bits, "
                  "coalesce((SELECT begin_ns FROM source.call_row WHERE call_id = ?), begin_ns), "
                  "duration_ns, buffers, (SELECT stack_id FROM source.call WHERE call_id = ?) "
                  "FROM source.call_row WHERE call_id = ?"),
        add_extra_(copy.database(),
                   "INSERT INTO main.call_extra SELECT ?, status, ?, NULL, prepare_ns, "
                   "launch_ns, NULL, NULL FROM source.call_extra WHERE call_id = ?"),
        add_snapshot_(copy.Insert<storage::tables::kSnapshot>()) {
    if (storage::HasDeviceSpans(*program.trace)) {
      add_spans_.emplace(copy.database(),
                         "INSERT INTO main.device_span SELECT ?, ?, begin_ns, end_ns, error_ns "
                         "FROM source.device_span WHERE call_id = ?");
    }
    for (const int64_t leaf : plan.leaves) {
      for (const analyzer::TensorUse& use : program.uses[leaf].reads) {
        read_.insert(use.tensor.buffer_id);
      }
    }
    for (Snapshot& snapshot : program.trace->Snapshots()) {
      if (!snapshot.after && snapshot.position >= 0) {
        arguments_[snapshot.call_id].push_back(std::move(snapshot));
      }
    }
  }

  void Write() {
    copy_.CopyRows("quirk");
    copy_.CopyRows("ledger");
    copy_.CopyRows("process");
    copy_.CopyRows("thread");
    copy_.CopyRows("layout");  // contents name layouts that no call has
    const Leaf& first = program_.leaves[*plan_.leaves.begin()];
    // The stream of the first call that names one. A replay makes it at its first use.
    int64_t stream = 0;
    for (auto leaf = plan_.leaves.begin(); leaf != plan_.leaves.end() && stream == 0; ++leaf) {
      stream = program_.leaves[*leaf].call.stream_id;
    }
    for (const int64_t leaf : plan_.leaves) WriteCall(leaf, first.call.thread_id, stream);
    for (const int64_t leaf : plan_.leaves) WriteContents(program_.leaves[leaf], ids_.at(leaf));
    copy_.CopyRows("payload", "digest IN (SELECT digest FROM main.snapshot)");
    for (const std::string& digest : own_) {
      const auto& bytes = program_.own_payloads.at(digest);
      copy_.AddPayload(bytes->data(), bytes->size());
    }
    copy_.CopyRows("signature", "signature_id IN (SELECT signature_id FROM main.call_row)");
    copy_.CopyRows("signature_argument",
                   "signature_id IN (SELECT signature_id FROM main.signature)");
    copy_.CopyRows("op", "op_id IN (SELECT op_id FROM main.signature)");
    copy_.CopyRows("buffer_row",
                   "buffer_id IN (SELECT e.value FROM main.call_row c, json_each(c.buffers) e"
                   " UNION SELECT tensor_id >> 24 FROM main.snapshot)",
                   {{"alloc_call", "NULL"}, {"free_call", "NULL"}});
    copy_.CopyRows("buffer_role", "buffer_id IN (SELECT buffer_id FROM main.buffer_row)");
    copy_.CopyRows("stack", "stack_id IN (SELECT stack_id FROM main.call)");
    copy_.CopyRows("stream", "stream_id IN (SELECT stream_id FROM main.call_extra)",
                   {{"create_call", "NULL"}, {"destroy_call", "NULL"}});
    WriteScopes();
    WriteSteps();
    if (!waits_.empty()) WriteWaits(first.call.thread_id);
  }

 private:
  void WriteCall(int64_t index, int64_t thread, int64_t stream) {
    const Leaf& leaf = program_.leaves[index];
    const int64_t recorded = analyzer::RecordedCall(leaf.call.call_id);
    add_call_.Bind(1, ids_.at(index));
    add_call_.Bind(2, thread);
    add_call_.Bind(3, analyzer::IssuedBy(leaf));
    add_call_.Bind(4, recorded);
    add_call_.Bind(5, recorded);
    add_call_.Run();
    add_extra_.Bind(1, ids_.at(index));
    add_extra_.Bind(2, stream);
    add_extra_.Bind(3, recorded);
    add_extra_.Run();
    if (!add_spans_) return;
    add_spans_->Bind(1, ids_.at(index));
    add_spans_->Bind(2, stream);
    add_spans_->Bind(3, recorded);
    add_spans_->Run();
  }

  // The layouts of the program's own become rows of the copy.
  void UseStoredLayout(storage::TensorRef& tensor) {
    if (tensor.layout_id < 0) tensor.layout_id = layouts_.Add(program_.LayoutOf(tensor));
  }

  void AddSnapshot(int64_t id, Snapshot snapshot) {
    snapshot.call_id = id;
    AddRow(add_snapshot_, snapshot, nullptr);
    if (program_.own_payloads.count(snapshot.digest) != 0) own_.insert(snapshot.digest);
  }

  void WriteContents(const Leaf& leaf, int64_t id) {
    const auto arguments = arguments_.find(analyzer::RecordedCall(leaf.call.call_id));
    if (arguments != arguments_.end()) {
      for (const Snapshot& snapshot : arguments->second) {
        const bool source = TakesRecordedBytes(leaf) && snapshot.position == copy::kSrc;
        if (!source) AddSnapshot(id, snapshot);
      }
    }
    for (const Snapshot& snapshot : leaf.before) {
      if (read_.count(snapshot.tensor.buffer_id) != 0) AddSnapshot(id, snapshot);
    }
    for (Snapshot snapshot : leaf.after) {
      if (TakesRecordedBytes(leaf)) {
        WriteSource(leaf, id, snapshot);
        continue;
      }
      UseStoredLayout(snapshot.tensor);
      AddSnapshot(id, snapshot);
    }
  }

  // The bytes that a copy from the host brings, with the gaps between its rows.
  void WriteSource(const Leaf& leaf, int64_t id, Snapshot snapshot) {
    const auto bytes = program_.Payload(snapshot.digest);
    const storage::Layout& to = program_.LayoutOf(snapshot.tensor);
    if (bytes != nullptr && to.shape.size() == 2) {
      const auto rows = static_cast<size_t>(to.shape[0]);
      const auto width = static_cast<size_t>(to.shape[1]);
      const auto pitch = static_cast<size_t>(leaf.arguments[copy::kSpitch].integer);
      std::vector<uint8_t> spread((rows - 1) * pitch + width);
      for (size_t row = 0; row < rows; ++row) {
        std::memcpy(&spread[row * pitch], bytes->data() + row * width, width);
      }
      snapshot.digest = copy_.AddPayload(spread.data(), spread.size());
      snapshot.bytes = static_cast<int64_t>(spread.size());
    }
    // Memory that the interface did not allocate is in no buffer. As in a recording, its content
    // has a layout alone.
    const storage::Argument& from = leaf.arguments[copy::kSrc];
    const storage::TensorRef source = from.tensors.empty() ? storage::TensorRef() : from.tensors[0];
    const int64_t first = source.defined() ? program_.LayoutOf(source).FirstByte() : 0;
    snapshot.tensor = {source.buffer_id, layouts_.OfRange(first, snapshot.bytes)};
    snapshot.after = false;
    snapshot.position = copy::kSrc;
    snapshot.packing = 0;
    AddSnapshot(id, snapshot);
  }

  // The function of waits may be new to the trace: it gets an operator and a signature of its own.
  void WriteWaits(int64_t thread) {
    storage::Database& database = copy_.database();
    const int64_t op = database.Integer("SELECT max(op_id) FROM source.op") + 1;
    const int64_t signature =
        database.Integer("SELECT max(signature_id) FROM source.signature") + 1;
    auto add_op = copy_.Insert<storage::tables::kOp>();
    add_op.Set<"op_id">(op);
    add_op.Set<"dialect">(std::string_view("aclrt"));
    add_op.Set<"name">(std::string_view("aclrtSynchronizeDevice"));
    add_op.Set<"overload">(std::string_view(""));
    add_op.Set<"schema">(std::string_view("aclrtSynchronizeDevice()"));
    add_op.Run();
    auto add_signature = copy_.Insert<storage::tables::kSignature>();
    add_signature.Set<"signature_id">(signature);
    add_signature.Set<"op_id">(op);
    add_signature.Run();
    Statement add(database,
                  "INSERT INTO main.call_row(call_id, signature_id, thread_id, bits, begin_ns, "
                  "duration_ns, buffers) SELECT ?, ?, ?, 0, begin_ns, 0, NULL FROM main.call_row "
                  "WHERE call_id = ?");
    for (const auto& [leaf, id] : waits_) {
      add.Bind(1, id);
      add.Bind(2, signature);
      add.Bind(3, thread);
      add.Bind(4, ids_.at(leaf));
      add.Run();
    }
  }

  // Scopes cover the kept leaves that they issued.
  void WriteScopes() {
    storage::Database& database = copy_.database();
    database.Execute("CREATE TEMP TABLE kept(issued_by INTEGER, call_id INTEGER)");
    Statement keep(database, "INSERT INTO kept VALUES(?,?)");
    for (const auto& [leaf, id] : ids_) {
      keep.Bind(1, analyzer::IssuedBy(program_.leaves[leaf]));
      keep.Bind(2, id);
      keep.Run();
    }
    database.Execute("CREATE INDEX temp.kept_by_issue ON kept(issued_by)");
    database.Execute(
        "INSERT INTO main.scope_range SELECT scope_id, thread_id, min(k.call_id), max(k.call_id), "
        "begin_ns, end_ns FROM source.scope_range r JOIN kept k ON k.issued_by BETWEEN "
        "r.first_call AND r.last_call GROUP BY r.rowid");
    copy_.CopyRows("scope",
                   "scope_id IN (WITH RECURSIVE up(scope_id) AS (SELECT scope_id FROM main.call_row"
                   " UNION SELECT scope_id FROM main.scope_range"
                   " UNION SELECT s.parent_id FROM source.scope s JOIN up ON up.scope_id ="
                   " s.scope_id) SELECT scope_id FROM up)");
  }

  void WriteSteps() {
    auto step = copy_.Insert<storage::tables::kStep>();
    for (const analyzer::StepRange& range : program_.work.steps) {
      const auto first = ids_.lower_bound(range.first);
      const auto end = ids_.lower_bound(range.end);
      if (first == end) continue;
      AddRow(step,
             storage::Step{range.step, first->second, std::prev(end)->second, range.found_by});
    }
  }

  storage::TraceCopy& copy_;
  AddedLayouts& layouts_;
  const Program& program_;
  const TrimPlan& plan_;
  const std::map<int64_t, int64_t>& ids_;
  const std::map<int64_t, int64_t>& waits_;
  Statement add_call_, add_extra_;
  std::optional<Statement> add_spans_;
  storage::RowInsert<storage::tables::kSnapshot> add_snapshot_;
  std::set<int64_t> read_;     // buffers that kept leaves read
  std::set<std::string> own_;  // contents that the source does not have as such
  // Contents of arguments, by recorded call.
  std::unordered_map<int64_t, std::vector<Snapshot>> arguments_;
};

}  // namespace

AclNumbers NumberAclLeaves(const Program& program, const TrimPlan& plan) {
  std::set<int64_t> fed;
  for (const TrimPlan::Input& input : plan.inputs) fed.insert(input.leaf);
  const auto waits_before = [&](int64_t index) {
    const Leaf& leaf = program.leaves[index];
    return index != *plan.leaves.begin() &&
           (!leaf.before.empty() || fed.count(index) != 0 || leaf.kind != LeafKind::kKernel ||
            analyzer::WaitsOnHost(analyzer::FindAclFunction(leaf.op->name).kind));
  };
  bool keep = true;
  int64_t last = 0;
  for (const int64_t leaf : plan.leaves) {
    const int64_t id = program.leaves[leaf].call.call_id;
    const int64_t first = waits_before(leaf) ? id - 1 : id;
    keep = keep && program.leaves[leaf].execution == 0 && first > last;
    last = id;
  }
  AclNumbers numbers;
  int64_t next = 1;
  for (const int64_t leaf : plan.leaves) {
    const int64_t id = program.leaves[leaf].call.call_id;
    if (waits_before(leaf)) numbers.waits[leaf] = keep ? id - 1 : next++;
    numbers.ids[leaf] = keep ? id : next++;
  }
  return numbers;
}

void CopyAclLeaves(storage::TraceCopy& copy, const Program& program, const TrimPlan& plan,
                   const AclNumbers& numbers, AddedLayouts& layouts) {
  RowWriter(copy, program, plan, numbers, layouts).Write();
}

int64_t AddedLayouts::Add(const storage::Layout& layout) {
  const int64_t id = copy_.database().Integer("SELECT max(layout_id) FROM main.layout") + 1;
  auto row = copy_.Insert<storage::tables::kLayout>();
  AddRow(row, id, layout);
  return id;
}

int64_t AddedLayouts::OfRange(int64_t first_byte, int64_t bytes) {
  const auto [range, fresh] = ranges_.try_emplace({first_byte, bytes});
  if (fresh) {
    storage::Layout layout;
    layout.dtype = storage::DType::kUint8;
    layout.shape = {bytes};
    layout.strides = {1};
    layout.byte_offset = first_byte;
    range->second = Add(layout);
  }
  return range->second;
}

}  // namespace acltape::replayer::reproducer
