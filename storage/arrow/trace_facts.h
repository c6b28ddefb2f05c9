// All that a list of traces says of one of them, as JSON for a program in another language.
#pragma once

#include <string>

#include "storage/reader.h"

namespace acltape::storage::arrow {

// An object: `schema_version`, `known_version` (of this build), `state`, `meta`, `tables` (names of
// tables and views), `ranks` (an array of objects with `rank`, -1: none, and `processes`) and
// `world_size` (ranks of the largest communicator, null: none). Throws Error kTrace.
std::string TraceFacts(const Reader& trace);

}  // namespace acltape::storage::arrow
