#include "analyzer/plan/planner.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "analyzer/plan/plan_file.h"
#include "analyzer/steps/steps.h"
#include "tests/analyzer/plan_fixture.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::Int;
using test::Out;
using test::PlannedProgram;
using test::Real;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

// Every call costs the host 1 us and the device `device_ns`; what a capture adds is cheap.
prediction::DeviceCosts Cheap(const Work& work, double device_ns = 500) {
  prediction::DeviceCosts costs;
  for (const WorkForm& form : work.forms) {
    costs.by_signature[form.signature_id] = {1000, device_ns};
  }
  costs.graph_host_ns = costs.graph_device_ns = costs.host_read_ns = 100;
  costs.copy_device_ns = 10;
  costs.copy_host_ns = 50;
  costs.record_host_ns = costs.wait_host_ns = 10;
  costs.streams.record_ns = costs.streams.wait_ns = 10;
  return costs;
}

// A program of recorded steps, and its plan.
class Stepped {
 public:
  Stepped(int steps, const std::function<void(TraceBuilder&, int)>& write_step) : file_("planner") {
    {
      TraceBuilder trace(file_.path());
      for (int s = 0; s < steps; ++s) {
        storage::Step step;
        step.step = s;
        step.first_call = trace.last_call() + 1;
        write_step(trace, s);
        step.last_call = trace.last_call();
        step.found_by = "range:step";
        trace.writer().AddStep(step);
      }
      trace.Finish();
    }
    reader_ = std::make_unique<storage::Reader>(file_.path());
    work = LoadWork(*reader_);
  }
  plan::PlannedStep Make(plan::PlanOptions options = {}, double device_ns = 500) const {
    const prediction::DeviceCosts costs = Cheap(work, device_ns);
    options.costs = &costs;
    return plan::MakePlan(work, options);
  }
  Work work;

 private:
  test::TemporaryTrace file_;
  std::unique_ptr<storage::Reader> reader_;
};

std::string Kinds(const plan::Plan& plan) {
  std::string kinds;
  for (const plan::PlanRegion& region : plan.regions) kinds += region.captured ? 'C' : 'e';
  return kinds;
}

void Relu(TraceBuilder& trace, const Tensor& from, const Tensor& to) {
  trace.Call("aten::relu", {In("self", from)}, {Out("out", to)});
}

TEST(Planner, AGraphThatNoOtherStepExecutesSavesNothing) {
  // Every step has rows of its own: four graphs, and none is executed twice.
  const Stepped changing(4, [](TraceBuilder& trace, int step) {
    Tensor x = trace.NewTensor({2 + step, 4});
    for (int call = 0; call < 6; ++call) {
      const Tensor y = trace.NewTensor({2 + step, 4});
      Relu(trace, x, y);
      x = y;
    }
  });
  const plan::PlannedStep once = changing.Make();
  EXPECT_TRUE(once.served_once);
  EXPECT_EQ(Kinds(once.plan), "e");
  EXPECT_EQ(once.plan.regions[0].reason, "no other of the 4 steps has these operators and shapes");
  EXPECT_NE(once.regions[0].edit, "");
  EXPECT_GT(once.plan.regions[0].gain_ns, 0);  // equal shapes would save it
  EXPECT_EQ(once.captures(), 0u);
  EXPECT_EQ(once.prediction.break_even_steps, -1);
  EXPECT_TRUE(once.prediction.stay_eager);
  EXPECT_EQ(once.guards[0].captures, 4);
  EXPECT_EQ(once.guards[0].hits, 0);
  // Whoever knows that steps with these shapes come again says so.
  const plan::PlannedStep known = changing.Make({.expected_replays = 1000});
  EXPECT_FALSE(known.served_once);
  EXPECT_EQ(Kinds(known.plan), "C");
}

