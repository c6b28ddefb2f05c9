// Rows of SQL as JSON, which is how small tables enter the page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "storage/reader.h"

namespace acltape::page {

// An array with an object for each row, the columns as keys. Throws as storage::Statement does.
nlohmann::json RowsOf(const storage::Reader& trace, std::string_view sql, int64_t limit = 0);
// The JSON as text. Bytes of a string that are no UTF-8 become U+FFFD.
std::string TextOf(const nlohmann::json& value);

}  // namespace acltape::page
