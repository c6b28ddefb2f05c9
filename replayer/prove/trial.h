// A trial executes a captured step under special conditions and tests that it computes the same as
// the eager step. Each kind of trial asks one question about a plan; a trial is one experiment that
// asks it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replayer/script/mixed_step.h"

namespace acltape::replayer::prove {

enum class TrialKind {
  kPlain,
  kPoison,
  kRelocate,
  kOrder,
  kChurn,
  kCaptureAt,
  kAlone,
  kJitter,
  kAhead,
};

struct TrialKindRow {
  TrialKind kind;
  std::string_view name;  // "poison": in options, tables and the column `kind` of witness
  std::string_view rule;  // "PROVE-POISON": the rule of its findings
  // The condition under which results differ if the plan does not hold, such as "memory that no
  // live value occupies holds NaN".
  std::string_view when;
};
std::span<const TrialKindRow> TrialKinds();
const TrialKindRow& RowOf(TrialKind kind);
// Parses a text such as "poison,order". Throws Error kUsage, with the words that are accepted.
std::vector<TrialKind> ParseTrialKinds(const std::string& text);

struct Trial {
  TrialKind kind = TrialKind::kPlain;
  int number = 0;  // among those of its kind, from 0
  script::MixedStepOptions step;
  // The order in which streams run, if the device can vary it: drawn from the seed `jitter`, or
  // `ahead` streams in turn run ahead (stream_orders.h). 0 leaves the order to the device. The soft
  // device reads both settings only when it is opened, so such a trial needs a process of its own.
  uint64_t jitter = 0;
  int ahead = 0;
  uint64_t seed = 0;  // the trial was drawn from it

  bool NeedsProcess() const { return jitter != 0 || ahead != 0; }

  // Returns a text such as "captured at step 1, run at steps 3, 1, 3", with the step numbers of the
  // trace.
  std::string Describe(const script::MixedStep& step, const analyzer::Program& program) const;
};

// The facts about a step from which trials are made.
struct TrialGround {
  size_t matches = 0;  // steps of the class, at least two
  size_t places = 0;   // active calls of a step
  int streams = 1;     // streams of the widest graph
  // The places of the calls in each graph.
  std::vector<std::vector<size_t>> graphs;
};

// Makes `per_kind` trials of each kind. The kinds take turns, so that a limit of time cuts all
// kinds equally. Equal arguments give equal trials. Kinds that make no sense for this step have no
// trials (WhyNone).
std::vector<Trial> MakeTrials(const TrialGround& ground, const std::vector<TrialKind>& kinds,
                              int per_kind, uint64_t seed);
// Returns the reason why a kind has no trials; empty if it has.
std::string WhyNone(TrialKind kind, const TrialGround& ground);

}  // namespace acltape::replayer::prove
