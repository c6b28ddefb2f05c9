// Results of tools since the recording: timed runs, comparisons with the recording, and the
// searches of `acltape bisect`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "storage/reader.h"

namespace acltape::page {

// Runs with their times per step, and how many results of each run were equal or not.
nlohmann::json RunsOf(const storage::Reader& trace);

// Experiments that failed, and the path of a search from its journal. `journal` is a file; empty:
// the one that `acltape bisect` writes beside the trace, if it is there. Throws Error kUsage when a
// given file cannot be read or is no journal.
nlohmann::json SearchesOf(const storage::Reader& trace, const std::string& journal);

}  // namespace acltape::page
