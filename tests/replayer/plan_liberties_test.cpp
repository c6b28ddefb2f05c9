// Side streams and reused memory of a captured step: taken away one by one they change nothing but
// the order or the place, and what goes wrong with them is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "replayer/bisect/captured_work.h"
#include "replayer/bisect/plan_bisection.h"
#include "replayer/bisect/plan_elements.h"
#include "replayer/bisect/plan_evidence.h"
#include "replayer/script/mixed_step_json.h"
#include "tests/replayer/mixed_step_fixture.h"

namespace acltape::replayer {
namespace {

using test::MixedStepRun;
using test::Recorded;

// Five rungs: b = 3 a, c = -a, a = b + c. The results of a rung are used up in the next one.
Recorded Ladder(int rungs = 5) {
  return Recorded(3, [rungs](test::TraceBuilder& trace, int step) {
    test::Tensor a = trace.NewTensor({64});
    test::Floats content = test::Numbers(64, step + 1);
    for (int i = 0; i < rungs; ++i) {
      const test::Tensor b = trace.NewTensor({64});
      const test::Tensor c = trace.NewTensor({64});
      const test::Tensor d = trace.NewTensor({64});
      trace.Call("aten::mul.Scalar", {test::In("self", a), test::Real("other", 3)},
                 {test::Out("out", b)});
      if (i == 0) trace.Before(a, content);
      const test::Floats thrice = test::Product(content, {3});
      trace.After("out", thrice);
      trace.Call("aten::neg", {test::In("self", a)}, {test::Out("out", c)});
      const test::Floats negative = test::Product(content, {-1});
      trace.After("out", negative);
      Add(trace, b, c, d);
      content = test::Sum(thrice, negative);
      trace.After("out", content);
      a = d;
    }
  });
}

// The negations of step 1 on a side stream. Of a rung `without` (0: none) the sum does not wait.
analyzer::plan::Plan LadderPlan(int without = 0, int64_t rungs = 5) {
  analyzer::plan::Plan plan;
  plan.step = 1;
  plan.first_call = 3 * rungs + 1;
  plan.last_call = 6 * rungs;
  plan.streams = 2;
  analyzer::plan::PlanRegion region;
  region.captured = true;
  region.first_call = plan.first_call;
  region.last_call = plan.last_call;
  int event = 0;
  for (int i = 0; i < rungs; ++i) {
    const int64_t first = plan.first_call + int64_t{3} * i;
    for (int64_t call = first; call < first + 3; ++call) {
      region.placements.push_back({call, call == first + 1 ? 1 : 0, ""});
    }
    if (i > 0) region.waits.push_back({first - 1, first + 1, event++});
    if (i + 1 != without) region.waits.push_back({first + 1, first + 2, event++});
  }
  plan.regions.push_back(region);
  return plan;
}

script::MixedStepOptions Executed(const analyzer::plan::Plan* plan, int times = 1) {
  script::MixedStepOptions options;
  options.plan = plan;
  options.run_matches.clear();
  for (int i = 0; i < times; ++i) options.run_matches.push_back(1 + i % 2);
  return options;
}

TEST(PlanLiberties, AnySetOfKeptStreamsAndReusesGivesTheRecordedResults) {
  ASSERT_TRUE(test::kJitter);
  const Recorded recorded = Ladder();
  const analyzer::plan::Plan plan = LadderPlan();
  MixedStepRun run(recorded, &plan);
  run.With([&](const script::MixedStep& step) {
    std::mt19937 random(13);
    const std::vector<script::MemoryReuse> reuses = step.Reuses(Executed(&plan));
    ASSERT_FALSE(reuses.empty());
    for (int i = 0; i < 30; ++i) {
      script::MixedStepOptions options = Executed(&plan, 4);
      options.on_planned_stream.assign(step.places(), false);
      for (size_t place = 0; place < step.places(); ++place) {
        options.on_planned_stream[place] = random() % 2 == 0;
      }
      options.kept_reuses.emplace();
      for (const script::MemoryReuse& reuse : reuses) {
        if (random() % 2 == 0) options.kept_reuses->Add(reuse);
      }
      options.stress.poison_gaps = i % 2 == 0;
      options.watch = i % 3 == 0 ? script::Watch::kEveryResult : script::Watch::kStepOutputs;
      EXPECT_EQ(run.Differs(step, options), "") << "set " << i;
    }
  });
}

TEST(PlanLiberties, AReuseThatIsNotKeptLiesWhereNothingElseLies) {
  const Recorded recorded = Ladder();
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    const script::MixedStepOptions all = Executed(nullptr);
    const std::vector<script::MemoryReuse> reuses = step.Reuses(all);
    const auto graph_bytes = [&](const script::MixedStepOptions& options) {
      for (const ScriptBlock& block : step.Build(options).blocks) {
        if (block.name == "graph") return block.bytes;
      }
      return int64_t{0};
    };
    script::MixedStepOptions kept = all;
    kept.kept_reuses.emplace();
    int64_t bytes = graph_bytes(all);
    size_t buffers = 0;
    for (const script::MemoryReuse& reuse : reuses) {
      buffers += reuse.what == script::MemoryReuse::What::kBuffer ? 1 : 0;
      EXPECT_NE(reuse.id, reuse.over_id);
      EXPECT_LT(reuse.over_place, reuse.place);
    }
    ASSERT_GT(buffers, 3u);
    EXPECT_EQ(graph_bytes(kept), bytes + static_cast<int64_t>(buffers) * 256)
        << "64 floats for each buffer";
    for (const script::MemoryReuse& reuse : reuses) kept.kept_reuses->Add(reuse);
    EXPECT_EQ(graph_bytes(kept), bytes);
    EXPECT_EQ(step.Reuses(kept).size(), reuses.size()) << "what is kept does not decide";
  });
}

