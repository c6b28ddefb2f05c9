// Adds results of tools to a trace: runs and their samples, comparisons, findings, plans, steps.
// Rows of one object go into one transaction, committed by Commit, by the destructor, and every
// 20000 rows.
//
//   Results results(reader);                 // reader opened with Mode::kReadWrite
//   const int64_t run = results.AddRun({.mode = "captured", .device = "soft"});
//   results.AddSample({.run_id = run, .step = 3, .host_ns = 1800});
//   results.FinishRun(run, 0);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/reader.h"
#include "storage/trace.h"

namespace acltape::storage {

struct Run {
  std::string mode;    // "eager", "captured"
  std::string device;  // name of the ACL library that served it
  std::optional<int64_t> plan_id;
  std::string options = "{}";  // JSON object
  int64_t begin_ns = 0;        // CLOCK_REALTIME; 0: now
};

// A measurement of a call, of a region, or (neither set) of a whole step.
struct Sample {
  int64_t run_id = 0;
  int64_t repetition = 0;
  std::optional<int64_t> step;
  std::optional<int64_t> call_id;
  std::optional<int64_t> region_id;
  std::optional<int64_t> host_ns;
  std::optional<int64_t> device_ns;
};

struct Comparison {
  int64_t run_id = 0;
  std::optional<int64_t> step;
  int64_t call_id = 0;
  int position = 0;
  std::string metrics = "{}";  // JSON object
  std::string verdict;         // "equal", "different", ...
};

struct Finding {
  std::string rule;  // "CAP-07", ...
  Severity severity = Severity::kNotice;
  int64_t call_id = 0;  // 0: the trace as a whole
  int64_t code = 0;     // ACL error code, 0: none
  std::string message;
  std::string evidence = "[]";  // JSON
  std::string verdict = "predicted";
};

struct Dependency {
  int64_t source_call = 0;
  int64_t target_call = 0;
  std::string kind;       // "RAW", "WAR", "WAW", "stream", "event", "host"
  int64_t buffer_id = 0;  // 0: not about bytes
  int64_t first_byte = 0;
  int64_t last_byte = 0;
};

// A plan with the rows of the tables region, placement and sync; its file is the document.
struct PlanRecord {
  struct Region {
    std::string kind;  // "captured", "eager"
    int64_t first_call = 0;
    int64_t last_call = 0;
    std::string reason;
  };
  struct Placement {
    int64_t call_id = 0;
    int64_t stream = 0;
  };
  struct Sync {
    int64_t event = 0;
    int64_t record_call = 0;
    int64_t wait_call = 0;
    std::string reason;
  };
  std::string name;
  std::string options = "{}";  // JSON object
  std::string document;        // JSON
  std::vector<Region> regions;
  std::vector<Placement> placements;  // each call once
  std::vector<Sync> syncs;
};

// An experiment in which a plan failed, kept so that it can be made again.
struct Witness {
  std::string kind;  // "poison", "relocate", "order", "jitter", "ahead", "churn", "capture_at", ...
  std::string options = "{}";  // JSON object: the whole experiment
  int64_t plan_id = 0;         // 0: without a plan
  int64_t call_id = 0;         // the first call that was different; 0: none is known
  int position = 0;            // position of its output
  std::string message;
  std::string verdict;  // "different", "error", "equal" once it no longer fails
  std::string command;  // command that makes it again
};

class Results {
 public:
  // Error kDevice when the trace or its folder cannot be written, or is still being recorded.
  explicit Results(Reader& reader);
  ~Results();
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  int64_t AddRun(const Run& run);  // the new run_id
  void FinishRun(int64_t run_id, int exit_code);
  void AddSample(const Sample& sample);
  void AddComparison(const Comparison& comparison);
  // A finding with the rule, call and message of an earlier one replaces it; but what is only
  // predicted, with the same code, leaves one that was proven as it is.
  void AddFinding(const Finding& finding);
  // The new plan_id; a plan with the document of an earlier one keeps the id of that.
  int64_t AddPlan(const PlanRecord& plan);
  // The witness_id; one with the kind, options, plan and call of an earlier one replaces it and
  // keeps its id.
  int64_t AddWitness(const Witness& witness);
  // Replaces all steps.
  void ReplaceSteps(const std::vector<Step>& steps);
  // Replaces all dependencies.
  void ReplaceDependencies(const std::vector<Dependency>& dependencies);
  // The analysed role of a buffer: "parameter", "input", "activation", ...
  void SetBufferRole(int64_t buffer_id, const std::string& role);
  void AddLedger(const LedgerEntry& entry);
  // Says that the argument at `position` of a call had the value of `kept` after the call.
  void AddSameValue(const Snapshot& kept, int64_t call_id, int position, const TensorRef& tensor);
  // Keeps the packed content that the argument at `position` of a call had after the call.
  // Layout::IsDense says the order of the elements.
  void AddValue(int64_t call_id, int position, const TensorRef& tensor, bool dense,
                const std::vector<uint8_t>& packed);
  // Gives a call the call that it belongs to, and that one's line. Calls that have one keep it.
  void SetParent(int64_t call_id, int64_t parent_id);
  void SetMeta(const std::string& key, const std::string& value);

  void Commit();

 private:
  struct State_;
  std::unique_ptr<State_> state_;
};

}  // namespace acltape::storage
