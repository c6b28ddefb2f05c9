// One side of an experiment that compares two parties, good and bad. A side executes calls of a
// step on its own device, in its own memory.
//
// Memory is named by block and offset, as in scripts (replayer/engine/script.h). The blocks of both
// sides correspond. A side carries out commands and knows nothing about the other side. sided_run.h
// takes contents from one side and puts them to the other.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "analyzer/lowering/lowering.h"
#include "replayer/engine/script.h"
#include "replayer/values/contents.h"
#include "storage/error.h"
#include "storage/trace.h"

namespace acltape::replayer::sides {

// Puts bytes [first, first + bytes) of a content into the memory of the side.
struct PutBytes {
  Spot to;
  Bytes content;
  int64_t first = 0;
  int64_t bytes = 0;
};
// Returns bytes from the memory of the side.
struct TakeBytes {
  Spot from;
  int64_t bytes = 0;
};
// Copies bytes inside the memory of the side.
struct MoveBytes {
  Spot to;
  Spot from;
  int64_t bytes = 0;
};
// Calls an operator. Tensors are named as in the operation Launch of a script. The workspace
// belongs to the side.
struct CallOperator {
  int64_t call_id = 0;  // for messages
  analyzer::lowering::Invocation invocation;
};
// Returns the digest of a tensor's elements, packed in row-major order.
struct TakeDigest {
  Spot element_zero;  // element 0
  storage::Layout layout;
};
using SideCommand = std::variant<PutBytes, TakeBytes, MoveBytes, CallOperator, TakeDigest>;

// The result of one TakeBytes or TakeDigest.
struct SideResult {
  std::vector<uint8_t> bytes;
  std::string digest;
};

// The names of the sides.
constexpr char kGoodSide[] = "good";
constexpr char kBadSide[] = "bad";

// A side failed to carry out a command: a call of its interface failed, it lacks an operator, or
// its process ended. The contents of its memory are lost. Prepare starts again.
class SideFailed : public Error {
 public:
  SideFailed(const std::string& side, const std::string& why)
      : Error(ErrorKind::kDevice, "the " + side + " side " + why), is_bad_(side == kBadSide) {}
  bool is_bad() const { return is_bad_; }

 private:
  bool is_bad_;
};

class CallSide {
 public:
  virtual ~CallSide() = default;
  // Returns the library and the device, for people.
  virtual std::string Description() = 0;
  // Gives the side blocks of these sizes, filled with 0, in place of its old ones. Throws
  // SideFailed.
  virtual void Prepare(const std::vector<int64_t>& block_bytes) = 0;
  // Carries out commands in order and waits for them. Returns the results in order, one for each
  // command that has a result. Throws SideFailed.
  virtual std::vector<SideResult> Perform(const std::vector<SideCommand>& commands) = 0;
};

}  // namespace acltape::replayer::sides