TEST(PlanLiberties, AMissingWaitOfThePlanIsFoundOnItsStreamAndNamed) {
  ASSERT_TRUE(test::kJitter);
  const Recorded recorded = Ladder();
  const analyzer::plan::Plan plan = LadderPlan(/*without=*/3);
  MixedStepRun run(recorded, &plan);
  run.With([&](const script::MixedStep& step) {
    const auto races = [&](const std::vector<bool>& kept) {
      script::MixedStepOptions options = Executed(&plan);
      options.on_planned_stream = kept;
      return bisect::FindScriptRaces(step, step.Build(options));
    };
    std::vector<bool> kept(step.places(), false);
    EXPECT_TRUE(races(kept).empty()) << "one stream has no races";
    const std::vector<bisect::ScriptRace> found = races({});
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].first, 7u);
    EXPECT_EQ(found[0].second, 8u);
    EXPECT_TRUE(found[0].first_writes);
    kept[7] = true;
    EXPECT_FALSE(races(kept).empty());
    kept = std::vector<bool>(step.places(), true);
    kept[7] = false;
    EXPECT_TRUE(races(kept).empty());

    bisect::StepBisectionOptions options;
    options.elements = bisect::Elements::kStreams;
    options.experiment.step = Executed(&plan, 2);
    options.experiment.executions = 20;
    const bisect::BisectionReport report = bisect::BisectPlan(step, options, nullptr);
    ASSERT_EQ(report.ExitCode(), 1) << report.Verdict();
    EXPECT_EQ(report.found[0].descriptions[0],
              "stream 1 of region 0, 5 calls from call 2 to call 14");
    EXPECT_EQ(report.found[0].classification->cause, bisect::CauseClass::kOrdering);
    EXPECT_EQ(report.found[0].narrowed,
              "1 of the 5 calls are enough, the others on the main stream: 8");
    EXPECT_NE(report.found[0].evidence[0].find(
                  "call 9 aten::add.Tensor does not wait for call 8 aten::neg, though it reads "
                  "what the first writes"),
              std::string::npos)
        << report.found[0].evidence[0];
    EXPECT_NE(report.found[0].evidence[0].find("{\"record_after\": 23, \"wait_before\": 24}"),
              std::string::npos)
        << "in the calls of the step that the plan names: " << report.found[0].evidence[0];
    EXPECT_TRUE(script::ParseMixedStep(nlohmann::json::parse(report.found[0].experiment))
                    .on_planned_stream[7]);
  });
}

