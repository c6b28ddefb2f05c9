// Layers of gated recurrent units, forward and backward. Gates stand in the order reset, update,
// new.
#include "runtime/opapi/kernels/recurrent.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kGruGates = 3;

// Results of one cell at all steps, each [steps, batch, hidden], in the order of the operator's
// arguments: the three gates, the part of the new gate that comes from the state, and the states.
struct GruTraces {
  Tensor r, z, n, from_state, h;
};

struct GruResult {
  GruTraces traces;
  Tensor h;  // after the last step that each sequence has
};

Tensor StackSteps(const TensorVector& steps, const Tensor& model) {
  if (steps.empty()) return at::empty({0, model.size(0), model.size(1)}, model.options());
  return at::stack(steps);
}

GruResult RunGruCell(const Network& network, const Tensor& input, const Tensor& alive,
                     const Tensor* params, Tensor h, bool reverse) {
  Tensor from_input = at::matmul(input, params[0].t());
  if (network.bias) from_input = from_input + params[2];
  TensorVector r(network.steps), z(network.steps), n(network.steps), from_state(network.steps),
      states(network.steps);
  for (int64_t t : VisitOrder(network.steps, reverse)) {
    Tensor of_state = at::matmul(h, params[1].t());
    if (network.bias) of_state = of_state + params[3];
    const TensorVector x = from_input[t].chunk(3, 1), s = of_state.chunk(3, 1);
    r[t] = at::sigmoid(x[0] + s[0]);
    z[t] = at::sigmoid(x[1] + s[1]);
    from_state[t] = s[2];
    n[t] = at::tanh(x[2] + s[2] * r[t]);
    h = Advance(alive.defined() ? alive[t] : Tensor(), (h - n[t]) * z[t] + n[t], h);
    states[t] = h;
  }
  return {{StackSteps(r, h), StackSteps(z, h), StackSteps(n, h), StackSteps(from_state, h),
           StackSteps(states, h)},
          h};
}

// (input, params, hx?, batchSizes?, hasBias, numLayers, dropout, train, bidirection, batchFirst,
// output, hy, r?, z?, n?, hn?, h?); the last five are written when training only. The operator is
// documented to ignore dropout.
std::unique_ptr<Kernel> BindGru(const Call& call) {
  const Network network = ReadNetwork(call, {0, 1, 3, 4, 5, -1, -1, 8, 9}, kGruGates);
  const Operand input = call.In(0), state = call.OptionalIn(2);
  const std::vector<Operand> params = call.Ins(1);
  if (state.defined()) call.ExpectSizes(2, state.view(), network.state_sizes());
  const Tensor output = call.Out(10), hy = call.Out(11);
  call.ExpectSizes(10, output, network.output_sizes());
  call.ExpectSizes(11, hy, network.state_sizes());
  std::array<TensorVector, 5> traces;
  for (int k = 0; call.Bool(7) && k < 5; ++k) traces[k] = ReadTraceOutputs(call, 12 + k, network);
  return MakeKernel([=] {
    const TensorVector weights = ReadAll(params);
    const Tensor sequence = network.StepsFirst(input()), alive = network.Alive();
    const Tensor first =
        state.defined() ? state() : at::zeros(network.state_sizes(), sequence.options());
    TensorVector last;
    const Tensor result =
        RunLayers(network, sequence, [&](int64_t cell, const Tensor& read, bool reverse) {
          const GruResult one = RunGruCell(
              network, read, alive, &weights[cell * network.per_cell()], first[cell], reverse);
          last.push_back(one.h);
          const Tensor values[] = {one.traces.r, one.traces.z, one.traces.n, one.traces.from_state,
                                   one.traces.h};
          for (size_t k = 0; k < traces.size(); ++k) {
            if (!traces[k].empty()) traces[k][cell].copy_(values[k]);
          }
          return ZeroGaps(alive, one.traces.h);
        });
    output.copy_(network.AsArgument(result, output.sizes()));
    hy.copy_(at::stack(last));
  });
}

// The gradients of one cell: of what it read, of its first state, and of the sums of its gates that
// come from the input and from the state, all rows of all steps.
struct GruGradients {
  Tensor input, h, from_input, from_state, hidden_before;
};

