// The line of the program from which one call comes.
#pragma once

#include <cstdint>
#include <string>

#include "storage/reader.h"

namespace acltape::analyzer {

// SQL for the line in the column `frames` of the table `stack`, such as "train.py:17 (forward)",
// and the condition that there is one.
inline constexpr char kLineOfFrames[] =
    "json_extract(frames, '$[0].file') || ':' || json_extract(frames, '$[0].line') || "
    "' (' || json_extract(frames, '$[0].function') || ')'";
inline constexpr char kHasLine[] = "json_extract(frames, '$[0].file') IS NOT NULL";

// True if the trace says for each node of autograd which leaf's gradient it computes. Older traces
// do not.
bool HoldsForwardCalls(const storage::Reader& trace);

// The line of a call, such as "train.py:17 (forward)". Empty if the trace does not have it. Lines
// are recorded with the calls of a device, so a leaf of PyTorch has the line of the calls that it
// launched. Backward work that no Python code called has the line of the leaf whose gradient it
// computes. For many calls use lint/places.h.
std::string LineOfCall(const storage::Reader& trace, int64_t call_id);

}  // namespace acltape::analyzer
