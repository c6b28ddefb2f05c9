// The work in the captures of a script, in order of issue: launches, fills and copies with the
// bytes that they touch, and the events between them.
#pragma once

#include <cstdint>
#include <vector>

#include "replayer/script/mixed_step.h"
#include "storage/trace.h"

namespace acltape::replayer::bisect {

// Bytes that a call touches inside a capture.
struct Touch {
  bool write = false;
  // True for a result or an operand of the call. False for its workspace, and for fills and copies.
  bool result = true;
  int block = 0;
  int64_t first = 0;
  int64_t end = 0;
  const storage::Layout* layout = nullptr;  // in the script; null: every byte from first to end
  // Buffer of the program, for a result or an operand.
  int64_t buffer = 0;
};

// Work of a captured call: a launch, or a fill or copy that belongs to it.
struct Work {
  size_t place = 0;
  int stream = 0;
  std::vector<Touch> touches;
};

// One operation in the captures of a script.
struct CapturedOperation {
  enum class Kind { kBegin, kWork, kRecord, kWait } kind = Kind::kBegin;
  int event = 0;
  // kRecord and kWait set only the stream.
  Work work;
};

// Returns the operations of all captures, in order of issue. The script must outlive them.
std::vector<CapturedOperation> CapturedOperations(const script::MixedStep& step,
                                                  const Script& script);

}  // namespace acltape::replayer::bisect
