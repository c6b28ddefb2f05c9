// A lint rule is a row of a table and one check function.
//
// To add a rule, write `void CheckX(const LintContext&, Found&)` in the file of its family and give
// it a row in rules.cpp. LINT-01 to LINT-30 are numbered as the failure modes of
// docs/lint_rules.md. Numbers from 31 on are further forms of these failure modes, or rules without
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/executions/own_graphs.h"
#include "analyzer/executions/queue_overtakes.h"
#include "analyzer/graph/variation.h"
#include "analyzer/lint/capture_facts.h"
#include "analyzer/lint/finding.h"
#include "analyzer/lint/load.h"
#include "analyzer/lint/places.h"
#include "analyzer/lint/stretch.h"
#include "analyzer/lint/words.h"
#include "storage/trace.h"

namespace acltape::analyzer::lint {

class Found;
struct LintContext;

enum class LintScope : uint8_t {
  kAclStretch,   // once for each stretch of an ACL trace
  kAtenStretch,  // once for each stretch of an aten trace
  kStretch,      // once for each stretch of any trace
  kAclTrace,     // once for an ACL trace
  kTrace         // once
};

// Says what findings of a rule have in common when they have one cause.
enum class LintCause : uint8_t {
  kLine,       // the line of the program, or the operator where no line is known
  kBothLines,  // the lines of both calls
  kSteps,      // nothing: steps differ, and the findings are where they part
  kHostWait,   // as kLine; an operator that waits and then copies is found by two rules
  kBaked       // as kLine; scalars and lists of one line change together
};

struct LintRule {
  std::string_view id;  // "LINT-02"
  int mode = 0;         // number of its failure mode; 0: it is about no capture
  storage::Severity severity = storage::Severity::kError;
  std::string_view title;   // the mistake
  std::string_view source;  // rules of the interface
  Codes codes{};            // the default codes; a check may give others for a call
  FailsAt fails_at = FailsAt::kCall;
  std::string_view edit;  // advice for the user
  LintScope scope = LintScope::kAclStretch;
  void (*check)(const LintContext& context, Found& found) = nullptr;
  LintCause cause = LintCause::kLine;
  std::string_view torch_edit = {};  // advice for a program over PyTorch; empty: as `edit`
};

std::span<const LintRule> LintRules();

struct LintOptions {
  StretchOptions stretch;
  std::function<bool(const Stretch&)> wanted;  // selects stretches; empty: all
  bool merge = true;  // equal findings of several places become one; false: each is its own
  // The program captures graphs itself, which another level knows. Leaves are then looked at for
  // what goes on between the graphs, not for what a capture of the step would refuse.
  bool around_captures = false;
  // The graphs of the program, whose entries are those of the work. Null: they are not looked at.
  const executions::OwnGraphs* graphs = nullptr;
  // The leaves of the host too, those beside the device among them. Null: they are not known.
  const Work* host_too = nullptr;
  // The leaves beside the calls that are looked at. Null: who needs them loads them.
  std::shared_ptr<LeavesBeside> leaves;
  // Calls of the interface that came before launches of these leaves. Null: they are not known.
  const std::vector<executions::Overtake>* overtakes = nullptr;
  int64_t stream_limit = 1984;  // streams of the device, with the hidden ones of captures
};

// The steps that one graph is to serve. It is filled if the program has at least two steps and made
// no capture itself. Then the steps are what would be captured.
struct StepFacts {
  std::vector<graph::StepFamily> families;
  std::vector<graph::Variation> variations;  // by family
};

// Everything that a rule can look at.
struct LintContext {
  const Work& work;
  const std::vector<Stretch>& stretches;
  const Handles& handles;
  const std::vector<ModeExchange>& exchanges;
  const StepFacts& steps;
  const Places& places;
  const LintOptions& options;
  const Places& places_of_calls;  // the lines of the calls that `options.graphs` names
  size_t stretch_index = 0;       // the stretch, for scopes of one stretch
  const CaptureFacts* facts = nullptr;

  const Stretch& stretch() const { return stretches[stretch_index]; }
  // The mode to which the thread has exchanged when it makes the call.
  CaptureMode ExchangedMode(int32_t thread, size_t call) const;
  // The codes of an unsafe call: `code` in each mode that refuses it.
  Codes UnsafeCodes(size_t call, int32_t code) const;
  // The codes of the end of a capture with which `code` is wrong. If another thread ends it, the
  // interface reports that first (rule CAP-24).
  Codes EndCodes(int32_t code) const;
  bool EndsInAnotherThread() const;
};

// Collects findings. Occurrences of the same problem become one finding with a count. They are the
// same if they have the same rule, operators and lines of the program (where known), and are at the
// same position in each stretch, such as the first wait of every step.
class Found {
 public:
  void Begin(const LintRule& rule, const LintContext& context);
  // Adds a finding about `call`, an index in Work::calls; -1 means the trace as a whole. `other` is
  // the second call of the finding, or -1. Codes and edit are those of the rule unless given.
  struct Options {
    int64_t other = -1;
    const Codes* codes = nullptr;
    FailsAt fails_at = FailsAt::kNowhere;  // kNowhere: as the rule says
    std::vector<Edit> edits;
    bool merged = false;     // true: all occurrences are one finding
    std::string subject;     // separates findings that name the same calls
    bool of_graphs = false;  // true: it is about graphs of the program, at any level
  };
  void Add(int64_t call, std::string message, const Options& options);
  void Add(int64_t call, std::string message) { Add(call, std::move(message), Options{}); }

  std::vector<Finding> Take() { return std::move(findings_); }

