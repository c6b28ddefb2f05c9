// The levels that a trace holds, and which of them is looked at.
//
// A program over an adapter such as torch_npu is recorded at two levels at once: leaves of PyTorch
// (aten) and calls of the device's C interface (acl). A tool looks at one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "storage/reader.h"

namespace acltape::analyzer {

class Work;

enum class Level : uint8_t { kAten, kAcl };

bool HoldsLevel(const storage::Reader& trace, Level level);

// The level that was asked for, or else: the one that is there; of two, aten where the leaves alone
// can be replayed, because each of their tensors lies in a buffer that the trace knows and the
// program executed no graph that it had captured; else acl. Throws Error kTrace, one sentence, when
// the trace lacks the level asked for.
Level ChooseLevel(const storage::Reader& trace, std::optional<Level> wanted = std::nullopt);

// For questions about captures: acl where the trace holds operators of the device, unless another
// level was asked for.
Level ChooseCaptureLevel(const storage::Reader& trace, std::optional<Level> wanted);

// The steps that the trace names for a level; none where it names those of the other one. A user's
// range is of both. Steps found by their period are those of the level that ChooseLevel takes:
// where a thread of the adapter launches what another one has called, the calls of a step at the
// other level have other ids.
std::vector<storage::Step> StepsOf(const storage::Reader& trace, Level level);

// As LoadWork in analyzer/work/work.h, of a level that the trace holds.
Work LoadWork(const storage::Reader& trace, Level level);

}  // namespace acltape::analyzer
