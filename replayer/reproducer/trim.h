// A smaller trace: some calls of a trace with what they need, and nothing else.
//
// The calls keep their ids, arguments, results and steps; at the ACL level they are put on one
// stream (trim_acl.h), and numbered anew where graphs held some of them. What a kept call reads and
// no kept call wrote becomes a stored input: the content that the buffer had when the recorded
// program reached that call. A kept call thus computes on the values that it was recorded with,
// whatever is left out, and a trimmed trace is replayed, captured, bisected and queried like any
// other.
//
// The result is replayed before it gets its name.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "analyzer/program/step_template.h"
#include "replayer/values/recorded_content.h"
#include "storage/reader.h"

namespace acltape::replayer::reproducer {

struct TrimOptions {
  std::vector<int64_t> calls;  // leaves to keep, any order
  // The calls at the same places of these steps (numbers as in the trace) are kept too.
  std::vector<int64_t> steps;
  int producers = 0;      // how many generations of calls that wrote what kept calls read
  std::string selection;  // how the calls were picked, for the meta row
  std::string output;
  bool overwrite = false;
  bool accept_different = false;  // accept a replay that differs only where the original's does
  std::string device_lib;
  std::function<void(int64_t done, int64_t total)> progress;
};

struct TrimReport {
  int64_t calls = 0;  // leaves kept
  int64_t calls_before = 0;
  int64_t steps = 0;   // steps that have kept calls
  int64_t inputs = 0;  // contents that were stored in place of calls left out
  int64_t input_bytes = 0;
  int64_t bytes = 0;  // size of the file
  int64_t bytes_before = 0;
  int64_t kernels = 0;      // kept calls that compute on the device
  int64_t with_result = 0;  // kernels whose result the recording holds
  // Kernels without one, because a later call of their graph wrote over it. The bytes that the
  // graph left are compared instead.
  int64_t overwritten = 0;
  int64_t substituted = 0;  // calls that no operator executes; recorded results took their place
  int64_t compared = 0;     // outputs of the eager replay that were compared with the recording
  int64_t differing = 0;
  int64_t captured_compared = 0;  // outputs of the captured replay that were compared
  bool renumbered = false;        // calls have other ids than in the whole trace (meta trimmed_ids)
  bool captured = false;          // if not, the reason
  std::string captured_note;      // why not
  // Not empty: one sentence that says how the replay differs; no file was left behind.
  std::string refusal;

  // True when results were compared for too few of the calls to call the trimmed trace proven.
  bool Unproven() const {
    constexpr double kLeastShare = 0.95;
    const double seen = static_cast<double>(with_result + overwritten - substituted);
    return compared == 0 || seen < kLeastShare * static_cast<double>(kernels);
  }
};

// The leaves that are kept, and the contents that they need, by index of the leaf.
struct TrimPlan {
  struct Input {
    int64_t leaf = 0;
    int64_t buffer_id = 0;
    int64_t bytes = 0;  // from the start of the buffer
    analyzer::ByteSet needed;
  };
  std::set<int64_t> leaves;
  std::vector<Input> inputs;  // in order of leaves
};

// Throws Error kUsage when a call is no leaf of the program, or steps are asked for that are not of
// the class of the calls' own step. The program must have steps assigned.
TrimPlan PlanTrim(const analyzer::Program& program, const TrimOptions& options);

// Writes the trimmed trace and replays it: eagerly, and captured when two of its steps are alike.
// Throws Error kTrace when the trace lacks values that are needed, kUsage and kDevice as
// storage::TraceCopy does. Error kUsage, too, when the kept work has failed in the recording, or
// when it holds random numbers whose values a graph has left to nobody.
TrimReport Trim(const storage::Reader& reader, const TrimOptions& options);

}  // namespace acltape::replayer::reproducer
