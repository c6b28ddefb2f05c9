// How the line of work of a backward pass begins.
#pragma once

#include <string_view>

namespace acltape::analyzer {

inline constexpr std::string_view kBackwardOf = "backward of ";

}  // namespace acltape::analyzer
