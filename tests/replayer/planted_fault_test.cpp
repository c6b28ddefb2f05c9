// Planted faults show where they are planted and nowhere else, and each goes away by the remedy for
// its cause alone.
#include <gtest/gtest.h>

#include <cstdlib>

#include "replayer/script/fault_sites.h"
#include "tests/replayer/mixed_step_fixture.h"

namespace acltape::replayer {
namespace {

using test::MixedStepRun;
using test::Recorded;

struct Remedy {
  const char* name;
  bool script::Remedies::*member;
};
constexpr Remedy kRemedies[] = {
    {"one stream", &script::Remedies::one_stream},
    {"own memory", &script::Remedies::own_memory},
    {"own workspace", &script::Remedies::own_workspace},
    {"fresh inputs", &script::Remedies::fresh_inputs},
    {"step arguments", &script::Remedies::step_arguments},
    {"recapture", &script::Remedies::recapture},
};

struct Row {
  script::FaultKind kind;
  std::vector<std::string> cured_by;
};

std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << script::FaultKindName(row.kind);
}

class PlantedFaultOf : public testing::TestWithParam<Row> {};

INSTANTIATE_TEST_SUITE_P(
    Kinds, PlantedFaultOf,
    testing::Values(Row{script::FaultKind::kWrongBits, {}}, Row{script::FaultKind::kLowBits, {}},
                    Row{script::FaultKind::kMissingWait, {"one stream"}},
                    Row{script::FaultKind::kStaleInput, {"fresh inputs", "recapture"}},
                    Row{script::FaultKind::kBakedScalar, {"step arguments", "recapture"}},
                    Row{script::FaultKind::kOverwrittenOutput, {"own memory"}},
                    Row{script::FaultKind::kReusedWorkspace, {"own workspace"}},
                    Row{script::FaultKind::kMovedAddress, {"recapture"}}),
    [](const auto& own) { return std::string(script::FaultKindName(own.param.kind)); });

bool IsOrdering(const Row& row) { return row.kind == script::FaultKind::kMissingWait; }

// A race shows in some executions of a graph, when the memory holds what another step left.
bool IsBad(MixedStepRun& run, const script::MixedStep& step, script::MixedStepOptions options,
           int executions) {
  options.run_matches = {1, 2};
  for (int i = 2; i < executions; ++i) options.run_matches.push_back(1 + i % 2);
  return !run.Differs(step, options).empty();
}

// Diamond with a long tail, so that every kind finds a place: sums read back over others.
Recorded ThreeTimesLadder() {
  return Recorded(3, [](test::TraceBuilder& trace, int step) {
    test::Tensor a = trace.NewTensor({64});
    test::Floats content = test::Numbers(64, step + 1);
    bool first = true;
    for (int i = 0; i < 6; ++i) {
      const test::Tensor b = trace.NewTensor({64});
      const test::Tensor c = trace.NewTensor({64});
      const test::Tensor d = trace.NewTensor({64});
      trace.Call("aten::mul.Scalar", {test::In("self", a), test::Real("other", 3)},
                 {test::Out("out", b)});
      if (first) trace.Before(a, content);
      first = false;
      const test::Floats thrice = test::Product(content, {3});
      trace.After("out", thrice);
      trace.Call("aten::neg", {test::In("self", a)}, {test::Out("out", c)});
      const test::Floats negative = test::Product(content, {-1});
      trace.After("out", negative);
      Add(trace, b, c, d);
      content = test::Sum(thrice, negative);  // never what was there before
      trace.After("out", content);
      a = d;
    }
  });
}

TEST_P(PlantedFaultOf, ShowsWhileItsCallIsCapturedAndGoesAwayByItsRemedyAlone) {
  ASSERT_TRUE(test::kJitter);
  const Recorded recorded = ThreeTimesLadder();
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    const std::vector<script::PlantedFault> faults = script::PossibleFaults(step, GetParam().kind);
    ASSERT_FALSE(faults.empty());
    const int executions = IsOrdering(GetParam()) ? 60 : 1;
    for (const script::PlantedFault& fault : faults) {
      SCOPED_TRACE(script::FaultText(fault));
      script::MixedStepOptions options;
      options.faults = {fault};
      const bool bad = IsBad(run, step, options, executions);
      EXPECT_TRUE(bad);
      options.captured.assign(step.places(), false);
      EXPECT_FALSE(IsBad(run, step, options, 1));
      for (const size_t place : step.capturable()) {
        options.captured[place] = place != step.PlaceOf(fault.call_id);
      }
      EXPECT_FALSE(IsBad(run, step, options, executions)) << "all but the call captured";
      options.captured.clear();
      for (const Remedy& remedy : kRemedies) {
        const bool cures = std::find(GetParam().cured_by.begin(), GetParam().cured_by.end(),
                                     remedy.name) != GetParam().cured_by.end();
        options.remedies = script::Remedies();
        options.remedies.*remedy.member = true;
        EXPECT_EQ(IsBad(run, step, options, executions), !cures) << remedy.name;
      }
    }
  });
}

TEST_P(PlantedFaultOf, IsChosenByItselfWhereNoOtherCallIsNamed) {
  const Recorded recorded = ThreeTimesLadder();
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    script::PlantedFault fault = script::PossibleFaults(step, GetParam().kind).back();
    fault.other_call = 0;
    script::MixedStepOptions options;
    options.faults = {fault};
    EXPECT_TRUE(IsBad(run, step, options, 20)) << script::FaultText(fault);
  });
}

TEST(PlantedFault, IsWrittenAsKindAndCalls) {
  for (const char* text : {"wrong_bits@812", "missing_wait@812:805", "moved_address@1"}) {
    EXPECT_EQ(script::FaultText(script::ParseFault(text)), text);
  }
  for (const char* text : {"", "wrong_bits", "wrong_bits@", "wrong_bits@x", "odd@3",
                           "missing_wait@3:", "missing_wait@3:-1", "wrong_bits@3 "}) {
    EXPECT_THROW(script::ParseFault(text), Error) << text;
  }
}

TEST(PlantedFault, ThatFindsNoPlaceIsRefusedWithTheReason) {
  const Recorded recorded = ThreeTimesLadder();
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    const auto refusal = [&](const char* text) {
      script::MixedStepOptions options;
      options.faults = {script::ParseFault(text)};
      try {
        step.Build(options);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kUsage);
        return std::string(error.what());
      }
      return std::string();
    };
    EXPECT_EQ(refusal("baked_scalar@2"),
              "the fault baked_scalar@2 cannot be planted: the call has no number that it computes "
              "with");
    EXPECT_EQ(refusal("wrong_bits@9999"),
              "the fault wrong_bits@9999 cannot be planted: call 9999 is no active call of the "
              "step");
  });
}

}  // namespace
}  // namespace acltape::replayer
