// Stepped programs with what makes mixed steps hard: state, views, sources, host reads, arguments
// that vary. Values are small integers, so that they are exact on every device.
#pragma once

#include "tests/replayer/small_programs.h"

namespace acltape::test {

// y = relu(x); z = x + x; w = y + z; then w = w * factor(step) in place. Four calls a step.
inline Recorded Diamond(int steps, const std::function<float(int)>& factor) {
  return Recorded(steps, [=](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({8});
    const Tensor y = trace.NewTensor({8});
    const Tensor z = trace.NewTensor({8});
    const Tensor w = trace.NewTensor({8});
    const Floats in = Numbers(8, step);
    const Floats sum = Sum(Relu(in), Sum(in, in));
    trace.Call("aten::relu", {In("self", x)}, {Out("out", y)}).Before(x, in).After("out", Relu(in));
    Add(trace, x, x, z);
    trace.After("out", Sum(in, in));
    Add(trace, y, z, w);
    trace.After("out", sum);
    trace.Call("aten::mul_.Scalar", {Written("self", w), Real("other", factor(step))})
        .After("self", Product(sum, {factor(step)}));
  });
}

// y = relu(x); z = y + y, which a collective sums over ranks; w = relu(z). The other rank adds
// `step`. Three calls a step, and the collective.
inline Recorded Reduced(int steps) {
  return Recorded(steps, [](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({8});
    const Tensor y = trace.NewTensor({8});
    const Tensor z = trace.NewTensor({8});
    const Tensor w = trace.NewTensor({8});
    const Floats in = Numbers(8, step);
    const Floats own = Sum(Relu(in), Relu(in));
    const Floats reduced = Sum(own, Numbers(8, step + 100));
    trace.Call("aten::relu", {In("self", x)}, {Out("out", y)}).Before(x, in).After("out", Relu(in));
    Add(trace, y, y, z);
    trace.After("out", own);
    trace.Call("c10d::allreduce_(Tensor[] tensors) -> Tensor[]", {List("tensors", {z})});
    trace.Call("aten::relu", {In("self", z)}, {Out("out", w)})
        .Before(z, reduced)
        .After("out", Relu(reduced));
  });
}

// The step `step` of a diamond on two streams: the first sum on the side stream, or (chained)
// everything but the last call on streams of its own.
inline analyzer::plan::Plan DiamondPlan(int step, bool updates = false) {
  analyzer::plan::Plan plan;
  plan.step = step;
  const int64_t first = 4 * step;
  plan.first_call = first + 1;
  plan.last_call = first + 4;
  plan.streams = 2;
  analyzer::plan::PlanRegion region;
  region.captured = true;
  region.first_call = plan.first_call;
  region.last_call = plan.last_call;
  for (const auto& [call, stream] : std::map<int64_t, int>{{1, 0}, {2, 1}, {3, 0}, {4, 0}}) {
    region.placements.push_back({});
    region.placements.back().call_id = first + call;
    region.placements.back().stream = stream;
  }
  region.waits.push_back({first + 2, first + 3, 0});
  plan.regions.push_back(region);
  if (updates) plan.updates.push_back({first + 4, "other"});
  return plan;
}

// A training step: product with a weight, its row sums read by the host, a gradient, and the weight
// and a momentum changed in place. The learning rate varies.
inline Recorded Training(int steps) {
  Tensor weight;
  Tensor momentum;
  Floats w;
  Floats m;
  return Recorded(steps, [=](TraceBuilder& trace, int step) mutable {
    const bool first = step == 0;
    if (first) {
      weight = trace.NewTensor({4, 4});
      momentum = trace.NewTensor({4, 4});
      w = Numbers(16, 101);
      m = Numbers(16, 102);
    }
    const Tensor x = trace.NewTensor({4, 4});
    const Tensor y = trace.NewTensor({4, 4});
    const Tensor z = trace.NewTensor({4, 4});
    const Tensor g = trace.NewTensor({4, 4});
    const Floats in = Numbers(16, step);
    const Floats product = MatMul(in, w, 4, 4, 4);
    trace.Call("aten::mm", {In("self", x), In("mat2", weight)}, {Out("out", y)}).Before(x, in);
    if (first) trace.Before(weight, w);
    trace.After("out", product);
    const Floats active = Relu(product);
    trace.Call("aten::relu", {In("self", y)}, {Out("out", z)}).After("out", active);
    const Tensor element = TraceBuilder::View(z, {}, {}, 5);
    trace.Call("aten::select.int", {In("self", z)}, {Out("out", element)});
    trace.Call("aten::_local_scalar_dense", {In("self", element)},
               {Real("out", active[5], storage::Direction::kOut)});
    // The gradient is read from the transposed view of the result.
    const Tensor transposed = TraceBuilder::View(z, {4, 4}, {1, 4});
    Floats turned(16);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) turned[4 * i + j] = active[4 * j + i];
    }
    const Floats gradient = Sum(turned, in);
    Add(trace, transposed, x, g);
    trace.After("out", gradient);
    const Floats half = Product(m, {0.5f});
    trace.Call("aten::mul_.Scalar", {Written("self", momentum), Real("other", 0.5)});
    if (first) trace.Before(momentum, m);
    trace.After("self", half);
    m = Sum(half, gradient);
    trace.Call("aten::add_.Tensor", {Written("self", momentum), In("other", g), Int("alpha", 1)})
        .After("self", m);
    const float rate = step % 2 == 0 ? -0.5f : -0.25f;
    w = Sum(w, Product(m, {rate}));
    trace
        .Call("aten::add_.Tensor",
              {Written("self", weight), In("other", momentum), Real("alpha", rate)})
        .After("self", w);
  });
}

