// One side of an experiment with two sides: something that executes calls of a step on a device of
// its own, in memory of its own.
//
// Memory is named by block and offset, as in scripts (replayer/script/script.h), and the blocks of
// both sides correspond. A side does what it is told and knows nothing of the other one; what
// crosses between them is taken from one and put to the other by sided_run.h.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "analyzer/lowering/lowering.h"
#include "replayer/contents.h"
#include "replayer/script/script.h"
#include "storage/error.h"
#include "storage/trace.h"

namespace acltape::replayer {

// Bytes [first, first + bytes) of a content to a place.
struct PutBytes {
  Spot to;
  Bytes content;
  int64_t first = 0;
  int64_t bytes = 0;
};
// Gives the bytes of a place.
struct TakeBytes {
  Spot from;
  int64_t bytes = 0;
};
// Copies inside the memory of the side.
struct MoveBytes {
  Spot to;
  Spot from;
  int64_t bytes = 0;
};
// Tensors are named as in a Launch of a script; the workspace is the side's own.
struct CallOperator {
  int64_t call_id = 0;  // for messages
  analyzer::Invocation invocation;
};
// Gives the digest of a tensor's elements, packed in row-major order.
struct TakeDigest {
  Spot at;  // element 0
  storage::Layout layout;
};
using SideCommand = std::variant<PutBytes, TakeBytes, MoveBytes, CallOperator, TakeDigest>;

// Of one TakeBytes or TakeDigest.
struct SideResult {
  std::vector<uint8_t> bytes;
  std::string digest;
};

// Names of sides.
constexpr char kGoodSide[] = "good";
constexpr char kBadSide[] = "bad";

// A side failed at what it was told: a call of its interface, an operator that it does not have,
// or all of its process. What it held is lost; Prepare begins anew.
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
  // For people: its library and device.
  virtual std::string Description() = 0;
  // Gives it blocks of so many bytes, all 0, in place of those that it had. Throws SideFailed.
  virtual void Prepare(const std::vector<int64_t>& block_bytes) = 0;
  // Carries commands out in order and waits for them. A result for each that gives one, in order.
  // Throws SideFailed.
  virtual std::vector<SideResult> Perform(const std::vector<SideCommand>& commands) = 0;
};

}  // namespace acltape::replayer
