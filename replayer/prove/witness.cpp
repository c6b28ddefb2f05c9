#include "replayer/prove/witness.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analyzer/plan/plan_file.h"
#include "meaning/options.h"
#include "replayer/script/mixed_step_json.h"
#include "replayer/session.h"
#include "storage/checked_row.h"
#include "storage/query.h"

namespace acltape::replayer::prove {
namespace {

std::string TextOrEmpty(const storage::Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? "" : *text;
}

int64_t NumberIn(const storage::Cell& cell) {
  const auto* number = std::get_if<int64_t>(&cell);
  return number == nullptr ? 0 : *number;
}

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
  const storage::Table known = storage::RunQuery(
      trace, "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'witness'");
  if (known.rows.empty()) return witnesses;  // the trace has an earlier schema
  std::string sql =
      "SELECT witness_id, kind, witness.options, witness.plan_id, call_id, position, message, "
      "verdict, command, plan.name FROM witness LEFT JOIN plan ON plan.plan_id = witness.plan_id";
  if (witness_id != 0) sql += " WHERE witness_id = " + std::to_string(witness_id);
  for (const std::vector<storage::Cell>& row :
       storage::RunQuery(trace, sql + " ORDER BY witness_id").rows) {
    StoredWitness witness;
    witness.witness_id = NumberIn(row[0]);
    witness.row.kind = TextOrEmpty(row[1]);
    witness.row.options = TextOrEmpty(row[2]);
    witness.row.plan_id = NumberIn(row[3]);
    witness.row.call_id = NumberIn(row[4]);
    witness.row.position = static_cast<int>(NumberIn(row[5]));
    witness.row.message = TextOrEmpty(row[6]);
    witness.row.verdict = TextOrEmpty(row[7]);
    witness.row.command = TextOrEmpty(row[8]);
    witness.plan_name = TextOrEmpty(row[9]);
    witnesses.push_back(std::move(witness));
  }
  return witnesses;
}

std::shared_ptr<const ChosenPlan> PlanOfWitness(const storage::Reader& trace,
                                                const StoredWitness& witness) {
  if (witness.row.plan_id == 0) return nullptr;
  const storage::Table plans = storage::RunQuery(
      trace, "SELECT document FROM plan WHERE plan_id = " + std::to_string(witness.row.plan_id));
  if (plans.rows.empty()) {
    throw Error(ErrorKind::kTrace, trace.path() + " no longer holds the plan of witness " +
                                       std::to_string(witness.witness_id) +
                                       "; name its file with @plan"_cli);
  }
  auto chosen = std::make_shared<ChosenPlan>();
  chosen->plan = analyzer::plan::ParsePlan(TextOrEmpty(plans.rows[0][0]));
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
  });
  if (run.outcome.failure) {
    run.verdict = run.outcome.failure->Verdict();
    run.message = run.outcome.failure->message;
  } else if (run.outcome.compared == 0) {
    run.verdict = "not compared";
    run.message = "the step leaves no result that the trial could look at";
  } else {
    run.verdict = "equal";
    run.message = std::to_string(run.outcome.compared) + " outputs equal those of eager runs";
  }
  return run;
}

}  // namespace acltape::replayer::prove