// A decoder's cache: each step writes a row of it through a strided view that moves on, reads all
// of it, and a random mask is drawn into a buffer that the step has used before. The result is read
// by the next step.
inline Recorded Cache(int steps) {
  Tensor cache;
  Tensor hidden;
  Floats rows;
  Floats state;
  return Recorded(steps, [=](TraceBuilder& trace, int step) mutable {
    const bool first = step == 0;
    if (first) {
      cache = trace.NewTensor({4, 2});  // column `step` of both rows is written
      hidden = trace.NewTensor({4, 2});
      rows = Numbers(8, 7);
      state = Numbers(8, 8);
    }
    const Tensor x = trace.NewTensor({4});
    const Tensor noise = trace.NewTensor({4, 2});
    const Tensor next = trace.NewTensor({4, 2});
    const Tensor last = trace.NewTensor({4, 2});
    const Tensor nothing = trace.NewTensor({0});
    const Floats in = Numbers(4, 20 + step);
    const Tensor column = TraceBuilder::View(cache, {4}, {2}, step % 2);
    trace.Call("aten::copy_", {Written("self", column), In("src", x), Bool("non_blocking", false)})
        .Before(x, in);
    if (first) trace.Before(cache, rows);
    for (int i = 0; i < 4; ++i) rows[2 * i + step % 2] = in[i];
    trace.After("self", in);
    trace.Call("aten::relu", {In("self", nothing)}, {Out("out", trace.NewTensor({0}))});
    trace.Call("aten::randn", {Ints("size", {4, 2})}, {Out("out", noise)})
        .After("out", Numbers(8, 30 + step));
    const Floats summed = Sum(rows, Numbers(8, 30 + step));
    Add(trace, cache, noise, next);
    trace.After("out", summed);
    trace.Call("aten::normal_", {Written("self", noise), Real("mean", 0), Real("std", 1)})
        .After("self", Numbers(8, 60 + step));
    const Floats mixed = Sum(summed, Numbers(8, 60 + step));
    trace.Call("aten::add_.Tensor", {Written("self", next), In("other", noise), Int("alpha", 1)})
        .After("self", mixed);
    state = Sum(mixed, state);
    Add(trace, next, hidden, last);
    if (first) trace.Before(hidden, Numbers(8, 8));
    trace.After("out", state);
    hidden = last;
  });
}

// A chain of `length` calls a step: relu and sums with a fresh input in turn, so that buffers of
// the chain share memory.
inline Recorded Chain(int steps, int length) {
  return Recorded(steps, [=](TraceBuilder& trace, int step) {
    Tensor value = trace.NewTensor({16});
    const Tensor bias = trace.NewTensor({16});
    Floats content = Numbers(16, step + 1);
    const Floats added = Numbers(16, 500 + step);
    for (int i = 0; i < length; ++i) {
      const Tensor next = trace.NewTensor({16});
      if (i % 3 == 1) {
        trace.Call("aten::relu", {In("self", value)}, {Out("out", next)});
      } else {
        Add(trace, value, bias, next);
      }
      if (i == 0) trace.Before(value, content).Before(bias, added);
      content = i % 3 == 1 ? Relu(content) : Sum(content, added);
      trace.After("out", content);
      value = next;
    }
  });
}

}  // namespace acltape::test
