// Bisections and proofs execute the same as a captured replay: for the same plan, both put the same
// operations at the same addresses of graph memory on the same streams, in the same order.
#include <gtest/gtest.h>

#include <sstream>

#include "replayer/engine/step_graph.h"
#include "tests/replayer/mixed_step_fixture.h"

namespace acltape::replayer {
namespace {

using test::MixedStepRun;
using test::Recorded;

// One line for each operation inside the captures of a script. Memory outside of the graphs' own
// block has other places in the two, so it is "elsewhere".
class Captured {
 public:
  explicit Captured(const Script& script) : script_(script) {}

  std::vector<std::string> Lines(std::span<const Operation> operations) {
    bool inside = false;
    for (const Operation& operation : operations) {
      inside = inside || std::holds_alternative<BeginCapture>(operation);
      if (inside) std::visit([this](const auto& own) { Add(own); }, operation);
      if (std::holds_alternative<EndCapture>(operation)) inside = false;
    }
    return std::move(lines_);
  }

 private:
  template <typename... Values>
  void Line(const Values&... values) {
    std::ostringstream line;
    ((line << values << ' '), ...);
    lines_.push_back(line.str());
  }
  void Add(const BeginCapture& own) { Line("begin graph", own.graph, "mode", own.mode); }
  void Add(const EndCapture& own) { Line("end graph", own.graph); }
  void Add(const RecordEvent& own) { Line("record", own.event, "on", own.stream); }
  void Add(const WaitEvent& own) { Line("wait for", own.event, "on", own.stream); }
  void Add(const BeginGroup& own) { Line("begin group", own.group, "on", own.stream); }
  void Add(const EndGroup& own) { Line("end group", own.group, "on", own.stream); }
  void Add(const Launch& own) {
    const ScriptCall& call = script_.calls[own.call];
    std::string tensors;
    for (const analyzer::lowering::LoweredValue& value : call.invocation.arguments) {
      for (const analyzer::lowering::LoweredTensor& tensor : value.tensors) {
        if (!tensor.present) continue;
        const bool in_graph = script_.blocks[tensor.memory.block()].name == "graph";
        tensors += in_graph ? " graph+" + std::to_string(tensor.layout.byte_offset) : " elsewhere";
      }
    }
    Line("call", call.call_id, call.invocation.op, "on", own.stream, tensors);
  }
  template <typename T>
  void Add(const T&) {
    Line("what does not belong into a capture");
  }

  const Script& script_;
  std::vector<std::string> lines_;
};

struct Case {
  std::string name;
  Recorded (*record)();
  std::optional<analyzer::plan::Plan> (*plan)();
  size_t least_lines;  // so that the comparison is of something
};

std::ostream& operator<<(std::ostream& out, const Case& own) { return out << own.name; }

std::optional<analyzer::plan::Plan> NoPlan() { return std::nullopt; }

const Case kCases[] = {
    {"OnTwoStreamsWithUpdates",
     [] { return test::Diamond(3, [](int step) { return static_cast<float>(step + 1); }); },
     []() -> std::optional<analyzer::plan::Plan> { return test::DiamondPlan(0, /*updates=*/true); },
     14},
    {"WithoutAPlan", [] { return test::Diamond(3, [](int) { return 3.0F; }); }, NoPlan, 6},
    {"ATrainingStepWithAHostRead", [] { return test::Training(4); }, NoPlan, 6},
    {"ACacheThatTheStepOverwrites", [] { return test::Cache(4); }, NoPlan, 4},
    {"ALongChain", [] { return test::Chain(3, 12); }, NoPlan, 14},
};

class OneEngine : public ::testing::TestWithParam<Case> {};

TEST_P(OneEngine, AnExperimentCapturesWhatAReplayCaptures) {
  const Recorded recorded = GetParam().record();
  const std::optional<analyzer::plan::Plan> plan = GetParam().plan();
  MixedStepRun run(recorded, plan ? &*plan : nullptr);
  run.With([&](const script::MixedStep& step) {
    script::MixedStepOptions options;
    options.plan = step.plan();
    options.run_matches = {0};
    const Script experiment = step.Build(options);

    Execution& execution = step.execution();
    const analyzer::Program& program = execution.program();
    const HomeMemory homes(execution.device(), program,
                           CapturedNeeds(program, step.step_class(), execution.contents()));
    StepGraphOptions replay_options;
    replay_options.keep = Keep::kStepOutputs;
    replay_options.plan = step.plan();
    const StepGraph replay(execution, homes, step.step_class(), replay_options);

    const auto lines = Captured(replay.script()).Lines(replay.captures());
    EXPECT_EQ(lines, Captured(experiment).Lines(experiment.operations));
    EXPECT_GE(lines.size(), GetParam().least_lines);
  });
}

INSTANTIATE_TEST_SUITE_P(Programs, OneEngine, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace acltape::replayer
