#include "replayer/script/mixed_step.h"

#include <algorithm>

#include "meaning/options.h"
#include "replayer/script/step_script.h"
#include "replayer/script/step_state.h"

namespace acltape::replayer::script {

using analyzer::LeafKind;

MixedStep::MixedStep(Session& session, Execution& execution, const analyzer::plan::Plan* plan,
                     size_t least_steps)
    : session_(session), execution_(execution), plan_(plan) {
  const analyzer::Program& program = session.program();
  if (plan == nullptr && least_steps > 1) {
    if (const std::optional<Note> refusal = session.CaptureRefusal()) {
      throw Error(ErrorKind::kUsage, refusal->message);
    }
  }
  if (program.work.steps.empty()) {
    throw Error(ErrorKind::kUsage,
                program.trace->path() +
                    " has no steps: no sequence of two operators or more repeats; mark them in "
                    "the program and record with @steps-from NAME."_cli);
  }
  class_ = &session.ClassFor(plan);
  if (class_->matches.size() < least_steps) {
    throw Error(ErrorKind::kUsage,
                "step " + std::to_string(program.work.steps[class_->step_index].step) +
                    " is like no other step of the trace; two alike are needed to tell a value "
                    "that a capture keeps from the right one");
  }
  state_ = std::make_shared<StepState>(program, *class_, session.contents());
  state_->CheckAll();
  StepGraphOptions options;
  options.plan = plan;
  const StepLayout layout = LayOutStep(execution, *class_, options);
  for (const IssuedRegion& region : layout.regions) {
    for (const IssuedLeaf& leaf : region.leaves) {
      const int64_t index = class_->leaves[leaf.place];
      if (!region.captured || program.leaves[index].kind != LeafKind::kKernel) continue;
      if (execution.lowered().IsSubstituted(index)) continue;
      if (execution.lowered().lowerings[index].invocations.empty()) continue;
      capturable_.push_back(leaf.place);
    }
  }
}

int64_t MixedStep::CallAt(size_t place) const {
  return session_.program().leaves[class_->leaves.at(place)].call.call_id;
}

std::string MixedStep::Describe(size_t place) const {
  return session_.program().Describe(class_->leaves.at(place));
}

int64_t MixedStep::PlannedCallAt(size_t place) const {
  const analyzer::Program& program = session_.program();
  for (const analyzer::StepMatch& match : class_->matches) {
    if (plan_ == nullptr || program.work.steps[match.step_index].step != plan_->step) continue;
    return program.leaves[match.leaves.at(place)].call.call_id;
  }
  return CallAt(place);
}

size_t MixedStep::PlaceOf(int64_t call_id) const {
  const analyzer::Program& program = session_.program();
  for (const analyzer::StepMatch& match : class_->matches) {
    for (size_t place = 0; place < match.leaves.size(); ++place) {
      if (program.leaves[match.leaves[place]].call.call_id == call_id) return place;
    }
  }
  throw Error(ErrorKind::kUsage, "call " + std::to_string(call_id) +
                                     " is no active call (kernel, random source or host read) of "
                                     "the steps that are alike");
}

void MixedStep::Check(const MixedStepOptions& options) const {
  const size_t steps = class_->matches.size();
  std::vector<size_t> asked = options.run_matches;
  asked.push_back(options.capture_match);
  for (const size_t match : asked) {
    if (match < steps) continue;
    throw Error(ErrorKind::kUsage, "step number " + std::to_string(match) +
                                       " of the class was asked for, which has " +
                                       std::to_string(steps) + " steps");
  }
  for (const std::vector<bool>* set :
       {&options.captured, &options.executed, &options.on_planned_stream}) {
    if (set->empty() || set->size() == places()) continue;
    throw Error(ErrorKind::kUsage, "a set of calls has " + std::to_string(set->size()) +
                                       " places, the step " + std::to_string(places()));
  }
}

Script MixedStep::Build(const MixedStepOptions& options) const {
  Check(options);
  return StepScript(session_, execution_, *class_, state_, workspace_bytes_, options).Build();
}

std::vector<MemoryReuse> MixedStep::Reuses(const MixedStepOptions& options) const {
  Check(options);
  return StepScript(session_, execution_, *class_, state_, workspace_bytes_, options).Reuses();
}

}  // namespace acltape::replayer::script
