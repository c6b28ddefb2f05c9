// What the captures of a script do to its memory: the launches, fills and copies with the bytes
// that they touch, and the events between them, in order of issue.
#pragma once

#include <cstdint>
#include <vector>

#include "replayer/script/mixed_step.h"
#include "storage/trace.h"

namespace acltape::replayer {

// Bytes that a call touches inside a capture.
struct Touch {
  bool write = false;
  bool result = true;  // or operand; else of a workspace, or filled and copied for the call
  int block = 0;
  int64_t first = 0;
  int64_t end = 0;
  const storage::Layout* layout = nullptr;  // of the script; null: every byte in between
  int64_t buffer = 0;                       // of the program, of a result or what reads one
};

// Work of a captured call: a launch, or what is filled or copied for it.
struct Work {
  size_t place = 0;
  int stream = 0;
  std::vector<Touch> touches;
};

// What the captures of a script hold, in order of issue.
struct CapturedOperation {
  enum class Kind { kBegin, kWork, kRecord, kWait } kind = Kind::kBegin;
  int event = 0;
  Work work;  // of kRecord and kWait: its stream alone
};

// The script must outlive what is returned.
std::vector<CapturedOperation> CapturedOperations(const MixedStep& step, const Script& script);

}  // namespace acltape::replayer
