// The results of a replay (replayer/replay.h).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "analyzer/calls/coverage.h"
#include "analyzer/metrics/metrics.h"
#include "storage/error.h"

namespace acltape::replayer {

struct Mismatch {
  int64_t call_id = 0;
  std::string op;  // "aten::addmm"
  int position = 0;
  std::string name;                          // argument name, "out" for a sole return
  int64_t step = -1;                         // -1: outside the steps
  std::string reference;                     // "recorded" or "eager"
  bool digest_only = false;                  // no values are known; only `metrics.elements` is set
  analyzer::metrics::TensorMetrics metrics;  // metrics of the reference and the replayed result
  std::string reason;                        // the reason why the standard refuses it
};

// An operator whose results differ between runs of the reference (replayer/values/noise_floor.h).
struct FlakyOperator {
  std::string op;
  int64_t call_id = 0;  // the first call that deviated by itself
  int64_t calls = 0;    // calls that deviated by themselves
  // Executions with the usual inputs, in all calls and runs.
  int64_t executions = 0;
  // The part of them that gave another result than the usual one.
  int64_t deviating = 0;
  bool values = false;  // the spread below is known
  double max_abs = 0;
  double max_rel = 0;
  int64_t max_ulp = 0;
  bool special = false;  // NaN or infinities in one of two runs
  double rate() const {
    return executions == 0 ? 0 : static_cast<double>(deviating) / static_cast<double>(executions);
  }
};

// A claim about the program that the replay found. It is also written to the table `finding`.
struct Note {
  std::string rule;      // "LOWER-GELU", "CAPTURE-SHAPE", ...
  std::string severity;  // "info", "notice", "error"
  int64_t call_id = 0;
  int64_t count = 1;  // calls concerned
  std::string message;
  std::string verdict = "predicted";
  std::string evidence;  // JSON array; empty: the call and the number of calls
};

// A run of leaves that was captured as one graph or ran eagerly between graphs.
struct RegionReport {
  int64_t first_call = 0;  // first call of the template step
  int64_t last_call = 0;
  bool captured = false;
  int64_t leaves = 0;
  int64_t tasks = 0;  // device operations launched into it
  int64_t streams = 1;
  int64_t waits = 0;   // between its streams, without forks and joins
  std::string reason;  // why it is not captured
};

struct CaptureReport {
  int64_t template_step = -1;
  int64_t captured_steps = 0;
  int64_t eager_steps = 0;
  std::vector<std::string> eager_reasons;  // one sentence per step that ran eagerly
  std::vector<RegionReport> regions;
  int64_t moving_inputs = 0;    // inputs copied into captured addresses, per step
  int64_t copies_per_step = 0;  // device copies for these inputs
  int64_t copy_bytes_per_step = 0;
  int64_t capture_ns = 0;      // warm-up not included
  int64_t varying_leaves = 0;  // leaves with host arguments that vary
  int64_t updated_leaves = 0;  // varying leaves that are updated in the graphs
  int64_t updates = 0;         // task groups updated in the whole replay
};

// Counts of the calls of a program that was recorded at the ACL level.
struct AclReport {
  int64_t calls = 0;  // 0: the program is of another level
  int64_t issued = 0;
  int64_t memory_calls = 0;                 // allocations and frees: memory is planned once
  int64_t without_effect = 0;               // getters, settings, queries that found work unfinished
  int64_t failed = 0;                       // calls that failed in the recording, without effect
  int64_t task_errors = 0;                  // waits that reported failed work, as in the recording
  int64_t abandoned = 0;                    // calls in captures and updates that failed
  int64_t host_functions = 0;               // code of the program, which a trace cannot hold
  std::map<std::string, int64_t> unknown;   // calls that the replay does not know, by name
  std::map<std::string, int64_t> left_out;  // calls that no replay can give back, by name
  int64_t in_doubt = 0;          // outputs that depend on collectives in graphs that were left out
  int64_t unreleased_waits = 0;  // waits for a value that no recorded call writes, left out
  int64_t operators = 0;
  int64_t streams = 0;
  int64_t events = 0;
  int64_t models = 0;       // graphs that the program captured
  int64_t executions = 0;   // executions of these graphs
  int64_t waits_added = 0;  // by edits of findings
  // Only for a captured replay: graphs made of the program's eager work, and their executions.
  int64_t graphs_made = 0;
  int64_t graphs_executed = 0;
};

struct ReplayReport {
  std::string device;
  int64_t run_id = 0;        // row of the table `run`, 0 when none was written
  int64_t leaves = 0;        // leaves of the program
  int64_t kernels = 0;       // leaves run by device operators
  int64_t device_calls = 0;  // aclnn calls that were made of them
  int64_t views = 0;         // leaves that are views and cost nothing
  int64_t allocations = 0;   // leaves that are allocations and cost nothing
  int64_t sources = 0;       // random leaves, replayed from their recorded outputs
  int64_t host_reads = 0;
  int64_t substituted = 0;  // leaves without a rule, replaced by their recorded outputs
  int64_t steps = 0;
  int64_t compared = 0;  // outputs compared
  int64_t equal = 0;
  int64_t within = 0;  // other bits that the standard accepts
  int64_t noise = 0;   // other bits that are noise of the reference
  int64_t differing = 0;
  analyzer::Coverage coverage;  // how much of the program the comparison saw (replayer/coverage.h)
  int64_t unseen = 0;           // leaves that computed in memory that is not known
  int64_t host_leaves = 0;      // work of the host beside the device, left out
  std::unordered_set<int64_t> compared_calls;  // calls with a compared output
  int64_t not_comparable = 0;                  // outputs without a recorded or eager reference
  int64_t device_bytes = 0;                    // device memory planned
  std::vector<Mismatch> mismatches;
  std::set<int64_t> differing_calls;  // calls with a different output
  std::vector<FlakyOperator> flaky;   // operators of the reference runs, most deviating first
  std::vector<Note> notes;
  CaptureReport capture;  // report of a captured replay
  AclReport acl;
  // False if one graph cannot serve the steps of the program. Always true for a program that is
  // replayed as it was issued, and with a plan.
  bool capturable = true;
  // The reason why the program cannot be captured, in one sentence; nothing ran captured then. Else
  // empty.
  std::string refusal;

  // False if there is no reference: inputs are synthetic and only eager execution was asked for.
  bool has_reference = true;

  // True if results should have been compared but none was, so that there is no verdict.
  bool NothingCompared() const { return has_reference && refusal.empty() && compared == 0; }
  // True if too little was compared for a verdict. Equal is said of a program only when compared
  // outputs tell of nineteen in twenty of its leaves.
  bool SawTooLittle() const { return has_reference && refusal.empty() && coverage.TooLittle(); }
  // Returns 1 if a compared result differs or the program was refused, 125 if nothing or too little
  // was compared, else 0.
  int ExitCode() const {
    if (differing > 0 || !refusal.empty()) return 1;
    return NothingCompared() || SawTooLittle() ? static_cast<int>(ErrorKind::kCannotJudge) : 0;
  }
};

}  // namespace acltape::replayer
