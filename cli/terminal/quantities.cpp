#include "cli/terminal/quantities.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "storage/error.h"

namespace acltape::cli {
namespace {

struct Unit {
  std::string_view name;
  double ns;
};
constexpr Unit kUnits[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"m", 60e9}, {"h", 3600e9}};
constexpr double kLongest = 1e18;  // some thirty years

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  return value;
}

}  // namespace

uint64_t ParseSize(const std::string& text) {
  size_t used = 0;
  uint64_t value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const uint64_t scale = unit.empty()  ? 1
                         : unit == "K" ? uint64_t{1} << 10
                         : unit == "M" ? uint64_t{1} << 20
                         : unit == "G" ? uint64_t{1} << 30
                                       : 0;
  if (used == 0 || scale == 0 || value == 0 || text[0] == '-') {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' is no size; write 65536, 64K, 16M or 1G.", text));
  }
  return value * scale;
}

int64_t ParseDuration(const std::string& option, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec == std::errc() && std::isfinite(value) && value >= 0) {
    const std::string_view name(read.ptr, static_cast<size_t>(end - read.ptr));
    for (const Unit& unit : kUnits) {
      if (name == unit.name && value * unit.ns < kLongest) {
        return static_cast<int64_t>(value * unit.ns);
      }
    }
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("'{}' is no time for {}; write 5, 1.5s, 200ms or 2m.", text, option));
}

std::pair<uint64_t, uint64_t> ParseNumbers(const std::string& option, const std::string& text) {
  const size_t dash = text.find('-');
  const auto first = Number(std::string_view(text).substr(0, dash));
  auto last = first;
  if (dash != std::string::npos) {
    const std::string_view rest = std::string_view(text).substr(dash + 1);
    last = rest.empty() ? std::optional(UINT64_MAX - 1) : Number(rest);
  }
  if (!first || !last || *last < *first || *last == UINT64_MAX) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' names no steps for {}; write 100-110, 7, or 100- for all from "
                            "step 100 on. Steps are counted from 0.",
                            text, option));
  }
  return {*first, *last};
}

}  // namespace acltape::cli
