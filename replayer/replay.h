// Replays a recorded program on an ACL device and proves it equal to the recording.
//
// The leaves of the trace are lowered to aclnn calls (analyzer/lowering), device memory is planned
// once, inputs and recorded random values are uploaded where the program met them, and every output
// is compared with the recorded one: bit for bit, or by a precision standard.
//
// Eager: each leaf is prepared and launched on its own, as an eager framework does. Captured: the
// calls before the first step run eagerly; the regions of one template step are captured once on a
// non-default stream, after a warm-up, and every step of the same class executes those graphs after
// its changed inputs have been copied into the captured addresses. Steps that differ from the
// template run eagerly and are listed.
//
// A program recorded at the ACL level alone needs no lowering: its own calls are issued again, see
// replayer/acl/acl_replay.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analyzer/metrics/standard.h"
#include "analyzer/plan/plan.h"
#include "storage/reader.h"

namespace acltape::storage {
class Results;
}

namespace acltape::replayer {

enum class Mode { kEager, kCaptured };

// Which outputs are compared: those of every leaf, or only what outlives each step (values that
// nothing in the step consumes, state that a later step reads, host reads).
enum class Outputs { kLeaf, kStep };

// Where inputs come from: the recording, or seeded synthetic values. Synthetic values prove eager
// against captured only.
enum class Data { kRecorded, kSynthesised };

// What leaves read that earlier ones wrote: what those computed in this replay, or the results that
// were recorded of them, so that no leaf (in a graph: no region) suffers from the errors of
// another.
enum class Inputs { kCarried, kGolden };

// Of a program recorded at the ACL level: its streams as recorded, or all work on one.
enum class Streams { kRecorded, kFlat };

// A plan that has been read and found to fit the trace.
struct ChosenPlan {
  analyzer::Plan plan;
  std::string path;                // for messages
  int64_t plan_id = 0;             // row of the table `plan`, 0 when it has none
  bool allow_races = false;        // whether it may have races
  std::vector<std::string> races;  // those it has, a sentence each
};

// Whether host arguments that vary between the steps of a class are updated in the captured graphs,
// or keep the value of the template step.
enum class Updates { kTasks, kNone };

struct ReplayOptions {
  Mode mode = Mode::kEager;
  Streams streams = Streams::kRecorded;
  Outputs outputs = Outputs::kLeaf;
  Data data = Data::kRecorded;
  Inputs inputs = Inputs::kCarried;
  // Of captured mode: what the graphs hold and on which streams; null: the longest regions, each on
  // one stream.
  std::shared_ptr<const ChosenPlan> plan;
  Updates updates = Updates::kTasks;
  int repetitions = 1;          // replays of the program, each compared
  std::string device_lib;       // a folder or file; empty: the soft device
  int64_t mismatch_limit = 20;  // mismatches kept in the report; all are counted
  bool keep_matches = false;    // a comparison row for each equal output too
  // What may differ; null: nothing, bit for bit.
  std::shared_ptr<const analyzer::Standard> standard;
  int noise_runs = 0;  // eager runs of the reference before the replay, to learn what is noise
  uint64_t seed = 1;   // of synthetic data
  // Called from the replaying thread with the number of leaves done and the total.
  std::function<void(int64_t done, int64_t total)> progress;
};

struct Mismatch {
  int64_t call_id = 0;
  std::string op;  // "aten::addmm"
  int position = 0;
  std::string name;                 // argument name, "out" for a sole return
  int64_t step = -1;                // -1: outside the steps
  std::string reference;            // "recorded" or "eager"
  bool digest_only = false;         // no values were kept, only `metrics.elements` is known
  analyzer::TensorMetrics metrics;  // of the reference and the replayed result
  std::string reason;               // why the standard refuses it
};

// An operator whose results differ between runs of the reference, see replayer/noise_floor.h.
struct FlakyOperator {
  std::string op;
  int64_t call_id = 0;     // the first call with a result of its own that differed
  int64_t calls = 0;       // calls with such a result
  int64_t executions = 0;  // with the usual inputs, all calls and runs together
  int64_t deviating = 0;   // of those: another result than the usual one
  bool values = false;     // whether the spread below is known
  double max_abs = 0;
  double max_rel = 0;
  int64_t max_ulp = 0;
  bool special = false;  // NaN or infinities in one of two runs
  double rate() const {
    return executions == 0 ? 0 : static_cast<double>(deviating) / static_cast<double>(executions);
  }
};

// A claim about the program that the replay met, also written to the table `finding`.
struct Note {
  std::string rule;      // "LOWER-GELU", "CAPTURE-SHAPE", ...
  std::string severity;  // "info", "notice", "error"
  int64_t call_id = 0;
  int64_t count = 1;  // calls concerned
  std::string message;
  std::string verdict = "predicted";
  std::string evidence;  // JSON array; empty: the call and the number of calls
};

// A run of leaves that was captured as one graph, or that ran eagerly between graphs.
struct RegionReport {
  int64_t first_call = 0;  // of the template step
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
  int64_t copies_per_step = 0;  // device copies those need
  int64_t copy_bytes_per_step = 0;
  int64_t capture_ns = 0;      // warm-up not included
  int64_t varying_leaves = 0;  // with host arguments that vary between the steps
  int64_t updated_leaves = 0;  // of those: updated in the graphs
  int64_t updates = 0;         // task groups updated in the whole replay
};

// Of a program recorded at the ACL level: what became of its calls.
struct AclReport {
  int64_t calls = 0;  // 0: not such a program
  int64_t issued = 0;
  int64_t memory_calls = 0;                // allocations and frees: memory is planned once
  int64_t without_effect = 0;              // getters, settings, queries that found work unfinished
  int64_t failed = 0;                      // failed in the recording, and had no effect
  int64_t task_errors = 0;                 // waits that told of failed work, as in the recording
  int64_t abandoned = 0;                   // part of captures and updates that came to no good end
  int64_t host_functions = 0;              // the program's own code, which a trace cannot hold
  std::map<std::string, int64_t> unknown;  // calls that the replay does not know, by name
  int64_t operators = 0;
  int64_t streams = 0;
  int64_t events = 0;
  int64_t models = 0;      // graphs that the program captured
  int64_t executions = 0;  // of those
  // Of a captured replay: graphs made of the program's eager work, and their executions.
  int64_t graphs_made = 0;
  int64_t graphs_executed = 0;
};

struct ReplayReport {
  std::string device;
  int64_t run_id = 0;        // row of the table `run`, 0 when none was written
  int64_t leaves = 0;        // of the program
  int64_t kernels = 0;       // leaves run by device operators
  int64_t device_calls = 0;  // aclnn invocations these became
  int64_t views = 0;         // leaves that cost nothing: views
  int64_t allocations = 0;   // ... allocations
  int64_t sources = 0;       // random leaves, replayed from their recorded outputs
  int64_t host_reads = 0;
  int64_t substituted = 0;  // leaves without a rule, replaced by their recorded outputs
  int64_t steps = 0;
  int64_t compared = 0;  // outputs compared
  int64_t equal = 0;
  int64_t within = 0;  // other bits, which the standard accepts
  int64_t noise = 0;   // other bits, as between runs of the reference
  int64_t differing = 0;
  int64_t not_comparable = 0;  // outputs without a recorded or eager reference
  int64_t device_bytes = 0;    // device memory planned
  std::vector<Mismatch> mismatches;
  std::set<int64_t> differing_calls;  // calls of which an output was different
  std::vector<FlakyOperator> flaky;   // of the reference runs, most deviating first
  std::vector<Note> notes;
  CaptureReport capture;  // of a captured replay
  AclReport acl;
  // Not empty: one sentence that says why the program cannot be captured; nothing ran captured.
  std::string refusal;
  std::string reproduce;  // the command that shows it again

  // 0 when nothing compared was different and nothing was refused, else 1.
  int ExitCode() const { return differing > 0 || !refusal.empty() ? 1 : 0; }
};

// Throws Error: kTrace when the trace lacks values that the replay needs (one sentence, with the
// recording option that keeps them), kDevice when the device library or a device call fails.
// `results` may be null; then nothing is written to the trace.
ReplayReport Replay(const storage::Reader& trace, const ReplayOptions& options,
                    storage::Results* results);

}  // namespace acltape::replayer
