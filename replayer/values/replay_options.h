// The options of a replay (replayer/replay.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/metrics/standard.h"
#include "analyzer/plan/plan.h"

namespace acltape::replayer {

enum class Mode { kEager, kCaptured };

// The outputs that are compared: those of every leaf, or only those that outlive each step (values
// that nothing in the step reads, state that a later step reads, and host reads).
enum class Outputs { kLeaf, kStep };

// The source of inputs: the recording, or seeded synthetic values. With synthetic values only eager
// and captured execution can be compared.
enum class Data { kRecorded, kSynthesised };

// The values that leaves read from earlier leaves. Carried: the results of this replay. Golden: the
// recorded results, so that no leaf (in a graph: no region) suffers from the errors of another.
enum class Inputs { kCarried, kGolden };

// The way to replay a program of the ACL level: with its streams as recorded, with all work on one
// stream, or leaf by leaf as a PyTorch program is replayed.
enum class Streams { kRecorded, kFlat, kLeaves };

// A plan that was read and that fits the trace.
struct ChosenPlan {
  analyzer::plan::Plan plan;
  std::string path;                // for messages
  int64_t plan_id = 0;             // row of the table `plan`; 0: none
  bool allow_races = false;        // races are accepted
  std::vector<std::string> races;  // its races, one sentence each
};

// kTasks: host arguments that vary between the steps of a class are updated in the captured graphs.
// kNone: the graphs keep the values of the template step.
enum class Updates { kTasks, kNone };

struct ReplayOptions {
  Mode mode = Mode::kEager;
  Streams streams = Streams::kRecorded;
  Outputs outputs = Outputs::kLeaf;
  Data data = Data::kRecorded;
  Inputs inputs = Inputs::kCarried;
  // Only for captured mode: the plan of the graphs and their streams. Null: the longest regions,
  // each on one stream.
  std::shared_ptr<const ChosenPlan> plan;
  Updates updates = Updates::kTasks;
  int repetitions = 1;  // replays of the program, each compared
  // Only at the ACL level, as recorded: lint findings whose waits are added (acl/wait_edits.h).
  std::vector<std::string> edits;
  // Only at the ACL level: the folder in which the processes that replay the other ranks are met
  // (acl_level/rank_meeting.h). Empty: this rank is replayed alone, and its collectives write what
  // the recording received.
  std::string rank_meeting;
  std::string device_lib;       // a folder or file; empty: the soft device
  int64_t mismatch_limit = 20;  // mismatches kept in the report; all are counted
  bool keep_matches = false;    // a comparison row for each equal output too
  // The standard for differences that are accepted. Null: results must be equal bit for bit.
  std::shared_ptr<const analyzer::metrics::Standard> standard;
  int noise_runs = 0;  // eager reference runs before the replay, to learn the noise
  uint64_t seed = 1;   // seed of synthetic data
  // Called from the replaying thread with the number of leaves done and the total.
  std::function<void(int64_t done, int64_t total)> progress;
};

}  // namespace acltape::replayer
