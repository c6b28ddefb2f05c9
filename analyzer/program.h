// The program of a trace: its leaves in order with their arguments, the buffers they touch and the
// recorded contents attached to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/leaf_kind.h"
#include "storage/reader.h"

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
  int64_t step = -1;  // index in Program::steps, -1 outside

  // "aten::add.Tensor"
  std::string Name() const { return op->FullName(); }
  // Null when the call has no argument of this name.
  const storage::Argument* Find(std::string_view name) const;
};

// A tensor that a leaf reads or writes. `argument` and `element` locate it: position in
// Leaf::arguments and index in a tensor list.
struct TensorUse {
  int argument = 0;
  int element = 0;
  storage::TensorRef tensor;
  const storage::Layout* layout = nullptr;  // owned by the reader
};

// What a leaf reads and what it writes. Views and allocations do neither; a written argument that
// is also an input appears in both.
struct LeafUses {
  std::vector<TensorUse> reads;
  std::vector<TensorUse> writes;
};

// One use of a range of bytes of a buffer.
struct Access {
  int64_t leaf = 0;
  int64_t first_byte = 0;
  int64_t end_byte = 0;
  bool write = false;
};

struct BufferUse {
  int64_t bytes = 0;       // at least what the recorded tensors reach
  int64_t first_leaf = 0;  // first and last leaf that names it, views and allocations included
  int64_t last_leaf = 0;
  std::vector<Access> accesses;  // in order of leaves; of kernels, sources and host reads
};

// One iteration of the workload: leaves [first_leaf, end_leaf).
struct StepRange {
  int64_t step = 0;
  int64_t first_leaf = 0;
  int64_t end_leaf = 0;
  std::string found_by;
};

struct Program {
  const storage::Reader* trace = nullptr;
  std::vector<Leaf> leaves;
  std::vector<LeafUses> uses;  // by leaf index
  std::map<int64_t, BufferUse> buffers;
  std::vector<StepRange> steps;  // empty until FindSteps

  const storage::Layout& LayoutOf(const storage::TensorRef& tensor) const {
    return trace->GetLayout(tensor.layout_id);
  }
  // "call 812 aten::cat" for messages.
  std::string Describe(int64_t leaf) const;
};

// Loads the program. The reader must outlive it. Throws Error kTrace when the trace has no leaf.
Program LoadProgram(const storage::Reader& trace);

// The recorded result of a written tensor of `leaf`; null when none was kept.
const storage::Snapshot* RecordedResult(const Leaf& leaf, const TensorUse& use);

}  // namespace acltape::analyzer
