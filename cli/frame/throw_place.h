// Where a programming error was thrown. The C++ runtime does not keep that, so acltape has its own
// __cxa_throw, which notes the call stack of each such exception and goes on to the runtime's.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace acltape::cli {

// True when the exception is of a type that only a programming error throws: std::logic_error,
// std::bad_variant_access, std::bad_optional_access, std::bad_cast, std::bad_function_call and the
// exceptions of the JSON library. What a trace holds is checked where it is read and refused by an
// acltape::Error.
bool IsProgrammingError(const std::exception& error);

struct ThrowPlace {
  std::string file;      // the source; the program or library where the line is not known
  int64_t line = 0;      // 0: not known
  std::string function;  // demangled; empty: not known
};

// The innermost place outside of libraries and their headers. All fields are empty if nothing is
// known of it. Reads debug information, which takes some milliseconds.
ThrowPlace PlaceOf(const std::exception& error);

}  // namespace acltape::cli
