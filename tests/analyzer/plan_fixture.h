// A recorded program of two steps with a host read in the middle, and a plan for it.
//
//   call  leaf                      region of the plan  stream
//   1     aten::t (a view)          -
//   2     a = mm(x, w)              0 captured          0
//   3     b = relu(a)               0                   0
//   4     c = relu(x)               0                   1
//   5     d = add(b, c, alpha)      0                   0, waits for call 4
//   6     _local_scalar_dense(d)    1 eager
//   7     e = mul(d, d)             2 captured          0
//   8     mul_(e, d)                2                   0
//
// Step 1 holds calls 9 to 16; x moves and alpha varies, w stays.
#pragma once

#include <memory>

#include "analyzer/calls/work.h"
#include "analyzer/plan/plan.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::test {

class PlannedProgram {
 public:
  explicit PlannedProgram(int steps = 2) : file_("plan") {
    {
      TraceBuilder trace(file_.path());
      const Tensor w = trace.NewTensor({4, 4});
      for (int s = 0; s < steps; ++s) WriteStep(trace, s, w);
      trace.Finish();
    }
    reader_ = std::make_unique<storage::Reader>(file_.path());
    work = analyzer::LoadWork(*reader_);
  }

  static analyzer::plan::Plan MakePlan() {
    analyzer::plan::Plan plan;
    plan.trace_calls = 16;
    plan.step = 0;
    plan.first_call = 1;
    plan.last_call = 8;
    plan.streams = 2;
    analyzer::plan::PlanRegion& head = plan.regions.emplace_back();
    head.captured = true;
    head.first_call = 2;
    head.last_call = 5;
    head.reason = "the host reads a value";
    head.placements = {{2, 0, "aten::mm"}, {3, 0, "aten::relu"}, {4, 1, ""}, {5, 0, ""}};
    head.waits = {{4, 5, 0}};
    analyzer::plan::PlanRegion& read = plan.regions.emplace_back();
    read.region = 1;
    read.first_call = read.last_call = 6;
    read.reason = "host read";
    read.gain_ns = 1250.5;
    analyzer::plan::PlanRegion& tail = plan.regions.emplace_back();
    tail.region = 2;
    tail.captured = true;
    tail.first_call = 7;
    tail.last_call = 8;
    tail.placements = {{7, 0, ""}, {8, 0, ""}};
    plan.copies = {{2, "self", 64}};
    plan.updates = {{5, "alpha"}};
    plan.predicted.eager_ns = 9000;
    plan.predicted.captured_ns = 4000.25;
    plan.predicted.break_even_steps = 12;
    return plan;
  }

  const std::string path() const { return file_.path(); }
  const storage::Reader& reader() const { return *reader_; }
  analyzer::Work work;

 private:
  static void WriteStep(TraceBuilder& trace, int s, const Tensor& w) {
    storage::Step step;
    step.step = s;
    step.first_call = trace.last_call() + 1;
    const auto fresh = [&] { return trace.NewTensor({4, 4}); };
    const Tensor x = fresh(), a = fresh(), b = fresh(), c = fresh(), d = fresh(), e = fresh();
    const Tensor wt = TraceBuilder::View(w, {4, 4}, {1, 4});
    trace.Call("aten::t", {In("self", w)}, {Out("out", wt)});
    trace.Call("aten::mm", {In("self", x), In("mat2", wt)}, {Out("out", a)});
    trace.Call("aten::relu", {In("self", a)}, {Out("out", b)});
    trace.Call("aten::relu", {In("self", x)}, {Out("out", c)});
    trace.Call("aten::add.Tensor", {In("self", b), In("other", c), Real("alpha", 1 + s)},
               {Out("out", d)});
    trace.Call("aten::_local_scalar_dense", {In("self", d)},
               {Real("out", 0.5, storage::Direction::kOut)});
    trace.Call("aten::mul.Tensor", {In("self", d), In("other", d)}, {Out("out", e)});
    trace.Call("aten::mul_.Tensor", {Written("self", e), In("other", d)}, {Out("out", e)});
    step.last_call = trace.last_call();
    step.found_by = "range:step";
    trace.writer().AddStep(step);
  }

  TemporaryTrace file_;
  std::unique_ptr<storage::Reader> reader_;
};

}  // namespace acltape::test
