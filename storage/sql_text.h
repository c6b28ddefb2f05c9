// A text as SQL writes it. Values belong to parameters (Statement::Bind); only the text of a view,
// which has none, holds them itself.
#pragma once

#include <string>
#include <string_view>

namespace acltape::storage {

// In single quotes, each quote in it doubled.
inline std::string SqlText(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted.append(c == '\'' ? 2 : 1, c);
  return quoted + '\'';
}

}  // namespace acltape::storage
