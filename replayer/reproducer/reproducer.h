// Writes a folder that shows a difference without the original program: a C++ program over the ACL
// interface, a trace with only the calls concerned, and instructions.
//
//   repro.cpp, repro.bin   see emit_cpp.h
//   trace.db               the calls in the steps concerned, for `acltape experiment` and the like
//   README.md              what it shows, the build line, the commands
//
// Before the folder is handed over, the program is compiled and run, and the trace is replayed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replayer/reproducer/build_cpp.h"
#include "replayer/script/mixed_step.h"
#include "replayer/session.h"

namespace acltape::replayer::reproducer {

struct ReproducerOptions {
  std::string folder;
  bool overwrite = false;
  std::string title;               // empty: it is made from the calls
  std::vector<std::string> notes;  // lines about the cause, for the program and the README
  std::string command;             // shows the difference on the whole trace; may be empty
  // The remedies that cure the suspect, if known. --clean then runs the suspect with them. If there
  // is neither a cure nor a fault to leave out, --clean runs the reference twice.
  std::optional<script::Remedies> cure;
  int runs = 1;               // most executions of the suspect, to see races
  bool trace = true;          // write trace.db
  double trace_share = 0.05;  // largest share of the trace's calls that it may hold
  std::string device_lib;     // as for the session; used to replay the trace
};

struct ReproducerResult {
  std::string folder;
  BuiltReproducer built;
  bool shows_fault = false;  // it exits with 1, and under --clean with 0
  int64_t calls = 0;         // calls that the suspect executes
  bool trace_written = false;
  int64_t trace_calls = 0;
  int64_t trace_calls_before = 0;
  std::string trace_note;  // why there is no trace, or why it was not replayed captured
  // Complete commands, with the folder.
  std::string build_command;
  std::string run_command;
};

// Writes a reproducer of the step that `suspect` describes. `suspect.executed` must be reduced to
// the calls concerned, and `suspect.captured` to the captured ones. The reference is the same step
// with nothing captured and no faults. Throws Error as EmitCpp and MixedStep::Build do. `plan` must
// be suspect.plan's class.
ReproducerResult WriteReproducer(Session& session, Execution& execution,
                                 const script::MixedStepOptions& suspect,
                                 const ReproducerOptions& options);

}  // namespace acltape::replayer::reproducer