GruGradients RunGruCellBackward(const Network& network, const GruTraces& trace, const Tensor& alive,
                                const Tensor* params, const Tensor& h_first, const Tensor& dy,
                                Tensor dh, bool reverse) {
  const Tensor none = at::zeros({}, dy.options());
  TensorVector from_input(network.steps), from_state(network.steps), before(network.steps);
  const std::vector<int64_t> order = VisitOrder(network.steps, reverse);
  for (size_t k = order.size(); k-- > 0;) {
    const int64_t t = order[k];
    const Tensor here = alive.defined() ? alive[t] : Tensor();
    const Tensor r = trace.r[t], z = trace.z[t], n = trace.n[t];
    before[t] = k == 0 ? h_first : trace.h[order[k - 1]];
    const Tensor of_h = dy[t] + dh;
    const Tensor of_z = of_h * (before[t] - n) * z * (1 - z);
    const Tensor of_n = of_h * (1 - z) * (1 - n * n);
    const Tensor of_r = of_n * trace.from_state[t] * r * (1 - r);
    from_input[t] = Advance(here, at::cat({of_r, of_z, of_n}, 1), none);
    from_state[t] = Advance(here, at::cat({of_r, of_z, of_n * r}, 1), none);
    dh = Advance(here, at::matmul(from_state[t], params[1]) + of_h * z, dh);
  }
  const Tensor all = at::stack(from_input);
  return {at::matmul(all, params[0]), dh, all.flatten(0, 1), at::stack(from_state).flatten(0, 1),
          at::stack(before).flatten(0, 1)};
}

// (input, params, hx, dy, dh, r, z, n, hn, h, batchSizes?, hasBias, numLayers, bidirection,
// batchFirst, dx, dhPrev, dparams)
std::unique_ptr<Kernel> BindGruBackward(const Call& call) {
  const Network network = ReadNetwork(call, {0, 1, 10, 11, 12, -1, -1, 13, 14}, kGruGates);
  if (network.steps == 0) call.RejectArg(0, "has no steps");
  const Operand input = call.In(0), state = call.In(2), dy = call.In(3), dh = call.In(4);
  const std::vector<Operand> params = call.Ins(1);
  for (int i : {2, 4}) call.ExpectSizes(i, call.View(i), network.state_sizes());
  call.ExpectSizes(3, dy.view(), network.output_sizes());
  std::array<std::vector<Operand>, 5> traces;
  for (int k = 0; k < 5; ++k) traces[k] = ReadTraceInputs(call, 5 + k, network);
  const Tensor dx = call.Out(15), dh_first = call.Out(16);
  call.ExpectSizes(15, dx, input.sizes());
  call.ExpectSizes(16, dh_first, network.state_sizes());
  const TensorVector dparams = ReadParameterGradients(call, 17, params);
  return MakeKernel([=] {
    const TensorVector weights = ReadAll(params);
    const Tensor alive = network.Alive(), initial = state(), of_last = dh();
    TensorVector first_h(network.cells());
    const auto one_cell = [&](int64_t cell, const Tensor& read, const Tensor& gradient,
                              bool reverse) {
      const auto trace = [&](size_t k) { return traces[k][cell](); };
      const size_t first = cell * network.per_cell();
      const GruGradients one =
          RunGruCellBackward(network, {trace(0), trace(1), trace(2), trace(3), trace(4)}, alive,
                             &weights[first], initial[cell], gradient, of_last[cell], reverse);
      first_h[cell] = one.h;
      dparams[first].copy_(at::matmul(one.from_input.t(), read.flatten(0, 1)));
      dparams[first + 1].copy_(at::matmul(one.from_state.t(), one.hidden_before));
      if (network.bias) {
        dparams[first + 2].copy_(one.from_input.sum(0));
        dparams[first + 3].copy_(one.from_state.sum(0));
      }
      return one.input;
    };
    const Tensor gradient =
        RunLayersBackward(network, ZeroGaps(alive, network.StepsFirst(input())), ReadAll(traces[4]),
                          network.StepsFirst(dy()), one_cell);
    dx.copy_(network.AsArgument(gradient, dx.sizes()));
    dh_first.copy_(at::stack(first_h));
  });
}

}  // namespace

KernelRows GruRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnGRU", BindGru, kBoth},
      {"aclnnGRUBackward", BindGruBackward, kBoth, {10}},
  };
}

}  // namespace acltape::opapi