TEST(Planner, HostReadsCutAndMovingInputsAreCopied) {
  const PlannedProgram program;
  const prediction::DeviceCosts costs = Cheap(program.work);
  plan::PlanOptions options;
  options.costs = &costs;
  const plan::PlannedStep planned = plan::MakePlan(program.work, options);
  const plan::Plan& plan = planned.plan;
  // The add, whose alpha varies, is left out: after it a barrier would end the graph anyway.
  ASSERT_EQ(Kinds(plan), "CeeC");
  EXPECT_EQ(plan.regions[0].first_call, 2);
  EXPECT_EQ(plan.regions[0].last_call, 4);
  EXPECT_EQ(plan.regions[0].reason, "ends where going on costs more than it saves");
  EXPECT_EQ(plan.regions[1].reason, "argument updates cost more than capture saves");
  EXPECT_EQ(plan.regions[2].reason, "host read");
  EXPECT_GT(plan.regions[2].gain_ns, 1000) << "its host time and a launch";
  for (const plan::RegionFigures& region : planned.regions) {
    EXPECT_EQ(region.edit.empty(), region.cut.captured) << region.cut.reason;
  }
  EXPECT_EQ(plan.copies, (std::vector<plan::PlanCopy>{{2, "self", 64}}));
  EXPECT_TRUE(plan.updates.empty());
  EXPECT_EQ(planned.class_steps, 2u);
  EXPECT_EQ(planned.captured_calls(), 5u);
  EXPECT_EQ(planned.regions[0].copied_inputs, 1);
  EXPECT_EQ(planned.regions[0].guarded_addresses, 1);  // the weight
  EXPECT_FALSE(plan.predicted.stay_eager) << plan.predicted.reason;
  EXPECT_LT(plan.predicted.captured_ns, plan.predicted.eager_ns);
}

TEST(Planner, AVaryingValueAmidAGraphIsUpdated) {
  const Stepped stepped(3, [](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({4}), y = trace.NewTensor({4}), z = trace.NewTensor({4});
    Relu(trace, x, y);
    trace.Call("aten::add.Tensor", {In("self", x), In("other", y), Real("alpha", 1 + step)},
               {Out("out", z)});
    Relu(trace, z, x);
  });
  const plan::PlannedStep planned = stepped.Make();
  EXPECT_EQ(Kinds(planned.plan), "C");
  EXPECT_EQ(planned.plan.updates, (std::vector<plan::PlanUpdate>{{2, "alpha"}}));
  EXPECT_EQ(planned.regions[0].updated_arguments, 1);
  EXPECT_EQ(planned.varying_arguments, 1u);
}

TEST(Planner, WhatItWritesIsReadBackAndAccepted) {
  const PlannedProgram program;
  const prediction::DeviceCosts costs = Cheap(program.work);
  plan::PlanOptions options;
  options.costs = &costs;
  const plan::Plan plan = plan::MakePlan(program.work, options).plan;
  const test::TemporaryTrace file("planner-json");
  plan::WritePlan(plan, file.path(), plan::PlanRules("", true));
  EXPECT_EQ(plan::ReadPlan(file.path(), program.work), plan);
}

