// The proof harness: healthy plans hold, each fault is caught by the trials that are for it, and
// witnesses tell again what they told.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "replayer/prove/proof.h"
#include "replayer/prove/witness.h"
#include "replayer/script/fault_sites.h"
#include "storage/query.h"
#include "tests/replayer/mixed_step_fixture.h"
#include "tests/storage/query_rows.h"

namespace acltape::replayer {
namespace {

using test::Add;
using test::Floats;
using test::In;
using test::Int;
using test::MixedStepRun;
using test::Numbers;
using test::Out;
using test::Real;
using test::Recorded;
using test::Tensor;
using test::TraceBuilder;

prove::ProofReport Prove(const Recorded& recorded, const prove::ProofOptions& options) {
  storage::Reader reader(recorded.path(), storage::Reader::Mode::kReadWrite);
  storage::Results results(reader);
  return prove::ProvePlan(reader, options, &results);
}

// Returns the changes of the command that was given.
std::string ChangesOf(const meaning::OptionChanges& changes) {
  std::string with = "prove";
  std::string without;
  for (const meaning::OptionChange& change : changes) {
    std::string& text = change.given ? with : without;
    text += " " + std::string(change.option->spelling);
    if (change.value) text += " " + *change.value;
  }
  return without.empty() ? with : with + " without" + without;
}

prove::ProofReport ProveKinds(const Recorded& recorded, const std::string& kinds,
                              std::vector<script::PlantedFault> faults = {}) {
  prove::ProofOptions options;
  options.kinds = prove::ParseTrialKinds(kinds);
  options.faults = std::move(faults);
  options.command = meaning::GivenCommand(ChangesOf);
  return Prove(recorded, options);
}

std::string Explain(const prove::ProofReport& report) {
  std::string text;
  for (const prove::ProofFailure& failure : report.failures) {
    text += "\n" + std::string(prove::RowOf(failure.failure.trial.kind).name) + ": " +
            failure.failure.message;
  }
  return text;
}

std::shared_ptr<ChosenPlan> Chosen(analyzer::plan::Plan plan) {
  auto chosen = std::make_shared<ChosenPlan>();
  chosen->plan = std::move(plan);
  chosen->path = "plan.json";
  return chosen;
}

Recorded Scheduled() {
  return test::Diamond(4, [](int step) { return static_cast<float>(step + 1); });
}

// Sums of doubled and negated values, six times, so that every kind of fault finds a place.
Recorded ProvenLadder() {
  return Recorded(3, [](TraceBuilder& trace, int step) {
    Tensor a = trace.NewTensor({64});
    Floats content = Numbers(64, step + 1);
    for (int i = 0; i < 6; ++i) {
      const Tensor b = trace.NewTensor({64});
      const Tensor c = trace.NewTensor({64});
      const Tensor d = trace.NewTensor({64});
      const Floats twice = test::Product(content, {2});
      const Floats negative = test::Product(content, {-1});
      trace.Call("aten::mul.Scalar", {In("self", a), Real("other", 2)}, {Out("out", b)});
      if (i == 0) trace.Before(a, content);
      trace.After("out", twice);
      trace.Call("aten::neg", {In("self", a)}, {Out("out", c)}).After("out", negative);
      Add(trace, b, c, d);
      content = test::Sum(twice, negative);
      trace.After("out", content);
      a = d;
    }
  });
}

// --- Healthy plans ---

struct Healthy {
  const char* name;
  Recorded (*record)();
  bool with_plan = false;  // two streams
};

class HealthyPlan : public testing::TestWithParam<Healthy> {};

INSTANTIATE_TEST_SUITE_P(Programs, HealthyPlan,
                         testing::Values(Healthy{"Updates", Scheduled},
                                         Healthy{"Streams", Scheduled, true},
                                         Healthy{"State", [] { return test::Training(4); }},
                                         Healthy{"Cache", [] { return test::Cache(6); }},
                                         Healthy{"Ladder", ProvenLadder}),
                         [](const auto& own) { return std::string(own.param.name); });

TEST_P(HealthyPlan, HoldsInEveryTrial) {
  const Recorded recorded = GetParam().record();
  prove::ProofOptions options;
  if (GetParam().with_plan) options.plan = Chosen(test::DiamondPlan(0, /*updates=*/true));
  const prove::ProofReport report = Prove(recorded, options);
  EXPECT_TRUE(report.failures.empty()) << Explain(report);
  EXPECT_TRUE(report.flaky.empty());
  EXPECT_EQ(report.ExitCode(), 0);
  ASSERT_EQ(report.kinds.size(), prove::TrialKinds().size());
  for (const prove::KindTally& tally : report.kinds) {
    const std::string name(prove::RowOf(tally.kind).name);
    if (tally.note.empty()) {
      EXPECT_GT(tally.trials, 0) << name;
      EXPECT_GT(tally.compared, 0) << name;
    } else if (tally.kind == prove::TrialKind::kAhead) {
      EXPECT_FALSE(GetParam().with_plan) << tally.note;
    } else {
      EXPECT_EQ(report.graphs, 1) << name << ": " << tally.note;
    }
  }
  // A finding says of each kind that was tried that no trial failed.
  storage::Reader reader(recorded.path());
  const storage::QueryRows claims = storage::AllRows(
      reader, "SELECT count(*) FROM finding WHERE rule LIKE 'PROVE-%' AND verdict = 'refuted'");
  EXPECT_EQ(std::get<int64_t>(claims.rows[0][0]),
            std::count_if(report.kinds.begin(), report.kinds.end(),
                          [](const prove::KindTally& tally) { return tally.trials > 0; }));
  EXPECT_TRUE(prove::ReadWitnesses(reader).empty());
}

// --- Faults ---

struct Caught {
  script::FaultKind kind;
  const char* by;  // the trials that are for it
};

std::ostream& operator<<(std::ostream& out, const Caught& row) {
  return out << script::FaultKindName(row.kind) << " by " << row.by;
}

class FaultIsCaught : public testing::TestWithParam<Caught> {};

INSTANTIATE_TEST_SUITE_P(Kinds, FaultIsCaught,
                         testing::Values(Caught{script::FaultKind::kWrongBits, "plain"},
                                         Caught{script::FaultKind::kMissingWait, "jitter"},
                                         Caught{script::FaultKind::kStaleInput, "capture_at"},
                                         Caught{script::FaultKind::kStaleInput, "order"},
                                         Caught{script::FaultKind::kBakedScalar, "capture_at"},
                                         Caught{script::FaultKind::kOverwrittenOutput, "plain"},
                                         Caught{script::FaultKind::kOverwrittenOutput, "poison"},
                                         Caught{script::FaultKind::kReusedWorkspace, "plain"},
                                         Caught{script::FaultKind::kMovedAddress, "relocate"}),
                         [](const auto& own) {
                           return std::string(script::FaultKindName(own.param.kind)) + "_" +
                                  own.param.by;
                         });

TEST_P(FaultIsCaught, ByTheTrialsThatAreForItAndTheWitnessFailsAgain) {
  ASSERT_TRUE(test::kJitter);
  const Recorded recorded = ProvenLadder();
  std::vector<script::PlantedFault> faults;
  MixedStepRun(recorded).With([&](const script::MixedStep& step) {
    faults = script::PossibleFaults(step, GetParam().kind);
  });
  ASSERT_FALSE(faults.empty());
  // Only some of the races change a result, so each is tried until one does.
  const bool race = GetParam().kind == script::FaultKind::kMissingWait;
  if (!race) faults = {faults[faults.size() / 2]};
  script::PlantedFault fault;
  prove::ProofReport report;
  for (size_t i = 0; i < faults.size() && report.failures.empty(); ++i) {
    fault = faults[i];
    report = ProveKinds(recorded, GetParam().by, {fault});
  }
  ASSERT_FALSE(report.failures.empty()) << script::FaultText(fault);
  EXPECT_EQ(report.ExitCode(), 1);

  storage::Reader reader(recorded.path());
  const std::vector<prove::StoredWitness> witnesses = prove::ReadWitnesses(reader);
  ASSERT_EQ(witnesses.size(), report.failures.size());
  const prove::StoredWitness& witness = witnesses.front();
  EXPECT_EQ(witness.row.kind, GetParam().by);
  EXPECT_EQ(witness.row.command,
            "prove --witness " + std::to_string(witness.witness_id) +
                " without --plan --allow-races --only --trials --seed --standard --plant --budget "
                "--reference-runs");
  const prove::WitnessedTrial witnessed =
      prove::ParseWitness(witness.row.kind, witness.row.options);
  EXPECT_EQ(witnessed.trial.step.faults, std::vector<script::PlantedFault>{fault});
  const prove::WitnessRun again = prove::RunWitness(reader, witnessed, nullptr, "", 10);
  ASSERT_TRUE(again.outcome.failure) << witness.row.message;
  if (!race) {
    EXPECT_EQ(again.verdict, "different");
    EXPECT_EQ("with a planted fault: " + again.message.substr(0, again.message.find(';')),
              witness.row.message.substr(0, witness.row.message.find(';')));
  }

  prove::WitnessedTrial repaired = witnessed;
  repaired.trial.step.faults.clear();
  const prove::WitnessRun healthy = prove::RunWitness(reader, repaired, nullptr, "", 3);
  EXPECT_EQ(healthy.verdict, "equal") << healthy.message;
}

// Memory that the step reads though nothing has written it: half of a buffer.
Recorded ReadsWhatNobodyWrote() {
  return Recorded(3, [](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({4});
    const Tensor whole = trace.NewTensor({8});
    const Tensor half = TraceBuilder::View(whole, {4}, {1});
    const Floats relu = test::Relu(Numbers(4, step));
    trace.Call("aten::relu", {In("self", x)}, {Out("out", half)})
        .Before(x, Numbers(4, step))
        .After("out", relu);
    Floats sum = test::Sum(relu, relu);
    sum.resize(8, 0);
    Add(trace, whole, whole, trace.NewTensor({8}));
    trace.After("out", sum);
  });
}

TEST(Prove, OnlyPoisonShowsAReadOfMemoryThatNobodyWrote) {
  const Recorded recorded = ReadsWhatNobodyWrote();
  const prove::ProofReport report = ProveKinds(recorded, "plain,poison,relocate,order,capture_at");
  std::set<std::string> failed;
  for (const prove::KindTally& tally : report.kinds) {
    if (tally.failures > 0) failed.emplace(prove::RowOf(tally.kind).name);
  }
  EXPECT_EQ(failed, std::set<std::string>{"poison"}) << Explain(report);
  EXPECT_NE(Explain(report).find("nan"), std::string::npos) << Explain(report);
}

// --- Plans ---

TEST(Prove, APlanThatLacksAWaitFailsUnderJitterAndItsWitnessHoldsWithTheWait) {
  ASSERT_TRUE(test::kJitter);
  const Recorded recorded = Scheduled();
  analyzer::plan::Plan racy = test::DiamondPlan(0, /*updates=*/true);
  racy.regions[0].waits.clear();
  prove::ProofOptions options;
  options.plan = Chosen(racy);
  options.kinds = prove::ParseTrialKinds("jitter");
  options.trials = 8;
  const prove::ProofReport report = Prove(recorded, options);
  ASSERT_FALSE(report.failures.empty());
  const prove::TrialFailure& failure = report.failures.front().failure;
  EXPECT_NE(failure.first.call_id, 0);

  storage::Reader reader(recorded.path());
  const prove::StoredWitness witness = prove::ReadWitnesses(reader).front();
  const prove::WitnessedTrial witnessed =
      prove::ParseWitness(witness.row.kind, witness.row.options);
  EXPECT_TRUE(prove::RunWitness(reader, witnessed, options.plan, "", 20).outcome.failure);
  const auto repaired = Chosen(test::DiamondPlan(0, /*updates=*/true));
  EXPECT_EQ(prove::RunWitness(reader, witnessed, repaired, "", 20).verdict, "equal");
}

TEST(Prove, APlanThatForgetsAnUpdateFailsWhereAnotherStepIsCaptured) {
  const Recorded recorded = Scheduled();
  prove::ProofOptions options;
  options.plan = Chosen(test::DiamondPlan(0, /*updates=*/false));
  options.kinds = prove::ParseTrialKinds("capture_at");
  const prove::ProofReport report = Prove(recorded, options);
  ASSERT_EQ(report.failures.size(), 4u) << Explain(report);
  const prove::TrialFailure& failure = report.failures.front().failure;
  EXPECT_EQ(failure.Verdict(), "different");
  EXPECT_EQ(failure.first.op, "aten::mul_.Scalar");
  EXPECT_EQ(failure.failed_runs, failure.runs);
  EXPECT_NE(failure.message.find("captured at step 0, run at step 3"), std::string::npos)
      << failure.message;
}

// --- Trials ---

prove::TrialGround Ground(size_t matches) {
  prove::TrialGround ground;
  ground.matches = matches;
  ground.places = 6;
  ground.graphs = {{0, 1}, {3, 4, 5}};
  return ground;
}

TEST(Trials, AreTheSameForTheSameSeedWhicheverOthersAreAskedFor) {
  const std::vector<prove::TrialKind> both = prove::ParseTrialKinds("relocate,churn");
  const std::vector<prove::Trial> all = prove::MakeTrials(Ground(9), both, 3, 4);
  const std::vector<prove::Trial> alone =
      prove::MakeTrials(Ground(9), {prove::TrialKind::kChurn}, 3, 4);
  ASSERT_EQ(all.size(), 6u);
  ASSERT_EQ(alone.size(), 3u);
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(all[2 * i + 1].kind, prove::TrialKind::kChurn) << "kinds take turns";
    EXPECT_EQ(all[2 * i + 1].step.run_matches, alone[i].step.run_matches);
  }
}

TEST(Trials, CaptureAndRunStepsAtBothEnds) {
  const std::vector<prove::Trial> trials =
      prove::MakeTrials(Ground(9), {prove::TrialKind::kCaptureAt}, 8, 1);
  EXPECT_EQ(trials[0].step.capture_match, 0u);
  EXPECT_EQ(trials[0].step.run_matches, std::vector<size_t>{8});
  EXPECT_EQ(trials[1].step.capture_match, 8u);
  EXPECT_EQ(trials[1].step.run_matches, std::vector<size_t>{0});
  for (const prove::Trial& trial : trials) {
    EXPECT_NE(trial.step.capture_match, trial.step.run_matches[0]);
  }
}

TEST(Trials, OrdersRepeatAStepAfterAnotherAndGoBackwards) {
  const std::vector<prove::Trial> trials =
      prove::MakeTrials(Ground(2), {prove::TrialKind::kOrder}, 3, 1);
  EXPECT_EQ(trials[0].step.run_matches, (std::vector<size_t>{0, 1, 0}));
  EXPECT_EQ(trials[1].step.run_matches, (std::vector<size_t>{1, 0}));
  EXPECT_EQ(trials[2].step.run_matches, (std::vector<size_t>{1, 1}));
}

TEST(Trials, OneGraphAloneIsCapturedPerTrial) {
  const std::vector<prove::Trial> trials =
      prove::MakeTrials(Ground(3), {prove::TrialKind::kAlone}, 4, 1);
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[1].step.captured, (std::vector<bool>{false, false, false, true, true, true}));
}

