// The levels that a trace holds, and the choice between them.
//
// A program over an adapter such as torch_npu is recorded at two levels at once: leaves of PyTorch
// (aten) and calls of the device's C interface (acl). A tool works on one of them.
#pragma once

#include <vector>

#include "storage/reader.h"

namespace acltape::analyzer {

class Work;

using storage::Level;

// True if the process that is looked at has calls of the level: the one of the reader, or the one
// that stands for all (storage::DefaultProcess), or any.
bool HoldsLevel(const storage::Reader& trace, Level level);

// True if the process that is looked at uses communicators of HCCL.
bool HoldsCollectives(const storage::Reader& trace);

// The level of a trace with one level. If there are two, it is aten if the leaves alone can be
// replayed: each of their tensors lies in a buffer that the trace knows, and the program executed
// no captured graph and has no collectives of HCCL. Else it is acl.
Level PreferredLevel(const storage::Reader& trace);

// The level that the reader was told to look at, or else the preferred one. Throws Error kTrace,
// one sentence, when the trace lacks the requested level.
Level ChooseLevel(const storage::Reader& trace);

// The level for questions about captures: acl if the trace holds operators of the device, unless
// the reader was told to look at a level.
Level ChooseCaptureLevel(const storage::Reader& trace);

// The steps that the trace names for a level. A range of the user holds for both levels. Steps
// found by their period belong to the preferred level and are left out for the other one: if a
// thread of the adapter launches work for another thread, the calls of a step have other ids there.
std::vector<storage::Step> StepsOf(const storage::Reader& trace, Level level);

// Loads the work of a level that the trace holds, as LoadWork in analyzer/calls/work.h does.
Work LoadWork(const storage::Reader& trace, Level level);

}  // namespace acltape::analyzer
