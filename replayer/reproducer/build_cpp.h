// Compiles and runs a reproducer, so that what is handed over is known to show what it says.
#pragma once

#include <string>

namespace acltape::replayer {

struct BuiltReproducer {
  bool compiled = false;
  std::string why_not;  // when it was not: no compiler, no headers, or the file with the messages
  std::string build;    // the line that was, or would be, run in the folder
  int fault_exit = -1;  // of ./repro; -1: not run
  int clean_exit = -1;  // of ./repro --clean
  std::string output;   // what ./repro printed
};

// `sdk` is the folder with include/ and lib64/. The compiler is $CXX, or c++. A program that takes
// longer than five minutes counts as failed (exit code 124). Writes build.log, and leaves the
// executable beside the source.
BuiltReproducer BuildAndRun(const std::string& folder, const std::string& sdk);

}  // namespace acltape::replayer