TEST(Trials, OfUnknownKindsAreRefusedWithTheWords) {
  try {
    prove::ParseTrialKinds("order,odd");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'odd' is no kind of trial; there are plain, poison"),
              std::string::npos)
        << error.what();
  }
}

TEST(Witness, IsReadAsItWasWritten) {
  prove::WitnessedTrial witnessed;
  witnessed.trial = prove::MakeTrials(Ground(5), {prove::TrialKind::kAlone}, 2, 9)[1];
  witnessed.trial.jitter = 12;
  witnessed.trial.ahead = 3;
  witnessed.trial.step.stress.churn_bytes = 4096;
  witnessed.trial.step.remedies.one_stream = true;
  witnessed.trial.step.faults = {script::ParseFault("missing_wait@7:5")};
  witnessed.standard = "triple";
  const std::string text = prove::WitnessText(witnessed);
  const prove::WitnessedTrial read = prove::ParseWitness("alone", text);
  EXPECT_EQ(prove::WitnessText(read), text);
  EXPECT_EQ(read.trial.step.captured, witnessed.trial.step.captured);
  EXPECT_EQ(read.trial.jitter, 12u);
  EXPECT_EQ(read.trial.ahead, 3);
  EXPECT_EQ(read.trial.step.faults, witnessed.trial.step.faults);
  EXPECT_THROW(prove::ParseWitness("alone", "{}"), Error);
}

}  // namespace
}  // namespace acltape::replayer
