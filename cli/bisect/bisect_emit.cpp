#include "cli/bisect/bisect_emit.h"

#include <nlohmann/json.hpp>
#include <set>

#include "replayer/script/mixed_step_json.h"

namespace acltape::cli {
namespace {

using replayer::script::MixedStep;
using replayer::script::MixedStepOptions;
using Places = std::vector<bool>;

// A race shows in some executions only.
constexpr int kRunsOfRace = 200;

// Adds the calls that read what one of `places` writes. The other call of a fault is among them.
Places WithReaders(const MixedStep& step, const Places& places) {
  const analyzer::Program& program = step.session().program();
  const std::vector<int64_t>& leaves = step.step_class().leaves;
  std::set<int64_t> written;
  Places more = places;
  for (size_t place = 0; place < leaves.size(); ++place) {
    const analyzer::LeafUses& uses = program.uses[leaves[place]];
    for (const analyzer::TensorUse& read : uses.reads) {
      if (written.count(read.tensor.buffer_id) != 0) more[place] = true;
    }
    if (!places[place]) continue;
    for (const analyzer::TensorUse& write : uses.writes) written.insert(write.tensor.buffer_id);
  }
  return more;
}

// The remedy that cured the difference; none when nothing did.
std::optional<replayer::script::Remedies> CureOf(const replayer::bisect::FoundCause& found) {
  if (!found.classification) return std::nullopt;
  for (const replayer::bisect::CounterResult& result : found.classification->results) {
    if (result.effect != replayer::bisect::Effect::kCured) continue;
    replayer::script::Remedies remedies;
    remedies.*(result.experiment->remedy->member) = true;
    return remedies;
  }
  return std::nullopt;
}

}  // namespace

replayer::reproducer::ReproducerResult EmitCause(replayer::Execution& execution,
                                                 const MixedStep& step,
                                                 const replayer::bisect::FoundCause& found,
                                                 replayer::reproducer::ReproducerOptions options) {
  MixedStepOptions suspect =
      replayer::script::ParseMixedStep(nlohmann::json::parse(found.experiment));
  suspect.plan = step.plan();
  // Watched in every result no memory is shared, which may be what the cause is about.
  if (!suspect.kept_reuses) suspect.watch = replayer::script::Watch::kEveryResult;
  options.notes = found.evidence;
  if (found.classification) {
    options.notes.insert(options.notes.begin(), found.classification->reason);
  }
  options.command = found.command;
  if (suspect.faults.empty()) options.cure = CureOf(found);
  if (found.classification && found.classification->varies) options.runs = kRunsOfRace;
  const Places alone = suspect.captured;
  replayer::reproducer::ReproducerResult result;
  for (const Places& executed : {alone, WithReaders(step, alone), Places()}) {
    suspect.executed = executed;
    result = replayer::reproducer::WriteReproducer(step.session(), execution, suspect, options);
    if (result.shows_fault || !result.built.compiled) break;
    options.overwrite = true;
  }
  return result;
}

Table ReproducerTable(const std::vector<replayer::reproducer::ReproducerResult>& results) {
  Table table(
      {"reproducer", "calls", "exit code", "with --clean", "trace's calls", "build", "run"});
  for (const replayer::reproducer::ReproducerResult& result : results) {
    const bool ran = result.built.compiled;
    table.Add({result.folder, result.calls, ran ? Cell(int64_t{result.built.fault_exit}) : Cell(),
               ran ? Cell(int64_t{result.built.clean_exit}) : Cell(result.built.why_not),
               result.trace_written ? Cell(result.trace_calls) : Cell(result.trace_note),
               result.build_command, result.run_command});
  }
  return table;
}

}  // namespace acltape::cli
