// Another trace beside the one of the page: its figures, its operators, its steps, and the first
// result that differs.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "storage/reader.h"

namespace acltape::page {

// `a` is the page's trace. The two are aligned only if both are short enough for that to take
// seconds; else the reason is given in place of the answer.
nlohmann::json AgainstView(const storage::Reader& a, const storage::Reader& b,
                           const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace acltape::page
