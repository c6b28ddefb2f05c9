// Runs a function in a process of its own: what belongs to a process, such as the device library
// with the faults and the numbers of runs that it counts, begins again in it.
#pragma once

#include <functional>
#include <string>
#include <vector>

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

// The same for several functions that run at the same time. When the first of them fails, calls
// `failed`, so that the others can be told not to wait for it. Throws for the first one that failed
// once all have ended.
std::vector<Forked> CallAllForked(const std::vector<std::function<std::string()>>& works,
                                  const std::function<void()>& failed);

}  // namespace acltape::cli
