// The program of a trace: its leaves in order with their arguments, the buffers that they touch,
// and their recorded contents. Plans, replays, proofs and bisections work on it, at both levels.
// The leaves of an ACL program are its device work: operators, copies, fills and value writes, in
// an order in which they may take effect. Graphs that it executes are replaced by the calls that
// they hold (analyzer/program/acl_leaves.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/leaf_kind.h"
#include "analyzer/calls/level.h"
#include "analyzer/calls/uses.h"
#include "analyzer/calls/work.h"
#include "storage/reader.h"

namespace acltape::storage {
class Results;
}

namespace acltape::analyzer {

struct Leaf {
  int64_t index = 0;  // position in Program::leaves
  storage::Call call;
  const storage::Op* op = nullptr;  // owned by the reader
  LeafKind kind = LeafKind::kKernel;
  std::vector<storage::Argument> arguments;
  // Contents of buffers that became inputs before this call, and recorded results of this call.
  std::vector<storage::Snapshot> before;
  std::vector<storage::Snapshot> after;
  int64_t step_index = -1;  // in the steps of Program::work, -1 outside
  // At the ACL level, for a call in a graph: the id of the call that executed the graph; else 0.
  // The id in `call` then belongs to this execution alone (analyzer/program/acl_leaves.h).
  int64_t execution = 0;

  // "aten::add.Tensor"
  std::string Name() const { return op->FullName(); }
  // Returns null when the call has no argument of this name.
  const storage::Argument* Find(std::string_view name) const;
};

// One use of a range of bytes of a buffer.
struct Access {
  int64_t leaf = 0;
  int64_t first_byte = 0;
  int64_t end_byte = 0;
  bool write = false;
};

struct BufferUse {
  // Up to the end of all recorded tensors and contents; of PyTorch's level the whole buffer, if
  // that is more.
  int64_t bytes = 0;
  // It was there at this time already, 0: a recorded call allocated it. In nanoseconds as the
  // calls.
  int64_t there_at_ns = 0;
  // The first and the last leaf that name it, including views and allocations.
  int64_t first_leaf = 0;
  int64_t last_leaf = 0;
  std::vector<Access> accesses;  // in order of leaves; by kernels, sources and host reads
};

struct Program {
  const storage::Reader* trace = nullptr;
  Work work;  // the compact form: an entry for each leaf, and the steps
  std::vector<Leaf> leaves;
  std::vector<LeafUses> uses;  // by leaf index
  std::map<int64_t, BufferUse> buffers;
  Level level = Level::kAten;
  // Calls that are not leaves and that no replay repeats, by name: host functions, and functions of
  // the interface that the table does not know.
  std::map<std::string, std::vector<int64_t>> left_out;
  // A sentence that says why the trace cannot be replayed with recorded contents. Else empty.
  std::string lacks;
  // Contents that were cut out of recorded ones, by digest.
  std::unordered_map<std::string, std::shared_ptr<const std::vector<uint8_t>>> own_payloads;

  // Layouts that the trace does not name, such as the rows of a copy. Their ids are -1, -2 ...
  std::deque<storage::Layout> own_layouts;

  const storage::Layout& LayoutOf(const storage::TensorRef& tensor) const {
    return tensor.layout_id < 0 ? own_layouts[static_cast<size_t>(-1 - tensor.layout_id)]
                                : trace->GetLayout(tensor.layout_id);
  }
  // "call 812 aten::cat" for messages.
  std::string Describe(int64_t leaf) const;
  // The bytes of a recorded content; null when the trace does not hold them.
  std::shared_ptr<const std::vector<uint8_t>> Payload(const std::string& digest) const;
};

// Loads the program of the level that ChooseLevel returns, with its steps. The reader must outlive
// it. Steps found by period are written to `results` unless it is null. Throws Error kTrace, one
// sentence, when the trace has no leaf at this level or its work has no order (OrderOfWork).
Program LoadProgram(const storage::Reader& trace, storage::Results* results = nullptr);

// The tensors that a leaf of the program reads and writes.
LeafUses UsesOf(const Program& program, const Leaf& leaf);

// Sets the uses and the steps of the leaves and the buffers of the program. The kinds of the leaves
// and the work must be known.
void Complete(Program& program);

// The first byte of an input's content in its buffer. A content of the ACL level, or one that an
// exchange received, may be only a part of a buffer.
int64_t FirstByteOf(const Program& program, const storage::Snapshot& content);

// The recorded result of a written tensor of `leaf`; null when none was kept.
const storage::Snapshot* RecordedResult(const Leaf& leaf, const TensorUse& use);

}  // namespace acltape::analyzer
