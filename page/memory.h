// Bytes of living buffers over the time of the calls, by role, and the buffers of the moment with
// most of them. Each device and the host are places of their own, and blocks and tensors
// (page/layers.h) are too.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>

#include "storage/reader.h"

namespace acltape::page {

// `roles` names buffers whose role the trace does not store. Buffers without a time of allocation
// are counted apart. Memory that is older than the first call counts from this call on, so that it
// does not stretch the time. A curve has at most a few thousand points; each shows the moment of
// its interval at which most bytes were alive, so no peak is lost.
nlohmann::json MemoryOf(const storage::Reader& trace,
                        const std::unordered_map<int64_t, std::string>& roles);

}  // namespace acltape::page
