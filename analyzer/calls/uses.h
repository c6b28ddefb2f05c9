// The bytes that calls read and write: the types in which every part of the analyzer names them.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer {

struct FormAccess;

// One use of a tensor: its place in the arguments of the call and its index in a tensor list.
struct ArgumentUse {
  int argument = 0;
  int element = 0;
  bool write = false;
  // True for memory that the call uses as its workspace. It is written, and no other call reads
  // what it then holds. So it orders calls, and it has no content that a replay needs or compares.
  bool workspace = false;
};

// A tensor that a call reads or writes. `argument` is its position in the arguments of the call,
// and `element` its index in a tensor list.
struct TensorUse {
  int argument = 0;
  int element = 0;
  storage::TensorRef tensor;
  const storage::Layout* layout = nullptr;  // owned by the reader
};

// The tensors that a leaf reads and writes. Views and allocations have none. A written argument
// that is also an input appears in both lists.
struct LeafUses {
  std::vector<TensorUse> reads;
  std::vector<TensorUse> writes;
};

// One use of a range of bytes of a buffer.
struct ByteAccess {
  int64_t buffer = 0;
  int64_t first = 0;
  int64_t end = 0;
  bool write = false;
  const FormAccess* form = nullptr;  // null where the work is not at hand (analyzer/calls/work.h)
};

}  // namespace acltape::analyzer
