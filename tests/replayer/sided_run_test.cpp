// However the calls of a step are shared out between two sides, its results are the recorded ones,
// and each side executes its own calls alone.
#include "replayer/sides/sided_run.h"

#include <gtest/gtest.h>

#include <random>

#include "replayer/sides/call_executor.h"
#include "replayer/sides/sides_bisection.h"
#include "tests/replayer/mixed_step_fixture.h"

namespace acltape::replayer {
namespace {

using test::MixedStepRun;
using test::Recorded;

// A side with memory of its own on the device of this process. It may do calls wrong, or fail at
// one.
class LocalSide final : public sides::CallSide {
 public:
  explicit LocalSide(const char* name) : name_(name), executor_("") {}
  std::string Description() override { return executor_.Description(); }
  void Prepare(const std::vector<int64_t>& block_bytes) override {
    ++prepared;
    executor_.Prepare(block_bytes);
  }
  std::vector<sides::SideResult> Perform(const std::vector<sides::SideCommand>& commands) override {
    ++requests;
    for (const sides::SideCommand& command : commands) {
      const auto* call = std::get_if<sides::CallOperator>(&command);
      if (call == nullptr) continue;
      executed.push_back(call->call_id);
      if (on_call) on_call(call->call_id);
      if (call->call_id == fails_at) throw sides::SideFailed(name_, "has had enough");
    }
    try {
      return executor_.Perform(commands);
    } catch (const Error& failure) {
      throw sides::SideFailed(name_, failure.what());
    }
  }

  int prepared = 0;
  int requests = 0;
  int64_t fails_at = 0;
  std::vector<int64_t> executed;
  std::function<void(int64_t)> on_call;

 private:
  const char* name_;
  sides::CallExecutor executor_;
};

// Gives wrong results of one call: always, or only after another one of the same execution, or now
// and then.
class SpoilingSide final : public sides::CallSide {
 public:
  SpoilingSide() : executor_("") {}
  std::string Description() override { return executor_.Description(); }
  void Prepare(const std::vector<int64_t>& block_bytes) override { executor_.Prepare(block_bytes); }
  std::vector<sides::SideResult> Perform(const std::vector<sides::SideCommand>& commands) override {
    std::vector<sides::SideResult> results;
    for (const sides::SideCommand& command : commands) {
      for (sides::SideResult& result : executor_.Perform({command}))
        results.push_back(std::move(result));
      if (const auto* call = std::get_if<sides::CallOperator>(&command)) Spoil(*call);
    }
    return results;
  }

  int64_t spoils = 0;
  int64_t after = 0;  // 0: always
  int every = 1;
  bool armed = false;  // the other one was executed

 private:
  void Spoil(const sides::CallOperator& call) {
    armed = armed || call.call_id == after;
    if (call.call_id != spoils || (after != 0 && !armed)) return;
    if (++times_ % every != 0) return;
    const analyzer::lowering::LoweredTensor& out = call.invocation.arguments.back().tensors.at(0);
    const auto wrong = std::make_shared<const std::vector<uint8_t>>(4, uint8_t{0x42});
    executor_.Perform({sides::PutBytes{{out.memory.block(), out.layout.byte_offset}, wrong, 0, 4}});
  }

  sides::CallExecutor executor_;
  int times_ = 0;
};

struct SidedProgram {
  const char* name;
  Recorded (*record)();
};
const SidedProgram kSidedPrograms[] = {
    {"diamond", [] { return test::Diamond(4, [](int step) { return static_cast<float>(step); }); }},
    {"training", [] { return test::Training(4); }},
    {"cache", [] { return test::Cache(6); }},
    {"chain", [] { return test::Chain(3, 24); }},
};

class SidedRunOf : public testing::TestWithParam<SidedProgram> {};
INSTANTIATE_TEST_SUITE_P(Programs, SidedRunOf, testing::ValuesIn(kSidedPrograms),
                         [](const auto& own) { return std::string(own.param.name); });

TEST_P(SidedRunOf, SharedOutAtRandomGivesTheRecordedResults) {
  const Recorded recorded = GetParam().record();
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    std::vector<size_t> matches;
    for (size_t m = 0; m < step.step_class().matches.size(); ++m) matches.push_back(m);
    for (const script::Watch watch : {script::Watch::kStepOutputs, script::Watch::kEveryResult}) {
      const Script script = sides::EagerScript(step, matches, watch);
      std::vector<std::vector<std::string>> expected;
      for (const script::Observed& one :
           script::RunScript(run.session().device(), script, nullptr)) {
        expected.push_back(one.digests);
      }
      LocalSide good(sides::kGoodSide);
      LocalSide bad(sides::kBadSide);
      sides::SidedRun sided(script, {&good, &bad});
      std::mt19937_64 random(11);
      for (int round = 0; round < 12; ++round) {
        std::map<int64_t, int> side_of;
        good.executed.clear();
        bad.executed.clear();
        const uint64_t share = random() % 5;  // share of the bad side, in quarters
        size_t wanted = 0;
        const sides::SidedRun::Watcher watcher{
            [&](int64_t call) {
              return side_of.try_emplace(call, random() % 4 < share ? 1 : 0).first->second;
            },
            [](int, int, const std::string&) { return true; },
            [&](int observation, int output, const std::vector<uint8_t>& packed) {
              ++wanted;
              EXPECT_EQ(storage::DigestOf(packed.data(), packed.size()),
                        expected[observation][output - script.observations[observation].first]);
            }};
        sides::Round results = sides::RoundOf(sided.Run(watcher));
        ASSERT_EQ(results, expected) << "round " << round;
        EXPECT_EQ(wanted, script.outputs.size());
        for (const int64_t call : good.executed) EXPECT_EQ(side_of.at(call), 0);
        for (const int64_t call : bad.executed) EXPECT_EQ(side_of.at(call), 1);
      }
      EXPECT_LE(good.prepared, 1);
      EXPECT_LE(bad.prepared, 1);
    }
  });
}

