// The contents of memory before a stretch of an ACL program, as far as the trace knows them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/lint/stretch.h"
#include "replayer/probe/objects.h"

namespace acltape::replayer::probe {

// Returns bytes by buffer, as many as it has. They are those that a recorded copy or fill
// brought, and results and contents that the trace keeps. All others are seeded: floats from 0 to
// 1.
std::map<int64_t, std::vector<uint8_t>> ContentsBefore(
    const analyzer::Work& work, const analyzer::lint::Stretch& stretch,
    const std::vector<ProbeObjects::UsedBuffer>& buffers, uint64_t seed);

}  // namespace acltape::replayer::probe
