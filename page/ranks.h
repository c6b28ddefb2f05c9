// The ranks of a program side by side, as `acltape ranks` tells: tracks with their collectives, and
// who waited for whom.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "storage/reader.h"

namespace acltape::page {

// {"why_none": "", "on_device": true,
//  "ranks": [{"rank": 0, "name": "rank 0", "process": 2, "collectives", "sent", "received",
//             "waited", "late", "waited_for", "communication", "hidden"}],
//  "meetings": [{"communicator", "number", "what", "late", "arrivals": [[track, ns, call], ...]}],
//  "left_out": 0, "waited": [[track that waited, track that was late, ns], ...],
//  "findings": [{"rule", "severity", "ranks", "call", "message", "advice"}]}
// A track is a place in "ranks". `communication` and `hidden` are null without the device's clock.
// Meetings are in order of their first arrival; those after the first 20,000 are left out.
nlohmann::json RanksOf(const storage::Reader& trace);

}  // namespace acltape::page
