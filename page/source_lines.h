// Lines of the program's source around the calls that findings name, where the files are there.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "storage/reader.h"

namespace acltape::page {

// {file: {"12": "the text of line 12", ...}}. `findings` is what FindingsOf gave. A file that
// cannot be read is left out.
nlohmann::json SourceLinesOf(const storage::Reader& trace, const nlohmann::json& findings);

}  // namespace acltape::page
