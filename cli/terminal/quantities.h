// Sizes, times and ranges of numbers as options take them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace acltape::cli {

// "16M" -> bytes; binary units. Error kUsage for anything else, and for nothing at all.
uint64_t ParseSize(const std::string& text);

// "1.5", "1.5s", "200ms", "2m" -> nanoseconds. Error kUsage for anything else; `option` is named.
int64_t ParseDuration(const std::string& option, const std::string& text);

// "100-110" -> {100, 110}, "7" -> {7, 7}, "100-" -> {100, all that follow}. Error kUsage for
// anything else.
std::pair<uint64_t, uint64_t> ParseNumbers(const std::string& option, const std::string& text);

}  // namespace acltape::cli
