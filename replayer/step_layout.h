// What one set of captured graphs for a class of steps looks like before it has memory: the regions
// with the streams of their leaves, how varying arguments are treated, and the place of every
// buffer of the template step in one arena.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/step_template.h"
#include "replayer/execution.h"
#include "replayer/plan_issue.h"
#include "replayer/varying.h"

namespace acltape::replayer {

// Buffers that must keep a home in a captured replay: those that leaves outside the class use, that
// several steps use, and the stable operands of the class.
std::vector<HomeMemory::Need> CapturedNeeds(const analyzer::Program& program,
                                            const analyzer::StepTemplate& step_class,
                                            const Contents& contents);

// What can still be looked at behind a step. Buffers share places where the graphs keep their lives
// apart; those that must be kept do not, and results that the step overwrites get shadows.
enum class Keep {
  kNothing,      // but what other steps use
  kStepOutputs,  // also results that nothing in the step uses
  kEverything,
};

struct StepGraphOptions {
  Keep keep = Keep::kNothing;
  // Null: the longest regions, each on one stream, captured in global mode.
  const analyzer::Plan* plan = nullptr;
  // Whether host arguments that vary are updated, where the plan (if any) asks for it.
  bool updates = true;
  // Whether recorded results take the place of computed ones behind each region (Inputs::kGolden).
  bool isolate_regions = false;
};

struct StepLayout {
  std::vector<IssuedRegion> regions;
  std::vector<VaryingLeaf> varying;
  // Buffers of any step that keep a home by the rule of CapturedNeeds.
  std::unordered_set<int64_t> with_home;
  std::unordered_map<int64_t, int64_t> internal;  // template buffer to offset in the arena
  std::vector<int64_t> slots;                     // by operand: offset; -1 for stable ones
  std::unordered_set<int64_t> lives_on;  // template buffers that hold their content to the end
  int64_t bytes = 0;                     // of the arena
};

// Throws Error kUsage when the plan does not fit the step.
StepLayout LayOutStep(Execution& execution, const analyzer::StepTemplate& step_class,
                      const StepGraphOptions& options);

// In which graphs of the plan are captured; without one the strictest.
aclmdlRICaptureMode CaptureModeOf(const analyzer::Plan* plan);

// Bytes that an internal buffer of the template needs in any step of the class, at least 1.
int64_t InternalBytes(const analyzer::Program& program, const analyzer::StepTemplate& step_class,
                      int64_t buffer);

// Whether no leaf of the step before the place `at` touches what is brought there, so that it can
// be uploaded before the step: the content of a feed, or a recorded result.
bool IsEarly(const analyzer::Program& program, const analyzer::StepMatch& match, const Feed& feed,
             size_t at);
bool IsEarly(const analyzer::Program& program, const analyzer::StepMatch& match,
             const analyzer::TensorUse& result, size_t at);

}  // namespace acltape::replayer
