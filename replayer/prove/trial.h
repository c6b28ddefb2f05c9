// Trials: what is done to a captured step to see whether it still computes what the eager step
// does. A kind of trial is a question about a plan; a trial is one experiment that asks it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replayer/script/mixed_step.h"

namespace acltape::replayer {

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
  std::string_view rule;  // "PROVE-POISON": of findings
  // When results would differ if the plan did not hold: "memory that no live value occupies holds
  // NaN".
  std::string_view when;
};
std::span<const TrialKindRow> TrialKinds();
const TrialKindRow& RowOf(TrialKind kind);
// "poison,order"; throws Error kUsage with the words there are.
std::vector<TrialKind> ParseTrialKinds(const std::string& text);

struct Trial {
  TrialKind kind = TrialKind::kPlain;
  int number = 0;  // among those of its kind, from 0
  MixedStepOptions step;
  // How streams are interleaved, where the device can vary it: drawn from a seed, or so many
  // streams ahead in turn (stream_orders.h). 0: as it comes. The soft device reads both once, when
  // it is opened, so that such a trial needs a process of its own.
  uint64_t jitter = 0;
  int ahead = 0;
  uint64_t seed = 0;  // that the trial was drawn from

  bool NeedsProcess() const { return jitter != 0 || ahead != 0; }

  // "captured at step 1, steps 3, 1, 3": with the numbers of the trace.
  std::string Describe(const MixedStep& step, const analyzer::Program& program) const;
};

// What trials are made of.
struct TrialGround {
  size_t matches = 0;  // steps of the class, at least two
  size_t places = 0;   // active calls of a step
  int streams = 1;     // of the widest graph
  // Places of the calls of each graph.
  std::vector<std::vector<size_t>> graphs;
};

// `per_kind` trials of each kind, the kinds taking turns, so that a budget of time cuts all of them
// short alike. Equal arguments give equal trials. Kinds that make no sense here have none
// (WhyNone).
std::vector<Trial> MakeTrials(const TrialGround& ground, const std::vector<TrialKind>& kinds,
                              int per_kind, uint64_t seed);
// Why there are no trials of a kind; empty when there are.
std::string WhyNone(TrialKind kind, const TrialGround& ground);

}  // namespace acltape::replayer
