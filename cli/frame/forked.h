// Runs a function in a process of its own: what belongs to a process, such as the device library
// with the faults and the numbers of runs that it counts, begins again in it.
#pragma once

#include <functional>
#include <string>

namespace acltape::cli {

struct Forked {
  std::string result;  // the value that the function returned
  // The code with which the process ended before the function returned; it has said why. 0: the
  // function returned.
  int exit_code = 0;
};

// Calls `work` in a copy of this process and waits for it. To be called while this process has one
// thread, no open trace and no device. Throws what `work` throws: an Error with its kind,
// bad_alloc, a logic_error with its text, anything else as a runtime_error with its text. Throws
// Error kDevice when the process cannot be started, or was ended by a signal.
Forked CallForked(const std::function<std::string()>& work);

}  // namespace acltape::cli
