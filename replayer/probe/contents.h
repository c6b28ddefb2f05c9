// What memory holds before a stretch of an ACL program, as far as the trace knows.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/lint/stretch.h"
#include "analyzer/work/work.h"
#include "replayer/probe/objects.h"

namespace acltape::replayer {

// By buffer, as long as its room. Recorded: bytes that a recorded copy or fill brought, results and
// contents that the trace keeps. All else is seeded: floats from 0 to 1.
std::map<int64_t, std::vector<uint8_t>> ContentsBefore(const analyzer::Work& work,
                                                       const analyzer::Stretch& stretch,
                                                       const std::vector<ProbeObjects::Room>& rooms,
                                                       uint64_t seed);

}  // namespace acltape::replayer
