// How a command failed, as its user is told: one owner of what exceptions mean.
#pragma once

#include <exception>
#include <string>

namespace acltape::cli {

struct Failure {
  std::string sentence;
  int code = 0;          // the exit code
  bool refused = false;  // memory was refused, because it is limited
  bool silent = false;   // the reader of the output went away: nothing is said
};

// The failure for any exception that a command ended with. An acltape::Error has its own sentence
// and code; a programming error is an internal error with its place; anything else is a failure of
// the system. Throws std::bad_alloc.
Failure FailureOf(const std::exception_ptr& thrown);

}  // namespace acltape::cli
