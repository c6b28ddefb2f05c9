// The graphs that a program captured, and the reason why it captured the same operators again:
// another shape, another host argument, or memory at another place. A compiler keeps a graph for
// each of these and captures again when none fits. Each capture takes streams and memory (rules
// CAP-25, LIM-01).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/lint/stretch.h"

namespace acltape::analyzer::lint {

enum class CaptureReason : uint8_t {
  kOperators,  // no earlier capture has its operators
  kShape,      // compared with an earlier one, a dimension differs
  kArgument,   // a host argument that the graph bakes differs
  kAddress,    // memory that it reads or writes lies elsewhere
  kNothing,    // the trace shows no difference
  kEmpty,      // it holds no operators; compilers set up memory by such captures
};
std::string_view CaptureReasonName(CaptureReason reason);  // "other operators", "shape" ...

struct CaptureRow {
  Stretch stretch;
  int64_t launches = 0;  // operators launched in the capture
  int64_t stream_numbers = 0;
  int64_t executions = 0;
  int64_t destroy_call = 0;  // call id; 0: the graph lived as long as the program
  CaptureReason reason = CaptureReason::kOperators;
  // The earlier capture that it is compared with: the one that differs least, and the latest of
  // those.
  int64_t earlier_model = 0;
  std::string difference;  // "dimension 0 of self of call 91 aclnnMm is 4 instead of 2"
};

struct CaptureList {
  std::vector<CaptureRow> captures;  // in order of their begins
  size_t operator_lists = 0;         // number of different lists
  int64_t most_alive = 0;            // most graphs at one time
  int64_t most_streams = 0;          // most stream numbers that graphs held at one time
};

// Finds the captures of a work of the ACL level. The list is empty if the program made no capture.
CaptureList FindCaptures(const Work& work);

}  // namespace acltape::analyzer::lint
