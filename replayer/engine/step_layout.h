// The layout of one set of captured graphs for a class of steps, before it has memory: the regions
// with the streams of their leaves, the treatment of varying arguments, and the offset of every
// buffer of the template step in one arena.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/program/step_template.h"
#include "replayer/engine/execution.h"
#include "replayer/engine/plan_issue.h"
#include "replayer/engine/varying.h"

namespace acltape::replayer {

// Returns the buffers that must keep a home in a captured replay: those that leaves outside the
// class use, those that several steps use, and the stable operands of the class.
std::vector<HomeMemory::Need> CapturedNeeds(const analyzer::Program& program,
                                            const analyzer::StepTemplate& step_class,
                                            const Contents& contents);

// The results that can still be read after a step. Buffers share memory if the graphs keep their
// lives apart. A buffer that must be kept shares none, and a result that the step overwrites gets a
// shadow.
enum class Keep {
  kNothing,      // except what other steps use
  kStepOutputs,  // also results that nothing in the step uses
  kEverything,
};

struct StepGraphOptions {
  Keep keep = Keep::kNothing;
  // Null: the longest regions are captured, each on one stream and in global mode.
  const analyzer::plan::Plan* plan = nullptr;
  // True if host arguments that vary are updated, where the plan (if there is one) asks for it.
  bool updates = true;
  // True if recorded results replace the computed ones after each region (Inputs::kGolden).
  bool isolate_regions = false;
};

struct StepLayout {
  std::vector<IssuedRegion> regions;
  std::vector<VaryingLeaf> varying;
  // Buffers of any step that CapturedNeeds gives a home.
  std::unordered_set<int64_t> with_home;
  std::unordered_map<int64_t, int64_t> internal;  // offset in the arena, by template buffer
  std::vector<int64_t> slots;                     // offset by operand; -1 if it is stable
  // Template buffers that keep their content to the end of the step.
  std::unordered_set<int64_t> lives_on;
  int64_t bytes = 0;  // size of the arena
};

// Throws Error kUsage if the plan does not fit the step.
StepLayout LayOutStep(Execution& execution, const analyzer::StepTemplate& step_class,
                      const StepGraphOptions& options);

// Returns the mode in which the graphs of the plan are captured. Without a plan it is the strictest
// mode.
aclmdlRICaptureMode CaptureModeOf(const analyzer::plan::Plan* plan);

// Returns the most bytes that an internal buffer of the template needs in any step of the class, at
// least 1.
int64_t InternalBytes(const analyzer::Program& program, const analyzer::StepTemplate& step_class,
                      int64_t buffer);

// Returns true if a feed or a recorded result can be uploaded before the step. This holds if no
// leaf before the place `place` touches its bytes.
bool IsEarly(const analyzer::Program& program, const analyzer::StepMatch& match, const Feed& feed,
             size_t place);
bool IsEarly(const analyzer::Program& program, const analyzer::StepMatch& match,
             const analyzer::TensorUse& result, size_t place);

}  // namespace acltape::replayer