 private:
  // One of the two calls of a finding, by its operator and its line of the program.
  struct Side {
    int64_t op = 0;
    int32_t place = 0;  // its place in the program
    auto operator<=>(const Side&) const = default;
  };
  using Key = std::tuple<const LintRule*, Side, Side, std::string>;
  const LintRule* rule_ = nullptr;
  const LintContext* context_ = nullptr;
  // Sets the verdict by comparing with the recording, if the program captured the calls itself.
  void CompareWithRecording(int64_t call, Finding& finding) const;

  std::map<Key, int64_t> occurrences_;  // number of each in this stretch
  std::map<std::pair<Key, int64_t>, size_t> first_;
  std::vector<Finding> findings_;
};

// True for rules about calls that failed in the recording. Their findings are told first.
bool IsAboutFailures(const LintRule& rule);  // rules_failed.cpp
// Leaves out failures of which another rule tells the cause: it names the same call, or predicts
// the code with which the capture around it failed.
void LeaveOutToldFailures(const Work& work, const std::vector<Stretch>& stretches,
                          std::vector<Finding>& findings);  // rules_failed.cpp

// The checks, and the file of each.
void CheckFailedCall(const LintContext& context, Found& found);           // rules_failed.cpp
void CheckLostCall(const LintContext& context, Found& found);             // rules_failed.cpp
void CheckUnjoinedFork(const LintContext& context, Found& found);         // rules_order.cpp
void CheckHostWait(const LintContext& context, Found& found);             // rules_host.cpp
void CheckSynchronousCopy(const LintContext& context, Found& found);      // rules_host.cpp
void CheckAllocation(const LintContext& context, Found& found);           // rules_memory.cpp
void CheckPageableCopy(const LintContext& context, Found& found);         // rules_host.cpp
void CheckCapturedEventOnHost(const LintContext& context, Found& found);  // rules_host.cpp
void CheckOutsideEvent(const LintContext& context, Found& found);         // rules_order.cpp
void CheckBudget(const LintContext& context, Found& found);               // rules_trace.cpp
void CheckFreedAddress(const LintContext& context, Found& found);         // rules_memory.cpp
void CheckEagerRace(const LintContext& context, Found& found);            // rules_race.cpp
void CheckCapturedRace(const LintContext& context, Found& found);         // rules_race.cpp
void CheckUpdateRace(const LintContext& context, Found& found);           // rules_race.cpp
void CheckHostFunction(const LintContext& context, Found& found);         // rules_host.cpp
void CheckLazyInitialisation(const LintContext& context, Found& found);   // rules_steps.cpp
void CheckBakedScalar(const LintContext& context, Found& found);          // rules_steps.cpp
void CheckMovedInput(const LintContext& context, Found& found);           // rules_steps.cpp
void CheckLateRead(const LintContext& context, Found& found);             // rules_memory.cpp
void CheckSharedPool(const LintContext& context, Found& found);           // rules_race.cpp
void CheckGuards(const LintContext& context, Found& found);               // rules_steps.cpp
void CheckBakedLength(const LintContext& context, Found& found);          // rules_steps.cpp
void CheckRandomNumbers(const LintContext& context, Found& found);        // rules_steps.cpp
void CheckHostReadLeaf(const LintContext& context, Found& found);         // rules_leaves.cpp
void CheckReadAtStepEdge(const LintContext& context, Found& found);       // rules_leaves.cpp
void CheckDeviceCopyLeaf(const LintContext& context, Found& found);       // rules_leaves.cpp
void CheckEnvironment(const LintContext& context, Found& found);          // rules_trace.cpp
void CheckOldEvent(const LintContext& context, Found& found);             // rules_order.cpp
void CheckDefaultStream(const LintContext& context, Found& found);        // rules_order.cpp
void CheckWrongEndStream(const LintContext& context, Found& found);       // rules_order.cpp
void CheckWrongEndThread(const LintContext& context, Found& found);       // rules_order.cpp
void CheckSharedEvent(const LintContext& context, Found& found);          // rules_order.cpp
void CheckTaskGroup(const LintContext& context, Found& found);            // rules_order.cpp
void CheckUncapturedWork(const LintContext& context, Found& found);       // rules_order.cpp
void CheckBakedBranch(const LintContext& context, Found& found);          // rules_graphs.cpp
void CheckMissedInput(const LintContext& context, Found& found);          // rules_graphs.cpp
void CheckMissedResult(const LintContext& context, Found& found);         // rules_graphs.cpp
void CheckEmptyGraph(const LintContext& context, Found& found);           // rules_graphs.cpp
void CheckWarmState(const LintContext& context, Found& found);            // rules_graphs.cpp
void CheckLostMemory(const LintContext& context, Found& found);           // rules_graphs.cpp
void CheckOvertake(const LintContext& context, Found& found);             // rules_graphs.cpp
void CheckReplacedResult(const LintContext& context, Found& found);       // rules_graphs.cpp
void CheckUndefinedRead(const LintContext& context, Found& found);        // rules_graphs.cpp
void CheckHostMemory(const LintContext& context, Found& found);           // rules_host_memory.cpp
// Parts of other rules that are about graphs of the program.
void FindUnwritten(const LintContext& context, Found& found);           // LINT-47
void FindKeptResults(const LintContext& context, Found& found);         // LINT-17
void FindOverwrittenResults(const LintContext& context, Found& found);  // LINT-17
void FindBaked(const LintContext& context, bool lists, Found& found);   // LINT-14, LINT-22
void CheckTurnsNan(const LintContext& context, Found& found);           // rules_values.cpp

}  // namespace acltape::analyzer::lint
