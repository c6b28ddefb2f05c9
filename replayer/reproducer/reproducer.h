// A folder that shows a difference by itself: a C++ program over the ACL interface, a trace trimmed
// to the calls concerned, and how to use both.
//
//   repro.cpp, repro.bin   see emit_cpp.h
//   trace.db               the calls in the steps concerned, for `acltape experiment` and the like
//   README.md              what it shows, the build line, the commands
//
// The program is compiled and run before it is handed over; the trace is replayed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replayer/reproducer/build_cpp.h"
#include "replayer/script/mixed_step.h"
#include "replayer/session.h"

namespace acltape::replayer {

struct ReproducerOptions {
  std::string folder;
  bool overwrite = false;
  std::string title;               // empty: made of the calls
  std::vector<std::string> notes;  // lines about the cause, for the program and the README
  std::string command;             // that shows the difference on the whole trace; may be empty
  // What cures the suspect, if that is known: the program's --clean then runs it so. Without it and
  // without faults to leave out, --clean runs the reference twice.
  std::optional<Remedies> cure;
  int runs = 1;               // of the suspect, up to the first difference (races)
  bool trace = true;          // write trace.db
  double trace_share = 0.05;  // of the trace's calls that it may have
  std::string device_lib;     // as of the session; for the proof of the trace
};

struct ReproducerResult {
  std::string folder;
  BuiltReproducer built;
  bool shows_fault = false;  // compiled, exits with 1, and with 0 under --clean
  int64_t calls = 0;         // executed by the suspect
  bool trace_written = false;
  int64_t trace_calls = 0;
  int64_t trace_calls_before = 0;
  std::string trace_note;  // why there is no trace, or why it was not replayed captured
  // Commands, complete with the folder.
  std::string build_command;
  std::string run_command;
};

// Of the step that `suspect` describes, with `suspect.executed` reduced to the calls concerned and
// `suspect.captured` to those that are captured. The reference is the same with nothing captured
// and no faults. Throws Error as EmitCpp and MixedStep::Build do. `plan` is suspect.plan's class.
ReproducerResult WriteReproducer(Session& session, Execution& execution,
                                 const MixedStepOptions& suspect, const ReproducerOptions& options);

}  // namespace acltape::replayer