TEST_P(SidedRunOf, ASideWithoutCallsIsLeftAlone) {
  const Recorded recorded = GetParam().record();
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    for (const int side : {sides::SidedRun::kGood, sides::SidedRun::kBad}) {
      LocalSide sides[] = {LocalSide(sides::kGoodSide), LocalSide(sides::kBadSide)};
      sides::SidedRun sided(sides::EagerScript(step, {1}, script::Watch::kStepOutputs),
                            {&sides[0], &sides[1]});
      const sides::SidedRun::Watcher watcher{[&](int64_t) { return side; }, nullptr, nullptr};
      sided.Run(watcher);
      EXPECT_EQ(sides[1 - side].prepared, 0);
      EXPECT_EQ(sides[1 - side].requests, 0);
      // Bytes that no call changes are sent to the side once.
      int64_t unchanged = 0;
      for (const analyzer::Operand& operand : step.step_class().operands) {
        if (!operand.written) unchanged += operand.bytes();
      }
      const int64_t first = sided.bytes_put();
      sided.Run(watcher);
      EXPECT_LE(sided.bytes_put() - first, first - unchanged);
      EXPECT_EQ(sided.bytes_taken(), 0);
    }
  });
}

TEST(SidesExperiment, AFailureOfTheBadSideIsABadOutcomeAndOfTheGoodOneNoVerdict) {
  const Recorded recorded = test::Chain(3, 8);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    LocalSide good(sides::kGoodSide);
    LocalSide bad(sides::kBadSide);
    sides::EagerStepOptions options;
    options.places = sides::ExecutedPlaces(step);
    options.run_matches = {1};
    options.executions = 2;
    sides::SidesExperiment experiment(step, {&good, &bad}, options);
    const size_t last = experiment.size() - 1;
    EXPECT_EQ(experiment.Try({}).verdict, script::Outcome::Verdict::kGood);
    EXPECT_EQ(experiment.Try({0, last}).verdict, script::Outcome::Verdict::kGood);

    const int64_t call = run.session()
                             .program()
                             .leaves[step.step_class().matches[1].leaves[options.places[last]]]
                             .call.call_id;
    bad.fails_at = call;
    const script::Outcome failed = experiment.Try({0, last});
    EXPECT_EQ(failed.verdict, script::Outcome::Verdict::kBad);
    EXPECT_EQ(sides::FailureIn(failed), "the bad side has had enough");
    EXPECT_EQ(experiment.Try({0}).verdict, script::Outcome::Verdict::kGood) << "it begins anew";

    bad.fails_at = 0;
    good.fails_at = call;
    EXPECT_EQ(experiment.Try({0}).verdict, script::Outcome::Verdict::kCannotJudge);
    EXPECT_THROW(experiment.Try({}), sides::SideFailed);
    EXPECT_EQ(experiment.Try({last}).verdict, script::Outcome::Verdict::kGood);
  });
}

