// Rows of SQL as JSON, which is how small tables enter the page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "storage/reader.h"

namespace acltape::page {

// An array with an object for each row, the columns as keys. Throws as storage::Statement does.
nlohmann::json RowsOf(const storage::Reader& trace, std::string_view sql, int64_t limit = 0);
// JSON of a file that anyone may have written. Discarded where it is none, or so deep that writing
// it, which calls itself for each level, would use up the stack.
nlohmann::json ReadJson(const std::string& text);
// The JSON as text. Bytes of a string that are no UTF-8 become U+FFFD.
std::string TextOf(const nlohmann::json& value);

}  // namespace acltape::page
