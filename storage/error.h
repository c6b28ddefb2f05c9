// The one exception type of the tools. Its kind is the exit code of the command that meets it; its
// text is one sentence that says what is wrong, where, and what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace acltape {

enum class ErrorKind : int {
  kUsage = 2,         // the command line asks for something impossible
  kTrace = 3,         // the trace is missing, damaged, too new or lacks what is needed
  kDevice = 4,        // a device, a library or the system failed
  kInternal = 70,     // acltape itself is wrong (storage/internal_error.h)
  kCannotJudge = 125  // a verdict is not possible
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace acltape