// The class of a cause follows from executing its calls alone, on both sides, with equal inputs.
TEST(SidesBisection, CausesAreClassifiedByTheirCallsAlone) {
  struct Case {
    std::vector<size_t> cause;  // its elements; the last gives the wrong results
    int every;
    bisect::CauseClass expected;
  };
  const Case cases[] = {{{9}, 1, bisect::CauseClass::kNumeric},
                        {{4, 9}, 1, bisect::CauseClass::kInteraction},
                        {{9}, 2, bisect::CauseClass::kNoise}};
  const Recorded recorded = test::Chain(3, 16);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    const std::vector<size_t> places = sides::ExecutedPlaces(step);
    const auto call = [&](size_t element) {
      const int64_t leaf = step.step_class().matches[1].leaves[places[element]];
      return run.session().program().leaves[leaf].call.call_id;
    };
    for (const Case& own : cases) {
      LocalSide good(sides::kGoodSide);
      SpoilingSide bad;
      bad.spoils = call(own.cause.back());
      if (own.cause.size() > 1) bad.after = call(own.cause.front());
      bad.every = own.every;
      good.on_call = [&](int64_t id) {
        if (id == call(0)) bad.armed = false;  // another execution begins
      };
      sides::SidesBisectionOptions options;
      options.experiment.run_matches = {1};
      const bisect::BisectionReport report =
          sides::BisectSides(step, {&good, &bad}, options, nullptr);
      ASSERT_EQ(report.found.size(), 1u) << report.Verdict();
      EXPECT_EQ(report.found[0].cause.elements, own.cause);
      ASSERT_TRUE(report.found[0].classification.has_value());
      EXPECT_EQ(report.found[0].classification->cause, own.expected)
          << report.found[0].classification->reason;
      EXPECT_GE(report.counter_experiments, static_cast<int64_t>(own.cause.size()));
    }
  });
}

TEST(SidedRun, AStepIsExecutedOnceForEachTimeThatItIsAskedFor) {
  const Recorded recorded = test::Chain(3, 8);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    LocalSide good(sides::kGoodSide);
    sides::SidedRun sided(sides::EagerScript(step, {1, 2}, script::Watch::kStepOutputs),
                          {&good, nullptr});
    const sides::SidedRun::Watcher watcher{[](int64_t) { return sides::SidedRun::kGood; }, nullptr,
                                           nullptr};
    for (int i = 0; i < 3; ++i) sided.Run(watcher);
    EXPECT_EQ(good.executed.size(), 3 * 2 * sides::ExecutedPlaces(step).size());
  });
}

TEST(CallExecutor, MemoryThatNoBlockHasIsRefused) {
  sides::CallExecutor executor("");
  executor.Prepare({64, 0});
  const auto bytes = std::make_shared<const std::vector<uint8_t>>(64);
  storage::Layout tensor;
  tensor.dtype = storage::DType::kFloat32;
  tensor.shape = {4, 4};
  tensor.strides = {4, 1};
  storage::Layout huge = tensor;
  huge.strides = {INT64_MAX / 2, INT64_MAX / 2};
  storage::Layout backward = tensor;
  backward.strides = {-4, 1};
  const std::vector<sides::SideCommand> refused = {
      sides::TakeBytes{{2, 0}, 1},           sides::TakeBytes{{-1, 0}, 1},
      sides::TakeBytes{{0, 60}, 5},          sides::TakeBytes{{0, -1}, 1},
      sides::TakeBytes{{0, 0}, -1},          sides::TakeBytes{{0, 1}, INT64_MAX},
      sides::PutBytes{{0, 1}, bytes, 0, 64}, sides::MoveBytes{{0, 0}, {1, 0}, 64},
      sides::TakeDigest{{0, 4}, tensor},     sides::TakeDigest{{0, 0}, huge},
      sides::TakeDigest{{0, 0}, backward},
  };
  for (size_t i = 0; i < refused.size(); ++i) {
    EXPECT_THROW(executor.Perform({refused[i]}), Error) << "command " << i;
  }
  const std::vector<sides::SideResult> fine =
      executor.Perform({sides::PutBytes{{0, 0}, bytes, 0, 64}, sides::TakeDigest{{0, 0}, tensor},
                        sides::TakeBytes{{0, 0}, 64}, sides::TakeBytes{{0, 64}, 0}});
  ASSERT_EQ(fine.size(), 3u);
  EXPECT_EQ(fine[0].digest, storage::DigestOf(bytes->data(), 64));
  EXPECT_EQ(fine[1].bytes, *bytes);
}

TEST(CallExecutor, AnOperatorThatThereIsNotIsNamedWithItsCall) {
  sides::CallExecutor executor("");
  executor.Prepare({64});
  try {
    executor.Perform({sides::CallOperator{812, {"aclnnNoSuchThing", {}}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "call 812 (aclnnNoSuchThing): the operator table has no aclnnNoSuchThing");
  }
}

}  // namespace
}  // namespace acltape::replayer
