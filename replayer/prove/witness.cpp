#include "replayer/prove/witness.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "analyzer/plan/plan_file.h"
#include "meaning/options.h"
#include "replayer/script/mixed_step_json.h"
#include "replayer/session.h"
#include "storage/checked_row.h"
#include "storage/database.h"

namespace acltape::replayer::prove {
namespace {

// A position counts arguments, and -1 is none.
constexpr int64_t kMostPosition = std::numeric_limits<int>::max();

}  // namespace

std::string WitnessText(const WitnessedTrial& witnessed) {
  return nlohmann::json{{"number", witnessed.trial.number},
                        {"jitter", witnessed.trial.jitter},
                        {"ahead", witnessed.trial.ahead},
                        {"standard", witnessed.standard},
                        {"step", script::MixedStepJson(witnessed.trial.step)}}
      .dump();
}

WitnessedTrial ParseWitness(const std::string& kind, const std::string& options) {
  try {
    const nlohmann::json json = nlohmann::json::parse(options);
    WitnessedTrial witnessed;
    witnessed.trial.kind = ParseTrialKinds(kind).at(0);
    witnessed.trial.number = json.at("number");
    witnessed.trial.jitter = json.at("jitter");
    witnessed.trial.ahead = json.value("ahead", 0);  // older witnesses have none
    witnessed.standard = json.at("standard");
    witnessed.trial.step = script::ParseMixedStep(json.at("step"));
    return witnessed;
  } catch (const std::exception&) {
    throw Error(ErrorKind::kTrace, "the options of a witness of kind " + storage::ShownValue(kind) +
                                       " are not as acltape writes them; run acltape prove again "
                                       "to find it anew");
  }
}

std::vector<StoredWitness> ReadWitnesses(const storage::Reader& trace, int64_t witness_id) {
  std::vector<StoredWitness> witnesses;
  storage::Database& database = trace.database();
  if (database.Integer("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = "
                       "'witness'") == 0) {
    return witnesses;  // the trace has an earlier schema
  }
  storage::Statement rows(
      database,
      "SELECT witness_id, kind, witness.options, witness.plan_id, call_id, position, message, "
      "verdict, command, plan.name FROM witness LEFT JOIN plan ON plan.plan_id = witness.plan_id "
      "WHERE ?1 = 0 OR witness_id = ?1 ORDER BY witness_id");
  rows.Bind(1, witness_id);
  const storage::CheckedRow row(rows, trace.path(), "witness");
  while (rows.Next()) {
    StoredWitness witness;
    witness.witness_id = row.Id("witness_id");
    witness.row.kind = row.TextOrNull(1, "kind");
    witness.row.options = row.TextOrNull(2, "options");
    witness.row.plan_id = row.IntegerOrNull(3, "plan_id", 0, storage::kMostId);
    witness.row.call_id = row.IntegerOrNull(4, "call_id", 0, storage::kMostId);
    witness.row.position = static_cast<int>(row.IntegerOrNull(5, "position", -1, kMostPosition));
    witness.row.message = row.TextOrNull(6, "message");
    witness.row.verdict = row.TextOrNull(7, "verdict");
    witness.row.command = row.TextOrNull(8, "command");
    witness.plan_name = row.TextOrNull(9, "name");
    witnesses.push_back(std::move(witness));
  }
  return witnesses;
}

std::shared_ptr<const ChosenPlan> PlanOfWitness(const storage::Reader& trace,
                                                const StoredWitness& witness) {
  if (witness.row.plan_id == 0) return nullptr;
  storage::Statement plans(trace.database(), "SELECT document FROM plan WHERE plan_id = ?");
  plans.Bind(1, witness.row.plan_id);
  if (!plans.Next()) {
    throw Error(ErrorKind::kTrace, trace.path() + " no longer holds the plan of witness " +
                                       std::to_string(witness.witness_id) +
                                       "; name its file with @plan"_cli);
  }
  auto chosen = std::make_shared<ChosenPlan>();
  chosen->plan = analyzer::plan::ParsePlan(std::string(plans.Text(0)));
  chosen->path = witness.plan_name;
  chosen->plan_id = witness.row.plan_id;
  return chosen;
}

WitnessRun RunWitness(const storage::Reader& trace, const WitnessedTrial& witnessed,
                      std::shared_ptr<const ChosenPlan> plan, const std::string& device_lib,
                      int repetitions, int64_t kept_bytes) {
  const analyzer::metrics::Standard standard =
      analyzer::metrics::Standard::Load(witnessed.standard);
  const uint64_t jitter = witnessed.trial.jitter;
  if (jitter != 0) setenv("ACLTAPE_SOFT_JITTER", std::to_string(jitter).c_str(), /*overwrite=*/1);
  const int ahead = witnessed.trial.ahead;
  if (ahead != 0) setenv("ACLTAPE_SOFT_ORDER", std::to_string(ahead).c_str(), /*overwrite=*/1);
  Session session(trace, Data::kRecorded, device_lib, /*seed=*/1, nullptr);
  session.contents().KeepAtMost(kept_bytes);
  WitnessRun run;
  session.WithLowering([&](Execution& execution) {
    const analyzer::plan::Plan* chosen = plan ? &plan->plan : nullptr;
    const script::MixedStep mixed(session, execution, chosen);
    Trial trial = witnessed.trial;
    trial.step.plan = chosen;
    const auto fits = [&](const std::vector<bool>& places) {
      return places.empty() || places.size() == mixed.places();
    };
    const size_t matches = mixed.step_class().matches.size();
    bool steps_fit = trial.step.capture_match < matches;
    for (const size_t match : trial.step.run_matches) steps_fit = steps_fit && match < matches;
    if (!fits(trial.step.captured) || !fits(trial.step.executed) ||
        !fits(trial.step.on_planned_stream) || !steps_fit) {
      throw Error(ErrorKind::kUsage,
                  "the witness is of another step than the plan; name the plan that it was found "
                  "with, or one of the same step");
    }
    TrialRunner runner(session, mixed, standard, /*reference_runs=*/2);
    run.outcome = runner.Run(trial, repetitions);
    run.coverage = runner.Coverage();
  });
  if (run.outcome.failure) {
    run.verdict = run.outcome.failure->Verdict();
    run.message = run.outcome.failure->message;
  } else if (run.outcome.compared == 0) {
    run.verdict = "not compared";
    run.message = "the step leaves no result that the trial could look at";
  } else if (run.coverage.TooLittle()) {
    run.verdict = "not known";
    run.message = fmt::format(
        "{} outputs equal those of eager runs, and they tell of {} of {} "
        "leaves that computed",
        run.outcome.compared, run.coverage.covered, run.coverage.computed);
  } else {
    run.verdict = "equal";
    run.message = std::to_string(run.outcome.compared) + " outputs equal those of eager runs";
  }
  return run;
}

}  // namespace acltape::replayer::prove