TEST(PlanLiberties, APlantedMissingWaitBelongsToTheStreamOfItsCall) {
  const Recorded recorded = Ladder();
  const analyzer::plan::Plan plan = LadderPlan();
  MixedStepRun run(recorded, &plan);
  run.With([&](const script::MixedStep& step) {
    script::MixedStepOptions options = Executed(&plan);
    options.faults = {script::ParseFault("missing_wait@24:23")};
    options.on_planned_stream = std::vector<bool>(step.places(), true);
    EXPECT_FALSE(bisect::FindScriptRaces(step, step.Build(options)).empty());
    options.on_planned_stream[7] = false;
    EXPECT_TRUE(bisect::FindScriptRaces(step, step.Build(options)).empty());
    options.faults = {script::ParseFault("missing_wait@24:22")};
    try {
      step.Build(options);
      FAIL() << "both calls are on the main stream";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("both calls on the main stream"), std::string::npos);
    }
  });
}

struct MemoryFault {
  const char* fault;
  const char* found;
  const char* evidence;
};

TEST(PlanLiberties, AFaultInMemoryIsTheReuseThatItMakes) {
  const Recorded recorded = Ladder();
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    for (const MemoryFault& row :
         {MemoryFault{"overwritten_output@5:4", "of call 5 aten::neg, where buffer",
                      "call 5 aten::neg writes bytes"},
          MemoryFault{"reused_workspace@8:7", "the workspace of call 8 aten::neg, where buffer",
                      "call 8 aten::neg has its workspace on bytes"}}) {
      SCOPED_TRACE(row.fault);
      bisect::StepBisectionOptions options;
      options.elements = bisect::Elements::kBuffers;
      options.experiment.step = Executed(nullptr, 2);
      options.experiment.step.faults = {script::ParseFault(row.fault)};
      const bisect::BisectionReport report = bisect::BisectPlan(step, options, nullptr);
      ASSERT_EQ(report.ExitCode(), 1) << report.Verdict();
      const bisect::FoundCause& found = report.found[0];
      EXPECT_NE(found.descriptions.back().find(row.found), std::string::npos)
          << found.descriptions.back();
      EXPECT_EQ(found.classification->cause, bisect::CauseClass::kAliasing);
      ASSERT_FALSE(found.evidence.empty());
      EXPECT_EQ(found.evidence[0].find(row.evidence), 0u) << found.evidence[0];
      EXPECT_NE(found.evidence[0].find("still reads"), std::string::npos);
    }
    const Script healthy = step.Build(Executed(nullptr));
    EXPECT_TRUE(bisect::FindOverwrites(step, healthy).empty());
    EXPECT_TRUE(bisect::FindScriptRaces(step, healthy).empty());
  });
}

// The byte is put into the result right after its call, not by the call that is launched next.
TEST(PlanLiberties, AWrongByteIsNoOverwriteByTheNextCall) {
  const Recorded recorded = Ladder();
  const analyzer::plan::Plan plan = LadderPlan();
  MixedStepRun run(recorded, &plan);
  run.With([&](const script::MixedStep& step) {
    script::MixedStepOptions options = Executed(&plan);
    options.faults = {script::ParseFault("wrong_bits@18")};
    const Script script = step.Build(options);
    std::vector<std::pair<size_t, bool>> fills;  // place, whether into a result of that call
    std::vector<const bisect::Touch*> results;
    const std::vector<bisect::CapturedOperation> captured =
        bisect::CapturedOperations(step, script);
    for (const bisect::CapturedOperation& operation : captured) {
      for (const bisect::Touch& touch : operation.work.touches) {
        if (!touch.write) continue;
        if (touch.result && operation.work.place == step.PlaceOf(18)) results.push_back(&touch);
        if (touch.result) continue;
        const bool inside =
            std::any_of(results.begin(), results.end(), [&](const bisect::Touch* result) {
              return touch.block == result->block && touch.first >= result->first &&
                     touch.end <= result->end;
            });
        fills.emplace_back(operation.work.place, inside);
      }
    }
    EXPECT_EQ(fills, (std::vector<std::pair<size_t, bool>>{{step.PlaceOf(18), true}}));
    EXPECT_TRUE(bisect::FindOverwrites(step, script).empty());
    EXPECT_TRUE(bisect::FindScriptRaces(step, script).empty());
  });
}

