// A programming error of acltape itself. It is never the trace's fault, and never told as such.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include "storage/error.h"

namespace acltape {

// "internal error at storage/reader.cpp:12, please report: WHAT". The file is told as from the top
// of the sources; line 0: `file` is told alone.
std::string InternalErrorText(std::string_view file, int64_t line, std::string_view what);

// A broken promise of the code itself: a state that cannot be, a file that acltape wrote and cannot
// read. A failure that a trace or a user can bring about is an Error of another kind.
class InternalError : public Error {
 public:
  explicit InternalError(std::string_view what,
                         std::source_location place = std::source_location::current())
      : Error(ErrorKind::kInternal, InternalErrorText(place.file_name(), place.line(), what)) {}
};

}  // namespace acltape
