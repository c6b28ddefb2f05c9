#include "replayer/script/step_coverage.h"

#include <set>

#include "replayer/coverage.h"

namespace acltape::replayer::script {

analyzer::Coverage CoverageOf(const MixedStep& step, const std::vector<bool>& executed,
                              const Script& script,
                              const std::function<bool(const ScriptOutput&)>& counts) {
  const analyzer::Program& program = step.session().program();
  const LoweredProgram& lowered = step.execution().lowered();
  analyzer::Coverage all;
  std::set<size_t> matches;
  for (const Observation& observation : script.observations) {
    if (!matches.insert(observation.match).second) continue;
    std::set<int64_t> compared;
    for (int i = observation.first; i < observation.end; ++i) {
      const ScriptOutput& output = script.outputs[static_cast<size_t>(i)];
      if (!counts || counts(output)) compared.insert(output.leaf);
    }
    CoverageWalk walk;
    const analyzer::StepMatch& match = step.step_class().matches[observation.match];
    const std::vector<int64_t>& leaves = match.leaves;
    const analyzer::StepRange& range = program.work.steps[match.step_index];
    // Exchanges have no place in the class; what they give comes from the recording.
    size_t place = leaves.size();
    for (int64_t leaf = range.end; leaf-- > range.first;) {
      const bool active = place > 0 && leaves[place - 1] == leaf;
      if (active) --place;
      const bool runs = active && (executed.empty() || executed[place]) &&
                        !lowered.IsSubstituted(leaf) &&
                        program.leaves[leaf].kind == analyzer::LeafKind::kKernel;
      const analyzer::LeafUses& uses = program.uses[leaf];
      walk.Visit(uses.reads, uses.writes, CoverageWalk::WorkOf(*program.leaves[leaf].op, runs),
                 compared.contains(leaf));
    }
    all.computed += walk.coverage().computed;
    all.covered += walk.coverage().covered;
  }
  return all;
}

}  // namespace acltape::replayer::script
