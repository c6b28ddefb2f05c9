// Rules about differences between the steps that one graph is to serve: lazy initialisation,
// scalars and lengths that a capture bakes, inputs that move, and shapes. There is also a rule
// about random numbers, whose state a capture bakes.
#include <algorithm>
#include <unordered_map>

#include "analyzer/graph/variation.h"
#include "analyzer/lint/both_levels.h"
#include "analyzer/lint/eager_runs.h"
#include "analyzer/lint/rule.h"
#include "meaning/acl_operators.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;
using storage::ValueKind;

// Returns the place from which the call has the seed of the random numbers that it draws. Leaves of
// PyTorch have a generator on the host.
meaning::Randomness RandomnessOf(const Work& work, size_t call) {
  const WorkForm& form = work.form(call);
  if (work.dialect == Dialect::kAten) {
    return form.kind == LeafKind::kSource ? meaning::Randomness::kHostSeed
                                          : meaning::Randomness::kNone;
  }
  if (form.acl_kind() != K::kOperator) return meaning::Randomness::kNone;
  const meaning::AclOperator facts = meaning::AclOperatorOf(work.op(call).name);
  return Holds(facts.random_if, *form.arguments) ? facts.randomness : meaning::Randomness::kNone;
}

// True for kernels. A graph holds them with their arguments.
bool IsOperator(const Work& work, size_t call) {
  if (work.dialect == Dialect::kAcl) return work.form(call).acl_kind() == K::kOperator;
  return work.form(call).kind == LeafKind::kKernel;
}

std::string InStep(const Work& work, size_t call) {
  return "step " + std::to_string(work.calls[call].step);
}

template <typename Visit>
void VisitVariations(const LintContext& context, Visit&& visit) {
  for (size_t i = 0; i < context.steps.families.size(); ++i) {
    if (context.steps.families[i].steps.size() < 2) continue;
    visit(context.steps.families[i], context.steps.variations[i]);
  }
}

// True if a graph bakes this host argument of a launch. `lists` selects lists (lengths, block
// tables) or all other values.
bool IsBaked(const Work& work, const graph::ArgumentVariation& argument, bool lists) {
  if (argument.kind == graph::VariationKind::kLayout) return false;
  if (!IsOperator(work, argument.first_call)) return false;
  const ValueKind kind = (*work.form(argument.first_call).arguments)[argument.argument].kind;
  const bool is_list = kind == ValueKind::kIntList || kind == ValueKind::kRealList ||
                       kind == ValueKind::kBoolList || kind == ValueKind::kScalarList;
  return is_list == lists;
}

// Marks the calls of a capture that lie in task groups. The program can update these.
std::vector<uint8_t> InTaskGroups(const Work& work, const Stretch& capture) {
  std::vector<uint8_t> inside(capture.end - capture.first);
  bool open = false;
  for (size_t i = capture.first; i < capture.end; ++i) {
    const K kind = work.form(i).acl_kind();
    if (kind == K::kGroupBegin) open = true;
    if (kind == K::kGroupEnd) open = false;
    inside[i - capture.first] = open;
  }
  return inside;
}

// Reports values that captures of the program have baked although the same calls ran eagerly with
// others.
void ReportBakedInCaptures(const LintContext& context, bool lists, Found& found) {
  const Work& work = context.work;
  if (HasLeavesBeside(work)) return;  // FindBaked compares leaves and their launches
  ServedRuns served(work, context.places, context.stretches);
  for (const Stretch& capture : context.stretches) {
    if (!capture.recorded()) continue;
    graph::StepFamily runs = FindEagerRuns(work, context.places, capture);
    served.LeaveOut(runs);
    if (runs.steps.size() < 2) continue;
    const std::vector<uint8_t> updatable = InTaskGroups(work, capture);
    for (const graph::ArgumentVariation& argument : graph::FindVaryingArguments(work, runs)) {
      const size_t call = runs.Call(0, argument.place);
      if (!IsBaked(work, argument, lists)) continue;
      if (RandomnessOf(work, call) != meaning::Randomness::kNone) continue;  // see LINT-25
      if (updatable[call - capture.first] != 0) continue;
      Found::Options options;
      options.other = argument.second_call;
      options.subject = "captured " + argument.name;
      const auto [first, second] = graph::ShortValues(work, argument);
      found.Add(static_cast<int64_t>(call),
                Named(call) + ": argument " + argument.name + " is " + first +
                    " in the capture and " + second + " where the same calls ran eagerly; " +
                    Counted(argument.values, "value") +
                    " over all runs; the graph keeps the one of its capture",
                options);
    }
  }
}

// Reports host arguments that vary between steps.
void ReportBaked(const LintContext& context, bool lists, Found& found) {
  ReportBakedInCaptures(context, lists, found);
  FindBaked(context, lists, found);
  const Work& work = context.work;
  VisitVariations(context, [&](const graph::StepFamily&, const graph::Variation& variation) {
    for (const graph::ArgumentVariation& argument : variation.arguments) {
      if (!IsBaked(work, argument, lists)) continue;
      if (RandomnessOf(work, argument.first_call) != meaning::Randomness::kNone) continue;
      Found::Options options;
      options.other = argument.second_call;
      options.subject = argument.name + std::to_string(argument.place);
      const auto [first, second] = graph::ShortValues(work, argument);
      found.Add(argument.first_call,
                Named(argument.first_call) + ": argument " + argument.name + " is " + first +
                    " in " + InStep(work, argument.first_call) + " and " + second + " in " +
                    InStep(work, argument.second_call) + ", " + Counted(argument.values, "value") +
                    " over the steps; a graph keeps the one of its capture",
                options);
    }
  });
}

