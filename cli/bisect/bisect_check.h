// `acltape bisect --check`: a command of the user's executes the program, with calls altered that
// it is told, and judges the outcome.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "analyzer/plan/plan.h"
#include "cli/bisect/bisect_with.h"
#include "replayer/bisect/elements.h"
#include "storage/reader.h"
#include "storage/trace_part.h"

namespace acltape::cli {

struct CheckOptions {
  std::string command;
  replayer::bisect::Elements elements = replayer::bisect::Elements::kCalls;
  std::string calls;        // a selection of those that may be altered; empty: all
  double time_limit = 0;    // for one check, seconds; 0: none
  bool verbose = false;     // show what the command prints
  storage::TracePart part;  // part of the trace; the command finds it in its environment
  nlohmann::json identity;  // names trace and plan; the check adds itself
};

// Bisects the calls of one step with a command of the user. It is the step that the plan is for;
// without a plan the first step of the largest class; in a trace without steps all kernels. Throws
// Error kUsage when the selection picks no call that can be altered.
replayer::bisect::BisectionReport BisectByCheck(const storage::Reader& reader,
                                                const analyzer::plan::Plan* plan,
                                                const CheckOptions& options,
                                                const BisectWith& bisect_with);

}  // namespace acltape::cli
