#include "analyzer/ranks/states.h"

#include <algorithm>

#include "meaning/acl_operators.h"
#include "storage/checked_row.h"
#include "storage/database.h"

namespace acltape::analyzer::ranks {
namespace {

using storage::CheckedRow;
using storage::Statement;

// The storages of PyTorch that live until the last meeting, by the block in which they lie.
class Storages {
 public:
  Storages(const storage::Reader& trace, const Communicator& world) {
    int64_t last_ns = 0;
    for (const auto& [rank, runs] : world.runs) {
      last_ns = std::max(last_ns, runs[world.meetings() - 1]->begin_ns);
    }
    Statement rows(trace.database(),
                   "SELECT b.buffer_id, b.address - k.address, b.bytes, b.block, b.alloc_ns, "
                   "b.free_ns FROM buffer b JOIN buffer k ON k.buffer_id = b.block "
                   "WHERE b.layer = 'tensor'");
    const CheckedRow row(rows, trace.path(), "buffer");
    while (rows.Next()) {
      are_known_ = true;
      if (!row.IsNull(5) && row.Integer(5, "free_ns", -kMost, kMost) < last_ns) continue;
      const int64_t first = row.Integer(1, "address", -kMost, kMost);
      by_block_[row.Integer(3, "block", 0, kMost)].push_back(
          {first, first + row.Integer(2, "bytes", 0, kMost), row.Id("buffer_id"),
           row.IntegerOrNull(4, "alloc_ns", -kMost, kMost)});
    }
  }

  // The storage that holds the byte; the block where the trace has no storages; 0: none that lives
  // to the end.
  int64_t Of(int64_t block, int64_t byte, int64_t at_ns) const {
    if (!are_known_) return block;
    const auto of_block = by_block_.find(block);
    if (of_block == by_block_.end()) return 0;
    for (const Storage& one : of_block->second) {
      if (byte >= one.first && byte < one.end && one.alloc_ns <= at_ns) return one.buffer_id;
    }
    return 0;
  }

 private:
  struct Storage {
    int64_t first = 0;  // byte of the block
    int64_t end = 0;
    int64_t buffer_id = 0;
    int64_t alloc_ns = 0;
  };
  std::map<int64_t, std::vector<Storage>> by_block_;
  bool are_known_ = false;
};

// The calls of the communicator's collectives by process.
using Issued = std::map<int64_t, std::vector<int64_t>>;

Issued FindIssued(const Communicator& world) {
  Issued issued;
  for (const auto& [rank, process] : world.processes) {
    auto& of_process = issued[process];
    for (const Run* run : world.runs.at(rank)) of_process.push_back(run->call_id);
  }
  return issued;
}

size_t EpochOf(const std::vector<int64_t>& issued, int64_t call_id) {
  return static_cast<size_t>(std::ranges::lower_bound(issued, call_id) - issued.begin());
}

// Tells whether calls read the tensors that they write.
class Readers {
 public:
  explicit Readers(const storage::Reader& trace)
      : arguments_(trace.database(),
                   "SELECT 1 FROM argument a LEFT JOIN json_each(iif(a.kind = 'tensor_list', "
                   "a.list, '[]')) e WHERE a.call_id = ?1 AND ?2 IN (a.tensor_id, e.value) AND "
                   "(a.direction = 'in' OR a.direction = 'inout' AND ?3)") {}

  bool Reads(int64_t call_id, const std::string& op, int64_t tensor) {
    arguments_.Reset();
    arguments_.Bind(1, call_id);
    arguments_.Bind(2, tensor);
    arguments_.Bind(3, static_cast<int64_t>(!meaning::AclOperatorOf(op).overwrites));
    return arguments_.Next();
  }

 private:
  Statement arguments_;
};

// The place of a state, and who writes it there: storage, layout, op, position.
using StateKey = std::tuple<int64_t, int64_t, std::string, int64_t>;

}  // namespace

States LoadStates(const storage::Reader& trace, const Communicator& world) {
  States states;
  const Issued issued = FindIssued(world);
  const Storages storages(trace, world);
  Statement rows(
      trace.database(),
      "SELECT s.call_id, t.process_id, s.position, s.tensor_id, s.digest, s.bytes, "
      "l.dtype, l.shape, l.byte_offset, o.name, c.begin_ns FROM snapshot s "
      "JOIN call c ON c.call_id = s.call_id JOIN thread t ON t.thread_id = c.thread_id "
      "JOIN op o ON o.op_id = c.op_id JOIN layout l ON l.layout_id = s.tensor_id & 0xffffff "
      "WHERE s.moment = 'after' AND s.position >= 0 AND s.digest <> '' AND c.model_id IS NULL "
      "AND o.dialect = 'aclnn' AND l.dtype IN ('float16', 'bfloat16', 'float32', 'float64') "
      "ORDER BY s.call_id");
  const CheckedRow row(rows, trace.path(), "snapshot");
  std::map<std::pair<int64_t, StateKey>, State*> known;
  Readers readers(trace);
  while (rows.Next()) {
    states.has_values = true;
    const int64_t process = row.Integer(1, "process_id", 0, kMost);
    const auto collectives = issued.find(process);
    if (collectives == issued.end()) continue;
    const int64_t tensor = row.Integer(3, "tensor_id", 0, INT64_MAX);
    const int64_t layout = tensor & 0xffffff;
    const int64_t storage = storages.Of(tensor >> 24, row.Integer(8, "byte_offset", 0, kMost),
                                        row.Integer(10, "begin_ns", -kMost, kMost));
    if (storage == 0) continue;
    const std::string op(row.Text(9, "op"));
    const int64_t position = row.Integer(2, "position", 0, kMost);
    const int64_t call_id = row.Id("call_id");
    states.writers[{process, storage}][call_id] = op;
    const auto [entry, fresh] = known.try_emplace({process, {storage, layout, op, position}});
    State*& state = entry->second;
    if (fresh && readers.Reads(call_id, op, tensor)) {
      const Form form{row.Text(6, "dtype"), row.Text(7, "shape"), op, position};
      auto& of_form = states.by_form[form][process];
      of_form.push_back(std::make_unique<State>());
      state = of_form.back().get();
      state->process_id = process;
      state->storage = storage;
    }
    if (state == nullptr) continue;
    state->bytes = row.Integer(5, "bytes", 0, kMost);
    const size_t epoch = EpochOf(collectives->second, call_id);
    if (!state->writes.empty() && state->writes.back().epoch == epoch) state->writes.pop_back();
    state->writes.push_back({call_id, epoch, std::string(row.Text(4, "digest"))});
  }
  return states;
}

}  // namespace acltape::analyzer::ranks
