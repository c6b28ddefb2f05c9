// Where the host waits for the device and what can be done about it, as `acltape waits` tells: the
// card of the overview.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "storage/reader.h"

namespace acltape::page {

// {"advice": [{"where", "advice", "ns"}], "waits": 12, "ns": 40, "in_steps_ns": 30, "why_none": ""}
nlohmann::json WaitsOf(const storage::Reader& trace);

}  // namespace acltape::page
