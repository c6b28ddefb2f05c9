// A programming error of acltape itself. It is never the trace's fault, and never told as such.
#pragma once

#include <string>
#include <string_view>

#include "storage/error.h"

namespace acltape {

// "internal error at storage/reader.cpp:12, please report: WHAT". The file is told as from the top
// of the sources; line 0: `file` is told alone.
std::string InternalErrorText(std::string_view file, int64_t line, std::string_view what);

// A line of the sources: as a default argument, the line of the call. The builtins serve where a
// compiler has no std::source_location.
struct SourcePlace {
  const char* file = "";
  int line = 0;
  static SourcePlace Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// A broken promise of the code itself: a state that cannot be, a file that acltape wrote and cannot
// read. A failure that a trace or a user can bring about is an Error of another kind.
class InternalError : public Error {
 public:
  explicit InternalError(std::string_view what, SourcePlace place = SourcePlace::Here())
      : Error(ErrorKind::kInternal, InternalErrorText(place.file, place.line, what)) {}
};

}  // namespace acltape
