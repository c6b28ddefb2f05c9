// A finding of lint: a call that goes wrong when the work around it becomes a captured graph. It
// has the code that the interface would give in each capture mode, the evidence, and the edit that
// removes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer::lint {

// A smaller number is stricter (rule CAP-31).
enum class CaptureMode : uint8_t { kGlobal, kThreadLocal, kRelaxed };
constexpr std::array<CaptureMode, 3> kCaptureModes = {
    CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed};
std::string_view CaptureModeName(CaptureMode mode);  // "global", "thread_local", "relaxed"

// An ACL error code for each mode. 0 means that the interface refuses nothing.
using Codes = std::array<int32_t, 3>;
constexpr Codes InEveryMode(int32_t code) { return {code, code, code}; }

// The call that returns the codes.
enum class FailsAt : uint8_t {
  kCall,       // the call that the finding names
  kBegin,      // aclmdlRICaptureBegin
  kEnd,        // aclmdlRICaptureEnd
  kExecution,  // a later execution of the graph
  kNowhere     // the interface accepts it; the result is wrong or slow
};

// A change of the captured calls that a probe can make (replayer/probe).
struct Edit {
  enum class Kind : uint8_t {
    kHoist,  // `call_id` is moved before the capture begins
    kPin,    // the host memory of the copy `call_id` is pinned
    // An event is recorded after `record_after`, on its stream. It is waited for before
    // `wait_before`, on that call's stream.
    kWait
  };
  Kind kind = Kind::kHoist;
  int64_t call_id = 0;
  int64_t record_after = 0;  // 0: right after the capture begins, on the origin
  int64_t wait_before = 0;   // 0: before the end of the capture, on the origin
  bool operator==(const Edit&) const = default;
};
inline Edit HoistEdit(int64_t call_id) { return {Edit::Kind::kHoist, call_id, 0, 0}; }
inline Edit PinEdit(int64_t call_id) { return {Edit::Kind::kPin, call_id, 0, 0}; }
inline Edit WaitEdit(int64_t record_after, int64_t wait_before) {
  return {Edit::Kind::kWait, 0, record_after, wait_before};
}
struct LintRule;

struct Finding {
  const LintRule* rule = nullptr;
  size_t stretch = 0;   // index in LintReport::stretches of the first occurrence
  int64_t call_id = 0;  // 0: the trace as a whole
  Codes codes{};
  FailsAt fails_at = FailsAt::kNowhere;
  std::string message;            // one sentence, which ends with the calls that are its evidence
  std::string advice;             // the edit that a person makes in the program
  std::string cause;              // equal for findings that one edit removes
  std::string subject;            // the call as the program's author knows it; empty: the trace
  std::vector<int64_t> evidence;  // call ids of both calls in conflict
  std::vector<Edit> edits;        // together they remove it; empty: there is only advice
  int64_t count = 1;              // number of occurrences; this is the first
  // "reproduced" if the program captured these calls itself and got the code, or if a probe did.
  // "refuted" if they gave another code.
  std::string verdict = "predicted";
  bool of_graphs = false;  // it is about executions of graphs that the program captured
  // The framework's adapter makes this call by itself: nothing in the program changes it.
  bool by_adapter = false;

  int32_t code(CaptureMode mode) const { return codes[static_cast<size_t>(mode)]; }
};

}  // namespace acltape::analyzer::lint
