// The table `meta` of a trace that was made of several.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "storage/call_numbers.h"
#include "storage/recording_cost.h"
#include "storage/trace_copy.h"

namespace acltape::storage {

// The processes of a source in the new trace: their ids follow this many others.
struct MergedProcesses {
  int64_t added = 0;
  int64_t count = 0;
};

// Rows that are equal in all recordings stay. Of the rest the first recording speaks for all,
// except where a sum or an extreme does; `merged_from` has what each one said. `processes`: for
// each source. `cost`: what recording took in all of them. `base_ns`: the time from which the new
// trace counts.
void WriteMergedMeta(TraceCopy& copy, const std::vector<MergeSource>& sources,
                     const std::vector<MergedProcesses>& processes,
                     const std::optional<RecordingCost>& cost, int64_t base_ns);

}  // namespace acltape::storage