TEST(Planner, GuardsThatBakeOrDoNotCopyCaptureMoreOften) {
  const PlannedProgram program;
  const plan::PlannedStep planned = plan::MakePlan(program.work, {});
  ASSERT_EQ(planned.guards.size(), 4u);
  const auto outcome = [&](size_t row) {
    const plan::GuardOutcome& g = planned.guards[row];
    return std::vector<int64_t>{g.captures, g.hits,     g.by_operators,
                                g.by_shape, g.by_value, g.by_address};
  };
  EXPECT_EQ(outcome(0), (std::vector<int64_t>{1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(outcome(1), (std::vector<int64_t>{2, 0, 0, 0, 1, 0}));
  EXPECT_EQ(outcome(2), (std::vector<int64_t>{2, 0, 0, 0, 0, 1}));
  EXPECT_EQ(outcome(3), (std::vector<int64_t>{2, 0, 0, 0, 1, 0}));
}

TEST(Planner, TheLargestClassOfEqualShapesIsPlanned) {
  // Step 0 does more than the others; step 2 has another shape.
  const Stepped stepped(5, [](TraceBuilder& trace, int step) {
    const int64_t rows = step == 2 ? 8 : 4;
    const Tensor x = trace.NewTensor({rows}), y = trace.NewTensor({rows});
    Relu(trace, x, y);
    Relu(trace, y, trace.NewTensor({rows}));
    if (step == 0) Relu(trace, y, trace.NewTensor({rows}));
  });
  const plan::PlannedStep planned = stepped.Make();
  EXPECT_EQ(planned.families, 2u);
  EXPECT_EQ(planned.classes, 3u);
  EXPECT_EQ(planned.class_steps, 3u);
  EXPECT_EQ(planned.plan.step, 1);
  EXPECT_GT(planned.regions[0].guarded_shapes, 0);
  EXPECT_EQ(planned.guards[0].captures, 3);
  EXPECT_EQ(planned.guards[0].hits, 2);
  EXPECT_EQ(planned.guards[0].by_operators, 1);
  EXPECT_EQ(planned.guards[0].by_shape, 1);
}

TEST(Planner, WhatCannotBeCapturedIsNamed) {
  const Stepped stepped(2, [](TraceBuilder& trace, int) {
    const Tensor x = trace.NewTensor({4}), mask = trace.NewTensor({4}, storage::DType::kBool);
    const Tensor y = trace.NewTensor({4});
    Relu(trace, x, y);
    Relu(trace, y, x);
    trace.Call("aten::index.Tensor", {In("self", x), test::List("indices", {mask})},
               {Out("out", trace.NewTensor({2}))});
    trace.Call("aten::nonzero", {In("self", mask)},
               {Out("out", trace.NewTensor({2, 1}, storage::DType::kInt64))});
    trace.Call("aten::no_such_operator", {In("self", x)}, {Out("out", trace.NewTensor({4}))});
    Relu(trace, x, y);
    Relu(trace, y, x);
  });
  const plan::PlannedStep planned = stepped.Make();
  const plan::Plan& plan = planned.plan;
  ASSERT_EQ(Kinds(plan), "CeeeC");
  EXPECT_EQ(plan.regions[1].reason, "mask");
  EXPECT_EQ(plan.regions[2].reason, "data-dependent shape");
  EXPECT_EQ(plan.regions[3].reason.rfind("no device operator: ", 0), 0u) << plan.regions[3].reason;
}

TEST(Planner, RandomValuesForBytesInUseBeginARegion) {
  const Stepped stepped(2, [](TraceBuilder& trace, int) {
    const Tensor x = trace.NewTensor({4}), y = trace.NewTensor({4});
    Relu(trace, x, y);
    Relu(trace, y, x);
    trace.Call("aten::uniform_", {Written("self", y), Real("from", 0), Real("to", 1)},
               {Out("out", y)});
    Relu(trace, y, x);
  });
  const plan::Plan plan = stepped.Make().plan;
  EXPECT_EQ(Kinds(plan), "CC");
  EXPECT_EQ(plan.regions[1].first_call, 3);
}

// Two long branches from one input, joined at the end.
void Branches(TraceBuilder& trace, int) {
  const Tensor x = trace.NewTensor({4});
  std::vector<Tensor> ends;
  for (int branch = 0; branch < 2; ++branch) {
    Tensor last = x;
    for (int i = 0; i < 6; ++i) {
      const Tensor next = trace.NewTensor({4, 4});
      trace.Call(branch == 0 ? "aten::relu" : "aten::mm",
                 branch == 0 ? std::vector<test::Value>{In("self", last)}
                             : std::vector<test::Value>{In("self", last), In("mat2", last)},
                 {Out("out", next)});
      last = next;
    }
    ends.push_back(last);
  }
  trace.Call("aten::add.Tensor", {In("self", ends[0]), In("other", ends[1]), Int("alpha", 1)},
             {Out("out", trace.NewTensor({4, 4}))});
}

TEST(Planner, BranchesOfTwoResourcesGoToTwoStreamsWithAWait) {
  const Stepped stepped(2, Branches);
  const plan::PlannedStep planned = stepped.Make({}, /*device_ns=*/10000);
  ASSERT_EQ(Kinds(planned.plan), "C");
  EXPECT_EQ(planned.plan.streams, 2);
  EXPECT_EQ(planned.plan.regions[0].waits.size(), 1u);
  EXPECT_EQ(planned.regions[0].load.stream_numbers(), 2);
  EXPECT_LT(planned.regions[0].certificate.makespan_ns,
            planned.regions[0].certificate.one_stream_ns);
  plan::PlanOptions one;
  one.streams = 1;
  const plan::PlannedStep on_one = stepped.Make(one, 10000);
  EXPECT_EQ(on_one.plan.streams, 1);
  // Thirteen results of 16 floats: none shares its place where streams run side by side.
  EXPECT_EQ(planned.graph_bytes, 13 * memory::kPoolAlignment);
  EXPECT_EQ(on_one.graph_bytes, on_one.pools.separate_bytes);
  EXPECT_LT(on_one.graph_bytes, planned.graph_bytes);
}

TEST(Planner, SpreadUsesSeveralStreamsWhereTheyDoNotPay) {
  const Stepped stepped(2, Branches);
  plan::PlanOptions options;
  EXPECT_EQ(stepped.Make(options, /*device_ns=*/1).plan.streams, 1);
  options.spread = true;
  const plan::PlannedStep planned = stepped.Make(options, 1);
  EXPECT_EQ(planned.plan.streams, 2);
  EXPECT_EQ(planned.plan.regions[0].waits.size(), 1u);
}

TEST(Planner, BudgetsAreKept) {
  const Stepped stepped(2, [](TraceBuilder& trace, int) {
    const Tensor x = trace.NewTensor({4}), y = trace.NewTensor({4});
    for (int run = 0; run < 3; ++run) {
      for (int i = 0; i <= run + 1; ++i) Relu(trace, x, y);
      trace.Call("aten::_local_scalar_dense", {In("self", y)},
                 {Real("out", 0.5, storage::Direction::kOut)});
    }
  });
  plan::PlanOptions options;
  options.streams = 1;
  EXPECT_EQ(Kinds(stepped.Make(options).plan), "CeCeCe");
  options.most_captures = 2;
  EXPECT_EQ(Kinds(stepped.Make(options).plan), "eeCeCe");
  options.most_captures = 100;
  options.budget_streams = 1;
  EXPECT_EQ(Kinds(stepped.Make(options).plan), "eeeeCe");
  options.budget_streams = 0;
  options.minimum_region = 4;
  EXPECT_EQ(Kinds(stepped.Make(options).plan), "eeeeCe");
}

// MakePlan holds what it made against the rules, races included; here over programs of random calls
// with views, in-place writes, random values, host reads and values and inputs that change.
TEST(Planner, PlansOfRandomProgramsBreakNoRule) {
  int64_t graphs = 0;
  int64_t waits = 0;
  int64_t copies = 0;
  int64_t updates = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    const Stepped stepped(3, [&](TraceBuilder& trace, int step) {
      std::mt19937 random(seed);  // every step does the same
      const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
      static std::vector<Tensor> kept;
      if (step == 0) kept = {trace.NewTensor({8}), trace.NewTensor({8})};
      std::vector<Tensor> live = kept;
      for (int i = 0; i < 2; ++i) live.push_back(trace.NewTensor({8}));  // inputs that move
      const size_t calls = 5 + below(40);
      for (size_t i = 0; i < calls; ++i) {
        Tensor a = live[below(live.size())];
        const Tensor b = live[below(live.size())];
        if (below(4) == 0) a = TraceBuilder::View(a, {4}, {1}, static_cast<int64_t>(below(5)));
        switch (below(9)) {
          case 0:
            trace.Call("aten::mul_.Tensor", {Written("self", a), In("other", b)}, {Out("out", a)});
            break;
          case 1:
            trace.Call("aten::uniform_", {Written("self", a), Real("from", 0), Real("to", 1)},
                       {Out("out", a)});
            break;
          case 2:
            trace.Call("aten::_local_scalar_dense", {In("self", a)},
                       {Real("out", 0.5, storage::Direction::kOut)});
            break;
          case 3:
            live.push_back(trace.NewTensor({8}));
            trace.Call("aten::add.Tensor", {In("self", a), In("other", b), Real("alpha", 1 + step)},
                       {Out("out", live.back())});
            break;
          case 4:
            live.push_back(trace.NewTensor({16}));
            trace.Call("aten::cat", {test::List("tensors", {a, b}), Int("dim", 0)},
                       {Out("out", live.back())});
            break;
          default:
            live.push_back(trace.NewTensor({8}));
            Relu(trace, a, live.back());
        }
      }
    });
    plan::PlanOptions options;
    options.minimum_region = 1 + seed % 3;
    options.streams = static_cast<int32_t>(seed % 5);
    prediction::DeviceCosts costs = Cheap(stepped.work, /*device_ns=*/20000);
    costs.streams.saturates = {};  // any two calls may run side by side
    options.costs = &costs;
    plan::PlannedStep planned;
    ASSERT_NO_THROW(planned = plan::MakePlan(stepped.work, options)) << "seed " << seed;
    for (const plan::PlanRegion& region : planned.plan.regions) {
      graphs += region.captured ? 1 : 0;
      waits += static_cast<int64_t>(region.waits.size());
    }
    copies += static_cast<int64_t>(planned.plan.copies.size());
    updates += static_cast<int64_t>(planned.plan.updates.size());
  }
  EXPECT_GT(graphs, 150);
  EXPECT_GT(copies, 75);
  EXPECT_GT(updates, 25);
  EXPECT_GT(waits, 20);
}

TEST(Planner, AMemoryBudgetCostsFirstStreamsThenGraphs) {
  const Stepped stepped(2, Branches);
  plan::PlanOptions options;
  const plan::PlannedStep free = stepped.Make(options, 10000);
  ASSERT_EQ(free.plan.streams, 2);
  options.budget_bytes = free.graph_bytes - 1;
  const plan::PlannedStep flat = stepped.Make(options, 10000);
  EXPECT_EQ(flat.plan.streams, 1);
  EXPECT_LE(flat.graph_bytes, options.budget_bytes);
  options.budget_bytes = flat.graph_bytes - 1;
  const plan::PlannedStep none = stepped.Make(options, 10000);
  EXPECT_EQ(Kinds(none.plan), "e");
  EXPECT_EQ(none.plan.regions[0].reason, "no memory is left in the budget");
  EXPECT_EQ(none.graph_bytes, 0);
}

TEST(Planner, WhenNothingPaysItStaysEagerWithTheReason) {
  const Stepped stepped(2, Branches);
  prediction::DeviceCosts costs = Cheap(stepped.work);
  costs.graph_host_ns = 1e9;
  plan::PlanOptions options;
  options.costs = &costs;
  const plan::Plan plan = plan::MakePlan(stepped.work, options).plan;
  EXPECT_EQ(Kinds(plan), "e");
  EXPECT_EQ(plan.regions[0].reason, "launching and capturing a graph costs more than it saves");
  EXPECT_TRUE(plan.predicted.stay_eager);
  EXPECT_FALSE(plan.predicted.reason.empty());
}

TEST(Planner, RefusesInOneSentence) {
  const Stepped stepped(2, Branches);
  plan::PlanOptions options;
  options.soc = "Granite1";
  const auto refusal = [](const std::function<void()>& make) -> std::string {
    try {
      make();
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.kind())) + " " + error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([&] { plan::MakePlan(stepped.work, options); }).substr(0, 10), "2 the limi");
  Work none = stepped.work;
  none.steps.clear();
  EXPECT_NE(refusal([&] { plan::MakePlan(none, {}); }).find("has no steps"), std::string::npos);
}

}  // namespace
}  // namespace acltape::analyzer
