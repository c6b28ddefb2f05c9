// The problems of the program: the findings of lint and of other tools, and the ledger of the
// recording.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "storage/reader.h"

namespace acltape::page {

// Findings that the trace stores; if it stores none, those that lint makes now. {"source": "stored"
// or "computed", "findings": [...], "why_none": "...", "ledger": [...]}.
nlohmann::json FindingsOf(const storage::Reader& trace);

}  // namespace acltape::page
