// What lint says of a trace: a call that goes wrong when the work around it becomes a captured
// graph, the code that the interface would give in each capture mode, the evidence, and the edit
// that removes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer {

// A smaller number is stricter (rule CAP-31).
enum class CaptureMode : uint8_t { kGlobal, kThreadLocal, kRelaxed };
constexpr std::array<CaptureMode, 3> kCaptureModes = {
    CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed};
std::string_view CaptureModeName(CaptureMode mode);  // "global", "thread_local", "relaxed"

// An ACL error code for each mode; 0: nothing is refused.
using Codes = std::array<int32_t, 3>;
constexpr Codes InEveryMode(int32_t code) { return {code, code, code}; }

// Which call gives the codes.
enum class FailsAt : uint8_t {
  kCall,       // the one that the finding names
  kBegin,      // aclmdlRICaptureBegin
  kEnd,        // aclmdlRICaptureEnd
  kExecution,  // a later execution of the graph
  kNowhere     // the interface accepts it: wrong or slow, not refused
};

// A change of the captured calls that a probe can make (replayer/probe).
struct Edit {
  enum class Kind : uint8_t {
    kHoist,  // `call_id` is made before the capture begins
    kPin,    // the host memory of the copy `call_id` is pinned
    kWait    // an event is recorded behind `record_after`, on its stream, and waited for before
             // `wait_before`, on its own
  };
  Kind kind = Kind::kHoist;
  int64_t call_id = 0;
  int64_t record_after = 0;  // 0: behind the begin of the capture, on the origin stream
  int64_t wait_before = 0;   // 0: before its end, on the origin stream
  bool operator==(const Edit&) const = default;
};
inline Edit HoistEdit(int64_t call_id) { return {Edit::Kind::kHoist, call_id, 0, 0}; }
inline Edit PinEdit(int64_t call_id) { return {Edit::Kind::kPin, call_id, 0, 0}; }
inline Edit WaitEdit(int64_t record_after, int64_t wait_before) {
  return {Edit::Kind::kWait, 0, record_after, wait_before};
}
// "record behind call 12, wait before call 15; hoist call 14"; empty for none.
std::string DescribeEdits(const std::vector<Edit>& edits);

struct LintRule;

struct Finding {
  const LintRule* rule = nullptr;
  size_t stretch = 0;   // index in LintReport::stretches, of the first occurrence
  int64_t call_id = 0;  // 0: the trace as a whole
  Codes codes{};
  FailsAt fails_at = FailsAt::kNowhere;
  std::string message;            // one sentence
  std::vector<int64_t> evidence;  // call ids, both sides of what does not go together
  std::vector<Edit> edits;        // that together remove it; empty: words only
  int64_t count = 1;              // occurrences, of which this is the first
  // "reproduced" where the program captured these calls itself and met the code, or a probe did;
  // "refuted" where they met another one.
  std::string verdict = "predicted";

  int32_t code(CaptureMode mode) const { return codes[static_cast<size_t>(mode)]; }
};

}  // namespace acltape::analyzer
