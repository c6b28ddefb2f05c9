// The graphs that a program captured, and why it captured the same operators again: another shape,
// another host argument, or memory at another place. Compilers keep a graph for each of these and
// capture anew when none fits, which takes streams and memory each time (rules CAP-25, LIM-01).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/lint/stretch.h"
#include "analyzer/work/work.h"

namespace acltape::analyzer {

enum class CaptureReason : uint8_t {
  kOperators,  // no earlier capture has its operators
  kShape,      // against an earlier one, a dimension differs
  kArgument,   // or a host argument that the graph bakes
  kAddress,    // or where something lies that it reads or writes
  kNothing,    // nothing that the trace shows
  kEmpty,      // it holds no operators: compilers set up memory by such captures
};
std::string_view CaptureReasonName(CaptureReason reason);  // "other operators", "shape" ...

struct CaptureRow {
  Stretch stretch;
  int64_t launches = 0;  // of operators, inside
  int64_t stream_numbers = 0;
  int64_t executions = 0;
  int64_t destroy_call = 0;  // call id; 0: it lived as long as the program
  CaptureReason reason = CaptureReason::kOperators;
  int64_t earlier_model = 0;  // that it is compared with: the one that differs least and latest
  std::string difference;     // "dimension 0 of self of call 91 aclnnMm is 4 instead of 2"
};

struct CaptureList {
  std::vector<CaptureRow> captures;  // in order of their begins
  size_t operator_lists = 0;         // different ones
  int64_t most_alive = 0;            // graphs at a time
  int64_t most_streams = 0;          // stream numbers that graphs held at a time
};

// Empty where the program made no capture. The work is that of the ACL level.
CaptureList FindCaptures(const Work& work);

}  // namespace acltape::analyzer
