// Functions of the ACL interface whose result is the code of an earlier failure, and says nothing
// of the call itself (rule ERR-02).
#pragma once

#include <string_view>

namespace acltape::meaning {

constexpr bool TellsOfEarlierFailure(std::string_view function) {
  return function == "aclrtPeekAtLastError" || function == "aclrtGetLastError";
}

}  // namespace acltape::meaning
