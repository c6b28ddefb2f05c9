// Compiles and runs a reproducer, to be sure that it shows what it says.
#pragma once

#include <string>

namespace acltape::replayer::reproducer {

struct BuiltReproducer {
  bool compiled = false;
  std::string why_not;  // if it was not: the reason, or the file with the messages
  std::string build;    // the command that was, or would be, run in the folder
  int fault_exit = -1;  // exit code of ./repro; -1: not run
  int clean_exit = -1;  // exit code of ./repro --clean; -1: not run
  std::string output;   // output of ./repro
};

// `sdk` is the folder that contains include/ and lib64/. The compiler is $CXX, or c++. A program
// that runs for more than five minutes counts as failed (exit code 124). Writes build.log and
// leaves the executable beside the source.
BuiltReproducer BuildAndRun(const std::string& folder, const std::string& sdk);

}  // namespace acltape::replayer::reproducer