constexpr size_t kMostWarmUps = 2;  // at most so many steps may hold an operator that others lack

// True if one graph serves all steps after those in which a program warms up.
bool DifferInWarmUpAlone(const LintContext& context) {
  const size_t steps = context.work.steps.size();
  if (steps < kMostWarmUps + 2) return false;
  return std::all_of(context.steps.families.begin(), context.steps.families.end(),
                     [&](const graph::StepFamily& family) {
                       return family.steps.back() + 1 == steps ||
                              family.steps.back() < kMostWarmUps;
                     });
}

}  // namespace

void CheckLazyInitialisation(const LintContext& context, Found& found) {
  const Work& work = context.work;
  if (context.steps.families.empty() || work.steps.size() < kMostWarmUps + 2) return;
  struct Seen {
    size_t last_step = 0;
    size_t first_call = 0;
    int64_t count = 0;
  };
  std::unordered_map<const storage::Op*, Seen> seen;
  for (size_t step = 0; step < work.steps.size(); ++step) {
    for (int64_t i = work.steps[step].first; i < work.steps[step].end; ++i) {
      if (work.form(i).acl_kind() == K::kNoEffect) continue;
      const auto [entry, created] = seen.try_emplace(&work.op(i));
      if (created) entry->second.first_call = i;
      entry->second.last_step = step;
      ++entry->second.count;
    }
  }
  std::vector<Seen> early;
  for (const auto& [op, use] : seen) {
    if (use.last_step < kMostWarmUps) early.push_back(use);
  }
  std::sort(early.begin(), early.end(),
            [](const Seen& a, const Seen& b) { return a.first_call < b.first_call; });
  for (const Seen& use : early) {
    found.Add(static_cast<int64_t>(use.first_call),
              Named(use.first_call) + " and its like occur " + Counted(use.count, "time") +
                  " up to step " + std::to_string(work.steps[use.last_step].step) +
                  " and in no later one: warm up " + Counted(use.last_step + 1, "step") +
                  " before the capture");
  }
}

void CheckBakedScalar(const LintContext& context, Found& found) {
  ReportBaked(context, false, found);
}

void CheckBakedLength(const LintContext& context, Found& found) {
  ReportBaked(context, true, found);
}

void CheckMovedInput(const LintContext& context, Found& found) {
  const Work& work = context.work;
  VisitVariations(context, [&](const graph::StepFamily& family, const graph::Variation& variation) {
    for (const graph::StepInput& input : variation.inputs) {
      if (!input.moves || input.number) continue;
      // At the ACL level memory belongs to large blocks of an allocator, which exist before each
      // step. Bytes that a step writes first are therefore a temporary of its own, wherever they
      // lie.
      if (!input.read && work.dialect == Dialect::kAcl) continue;
      const size_t call = family.Call(0, input.place);
      Found::Options options;
      options.other = input.moved_call;
      options.subject =
          input.name + std::to_string(input.place) + "." + std::to_string(input.element);
      found.Add(static_cast<int64_t>(call),
                Named(call) + ": input " + input.name + " (" + std::to_string(input.bytes) +
                    " bytes) lies elsewhere in " + InStep(work, input.moved_call) + ", in " +
                    Counted(input.buffers, "buffer") +
                    " over the steps; a graph reads the place of its capture",
                options);
    }
  });
}

void CheckGuards(const LintContext& context, Found& found) {
  const Work& work = context.work;
  for (const graph::StepFamily& family : context.steps.families) {
    if (family.here < 0 && family.before < 0) continue;
    if (DifferInWarmUpAlone(context)) break;
    const size_t step = family.steps.front();
    Found::Options options;
    options.other = family.before;
    options.subject = std::to_string(step);
    const int64_t call =
        family.here >= 0 ? family.here : static_cast<int64_t>(work.steps[step].first);
    found.Add(call,
              Named(static_cast<size_t>(call)) + " is where step " +
                  std::to_string(work.steps[step].step) +
                  " parts from the step before: one graph can serve " +
                  std::to_string(family.steps.size()) + " of " + Counted(work.steps.size(), "step"),
              options);
  }
  VisitVariations(context, [&](const graph::StepFamily& family, const graph::Variation& variation) {
    for (size_t symbol = 0; symbol < variation.symbols.size(); ++symbol) {
      const auto dimension = std::find_if(variation.dimensions.begin(), variation.dimensions.end(),
                                          [&](const graph::DimensionVariation& row) {
                                            return row.symbol == static_cast<int>(symbol);
                                          });
      if (dimension == variation.dimensions.end()) continue;
      const graph::ShapeSymbol& sizes = variation.symbols[symbol];
      const size_t call = family.Call(0, dimension->place);
      Found::Options options;
      options.subject = "symbol" + std::to_string(symbol);
      found.Add(static_cast<int64_t>(call),
                Named(call) + ": dimension " + std::to_string(dimension->dimension) + " of " +
                    dimension->name + " has " + std::to_string(sizes.values) + " sizes over " +
                    Counted(family.steps.size(), "step") + ", as have " +
                    std::to_string(sizes.dimensions) +
                    " dimensions in all: as many captures, or padding",
                options);
    }
  });
}

void CheckRandomNumbers(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  const bool acl = context.work.dialect == Dialect::kAcl;
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    // Who gives the seed as a tensor can write it before each execution.
    if (RandomnessOf(context.work, i) != meaning::Randomness::kHostSeed) continue;
    if (acl && !context.facts->IsCapturing(stretch, i)) continue;
    found.Add(static_cast<int64_t>(i),
              Named(i) +
                  " draws random numbers: a graph repeats those of the seed and offset that it was "
                  "captured with");
  }
}

}  // namespace acltape::analyzer::lint
