// Finds pinned memory of the host that the program fills anew while a copy from it may still be
// waiting, in programs of which the host's own work is in no trace. The recording has the content
// of a source as each copy was launched: two copies from the same bytes with different contents,
// and no wait of the host for the first between them.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::lint {

struct RewrittenSource {
  uint32_t copy = 0;  // the first copy, or the execution of a graph that holds it
  uint32_t next = 0;  // the first call that found the later content
};

// Finds at most one row for each call that finds a later content. Memory into which the device
// copies as well does not count: who changed it is not known. It needs a trace with digests of
// inputs.
std::vector<RewrittenSource> FindRewrittenSources(const Work& calls);

}  // namespace acltape::analyzer::lint