TEST(PlanLiberties, AStepThatDiffersWithoutThemIsNotPutDownToThem) {
  const Recorded recorded = Ladder();
  const analyzer::plan::Plan plan = LadderPlan();
  MixedStepRun run(recorded, &plan);
  run.With([&](const script::MixedStep& step) {
    for (const auto& [elements, words] :
         {std::pair{bisect::Elements::kStreams, "so that concurrency is not the cause"},
          {bisect::Elements::kBuffers, "so that reused memory is not the cause"}}) {
      bisect::StepBisectionOptions options;
      options.elements = elements;
      options.bisect_command = meaning::GivenCommand([](const meaning::OptionChanges& changes) {
        return "bisect with " + changes.at(0).value.value_or("nothing");
      });
      options.experiment.step = Executed(&plan);
      options.experiment.step.faults = {script::ParseFault("wrong_bits@18")};
      const bisect::BisectionReport report = bisect::BisectPlan(step, options, nullptr);
      EXPECT_EQ(report.ExitCode(), 125);
      EXPECT_NE(report.Verdict().find(words), std::string::npos) << report.Verdict();
      EXPECT_NE(report.Verdict().find("go on with: bisect with calls"), std::string::npos)
          << report.Verdict();
    }
  });
}

TEST(PlanLiberties, AStepWithoutThemIsRefused) {
  const Recorded recorded = Ladder(1);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    for (const auto& [elements, words] :
         {std::pair{bisect::Elements::kStreams, "there are no streams to bisect"},
          {bisect::Elements::kBuffers, "there is no reuse to bisect"}}) {
      bisect::StepBisectionOptions options;
      options.elements = elements;
      options.experiment.step = Executed(nullptr);
      try {
        bisect::BisectPlan(step, options, nullptr);
        FAIL() << words;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kUsage);
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      }
    }
  });
}

TEST(PlanLiberties, SetsAreReadAsTheyWereWritten) {
  const Recorded recorded = Ladder();
  const analyzer::plan::Plan plan = LadderPlan();
  MixedStepRun run(recorded, &plan);
  run.With([&](const script::MixedStep& step) {
    std::vector<bool> stays(step.places(), false);
    EXPECT_EQ(script::KeptStreamsText(step, stays), "none");
    EXPECT_EQ(script::ParseKeptStreams(step, "none"), stays);
    stays[4] = stays[7] = true;
    EXPECT_EQ(script::KeptStreamsText(step, stays), "5,8");
    EXPECT_EQ(script::ParseKeptStreams(step, "20,23"), stays);
    EXPECT_EQ(script::ParseKeptStreams(step, "5,8"), stays);
    for (const size_t place : {1, 10, 13}) stays[place] = true;
    EXPECT_EQ(script::ParseKeptStreams(step, "0:1"), stays);
    EXPECT_EQ(script::KeptStreamsText(step, stays), "all") << "there is one side stream";
    for (const char* text : {"0:2", "0:", "16", "x", "", "20,,23", "999"}) {
      EXPECT_THROW(script::ParseKeptStreams(step, text), Error) << text;
    }

    const std::vector<script::MemoryReuse> reuses = step.Reuses(Executed(&plan));
    ASSERT_GT(reuses.size(), 1u);
    script::KeptReuses kept;
    EXPECT_EQ(script::KeptReusesText(reuses, kept), "none");
    kept.Add(reuses[1]);
    const std::string text = script::ReuseText(reuses[1]);
    EXPECT_EQ(script::KeptReusesText(reuses, kept), text);
    EXPECT_EQ(script::ParseKeptReuses(reuses, text), kept);
    EXPECT_THROW(script::ParseKeptReuses(reuses, text + ",0"), Error);
    EXPECT_EQ(script::KeptReusesText(reuses, script::ParseKeptReuses(reuses, "all")), "all");

    script::MixedStepOptions options = Executed(&plan);
    options.on_planned_stream = stays;
    options.kept_reuses = kept;
    const script::MixedStepOptions read = script::ParseMixedStep(script::MixedStepJson(options));
    EXPECT_EQ(read.on_planned_stream, stays);
    EXPECT_EQ(read.kept_reuses, kept);
    EXPECT_FALSE(script::ParseMixedStep(script::MixedStepJson(Executed(&plan))).kept_reuses);
  });
}

}  // namespace
}  // namespace acltape::replayer
