// Long short-term memory: layers and single cells, forward and backward. Gates stand in the order
// input, forget, candidate, output.
#include "runtime/opapi/kernels/optional.h"
#include "runtime/opapi/kernels/recurrent.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kLstmGates = 4;

// Results of one cell at all steps, each [steps, batch, hidden], in the order of the operator's
// arguments.
enum LstmTrace : size_t {
  kInputGate,
  kCandidate,
  kForgetGate,
  kOutputGate,
  kHidden,
  kState,
  kTanhState
};
using LstmTraces = std::array<Tensor, 7>;

struct LstmResult {
  LstmTraces traces;
  Tensor h, c;  // after the last step that each sequence has
};

LstmResult RunLstmCell(const Network& network, const Tensor& input, const Tensor& alive,
                       const Tensor* params, Tensor h, Tensor c, bool reverse) {
  Tensor from_input = at::matmul(input, params[0].t());
  if (network.bias) from_input = from_input + params[2];
  std::array<TensorVector, 7> parts;
  for (TensorVector& part : parts) part.resize(network.steps);
  for (int64_t t : VisitOrder(network.steps, reverse)) {
    Tensor gates = from_input[t] + at::matmul(h, params[1].t());
    if (network.bias) gates = gates + params[3];
    const TensorVector quarter = gates.chunk(4, 1);
    const Tensor i = at::sigmoid(quarter[0]), f = at::sigmoid(quarter[1]);
    const Tensor g = at::tanh(quarter[2]), o = at::sigmoid(quarter[3]);
    const Tensor here = alive.defined() ? alive[t] : Tensor();
    c = Advance(here, f * c + i * g, c);
    const Tensor tanh_c = at::tanh(c);
    h = Advance(here, o * tanh_c, h);
    const Tensor values[] = {i, g, f, o, h, c, tanh_c};
    for (size_t k = 0; k < parts.size(); ++k) parts[k][t] = values[k];
  }
  LstmResult result{{}, h, c};
  for (size_t k = 0; k < parts.size(); ++k) {
    result.traces[k] = network.steps == 0 ? at::empty({0, h.size(0), h.size(1)}, h.options())
                                          : at::stack(parts[k]);
  }
  return result;
}

std::vector<Operand> ReadLstmStates(const Call& call, int i, const Network& network) {
  const std::vector<Operand> states = call.Ins(i);
  if (!states.empty() && states.size() != 2) call.RejectArg(i, "must hold 2 tensors");
  for (const Operand& state : states) call.ExpectSizes(i, state.view(), network.state_sizes());
  return states;
}

// (input, params, hx, batchSizes?, hasBias, numLayers, dropout, train, bidirectional, batchFirst,
// output, hy, cy, i, j, f, o, h, c, tanhC); the last seven are written when training only.
std::unique_ptr<Kernel> BindLstm(const Call& call) {
  const Network network = ReadNetwork(call, {0, 1, 3, 4, 5, 6, 7, 8, 9}, kLstmGates);
  const Operand input = call.In(0);
  const std::vector<Operand> params = call.Ins(1), states = ReadLstmStates(call, 2, network);
  const bool train = call.Bool(7);
  const Tensor output = call.Out(10), hy = call.Out(11), cy = call.Out(12);
  call.ExpectSizes(10, output, network.output_sizes());
  for (int i : {11, 12}) call.ExpectSizes(i, call.View(i), network.state_sizes());
  std::array<TensorVector, 7> traces;
  for (int k = 0; train && k < 7; ++k) traces[k] = ReadTraceOutputs(call, 13 + k, network);
  return MakeKernel([=] {
    const TensorVector weights = ReadAll(params), initial = ReadAll(states);
    const Tensor sequence = network.StepsFirst(input()), alive = network.Alive();
    const Tensor zero = at::zeros({network.batch, network.hidden}, sequence.options());
    TensorVector last_h, last_c;
    const Tensor result =
        RunLayers(network, sequence, [&](int64_t cell, const Tensor& read, bool reverse) {
          const LstmResult one =
              RunLstmCell(network, read, alive, &weights[cell * network.per_cell()],
                          initial.empty() ? zero : initial[0][cell],
                          initial.empty() ? zero : initial[1][cell], reverse);
          last_h.push_back(one.h);
          last_c.push_back(one.c);
          for (size_t k = 0; k < 7; ++k) {
            if (!traces[k].empty()) traces[k][cell].copy_(one.traces[k]);
          }
          return ZeroGaps(alive, one.traces[kHidden]);
        });
    output.copy_(network.AsArgument(result, output.sizes()));
    hy.copy_(at::stack(last_h));
    cy.copy_(at::stack(last_c));
  });
}

// The gradients that one cell gives: of what it read, of its states before the first step, and of
// its parameters.
struct LstmGradients {
  Tensor input, h, c, gates, hidden_before;
};

LstmGradients RunLstmCellBackward(const Network& network, const LstmTraces& trace,
                                  const Tensor& alive, const Tensor* params, const Tensor& h_first,
                                  const Tensor& c_first, const Tensor& dy, Tensor dh, Tensor dc,
                                  bool reverse) {
  const Tensor &i = trace[kInputGate], &g = trace[kCandidate], &f = trace[kForgetGate],
               &o = trace[kOutputGate], &h = trace[kHidden], &c = trace[kState],
               &tanh_c = trace[kTanhState];
  const Tensor none = at::zeros({}, dy.options());
  TensorVector of_gates(network.steps), before(network.steps);
  const std::vector<int64_t> order = VisitOrder(network.steps, reverse);
  for (size_t n = order.size(); n-- > 0;) {
    const int64_t t = order[n];
    const Tensor here = alive.defined() ? alive[t] : Tensor();
    const Tensor c_before = n == 0 ? c_first : c[order[n - 1]];
    before[t] = n == 0 ? h_first : h[order[n - 1]];
    const Tensor of_h = dy[t] + dh;
    const Tensor of_c = dc + of_h * o[t] * (1 - tanh_c[t] * tanh_c[t]);
    const Tensor each =
        at::cat({of_c * g[t] * i[t] * (1 - i[t]), of_c * c_before * f[t] * (1 - f[t]),
                 of_c * i[t] * (1 - g[t] * g[t]), of_h * tanh_c[t] * o[t] * (1 - o[t])},
                1);
    of_gates[t] = Advance(here, each, none);
    dh = Advance(here, at::matmul(of_gates[t], params[1]), dh);
    dc = Advance(here, of_c * f[t], dc);
  }
  const Tensor all = at::stack(of_gates);
  return {at::matmul(all, params[0]), dh, dc, all.flatten(0, 1), at::stack(before).flatten(0, 1)};
}

// (input, hx, params, dy, dh, dc, i, g, f, o, h, c, tanhc, batchSizes?, hasBias, numLayers,
// dropout, train, bidirectional, batchFirst, mask?, dx, dhPrev, dcPrev, dparams)
std::unique_ptr<Kernel> BindLstmBackward(const Call& call) {
  const Network network = ReadNetwork(call, {0, 2, 13, 14, 15, 16, 17, 18, 19}, kLstmGates);
  if (network.steps == 0) call.RejectArg(0, "has no steps");
  const Operand input = call.In(0);
  const std::vector<Operand> states = ReadLstmStates(call, 1, network), params = call.Ins(2);
  if (states.empty()) call.RejectArg(1, "must hold 2 tensors");
  const Operand dy = call.OptionalIn(3), dh = call.OptionalIn(4), dc = call.OptionalIn(5);
  if (dy.defined()) call.ExpectSizes(3, dy.view(), network.output_sizes());
  for (int i : {4, 5}) {
    if (!call.IsAbsent(i)) call.ExpectSizes(i, call.View(i), network.state_sizes());
  }
  std::array<std::vector<Operand>, 7> traces;
  for (int k = 0; k < 7; ++k) traces[k] = ReadTraceInputs(call, 6 + k, network);
  const Tensor dx = call.Out(21), dh_first = call.Out(22), dc_first = call.Out(23);
  call.ExpectSizes(21, dx, input.sizes());
  for (int i : {22, 23}) call.ExpectSizes(i, call.View(i), network.state_sizes());
  const TensorVector dparams = ReadParameterGradients(call, 24, params);
  return MakeKernel([=] {
    const TensorVector weights = ReadAll(params), initial = ReadAll(states);
    const Tensor alive = network.Alive(), zero = at::zeros_like(initial[0][0]);
    const Tensor of_outputs =
        dy.defined()
            ? network.StepsFirst(dy())
            : at::zeros({1, 1, 1}, zero.options())
                  .expand({network.steps, network.batch, network.hidden * network.directions});
    TensorVector first_h(network.cells()), first_c(network.cells());
    const auto one_cell = [&](int64_t cell, const Tensor& read, const Tensor& gradient,
                              bool reverse) {
      LstmTraces trace;
      for (size_t k = 0; k < 7; ++k) trace[k] = traces[k][cell]();
      const size_t first = cell * network.per_cell();
      const LstmGradients one = RunLstmCellBackward(
          network, trace, alive, &weights[first], initial[0][cell], initial[1][cell], gradient,
          dh.defined() ? dh()[cell] : zero, dc.defined() ? dc()[cell] : zero, reverse);
      first_h[cell] = one.h;
      first_c[cell] = one.c;
      dparams[first].copy_(at::matmul(one.gates.t(), read.flatten(0, 1)));
      dparams[first + 1].copy_(at::matmul(one.gates.t(), one.hidden_before));
      for (size_t k = 2; k < network.per_cell(); ++k) dparams[first + k].copy_(one.gates.sum(0));
      return one.input;
    };
    const Tensor gradient = RunLayersBackward(network, ZeroGaps(alive, network.StepsFirst(input())),
                                              ReadAll(traces[kHidden]), of_outputs, one_cell);
    dx.copy_(network.AsArgument(gradient, dx.sizes()));
    dh_first.copy_(at::stack(first_h));
    dc_first.copy_(at::stack(first_c));
  });
}

// (inputGates, hiddenGates, cx, inputBias?, hiddenBias?, hy, cy, storage): the storage holds the
// gates after their functions, which the gradient needs.
std::unique_ptr<Kernel> BindLstmCell(const Call& call) {
  const Operand from_input = call.In(0), from_hidden = call.In(1), cx = call.In(2);
  const Operand input_bias = call.OptionalIn(3), hidden_bias = call.OptionalIn(4);
  const Tensor hy = call.Out(5), cy = call.Out(6), storage = call.Out(7);
  ExpectFloats(call, 2, cx.view());
  call.ExpectRank(2, cx.view(), 2);
  const std::vector<int64_t> gates{cx.sizes()[0], 4 * cx.sizes()[1]};
  for (int i : {0, 1, 7}) call.ExpectSizes(i, call.View(i), gates);
  for (int i : {5, 6}) call.ExpectSizes(i, call.View(i), cx.sizes());
  for (int i : {3, 4}) {
    if (call.IsAbsent(i)) continue;
    if (call.Broadcast({call.View(i).sizes(), gates}) != gates) {
      call.RejectArg(i, "does not broadcast to the gates");
    }
  }
  return MakeKernel([=] {
    Tensor sum = from_input() + from_hidden();
    if (input_bias.defined()) sum = sum + input_bias();
    if (hidden_bias.defined()) sum = sum + hidden_bias();
    const TensorVector quarter = sum.chunk(4, 1);
    const Tensor i = at::sigmoid(quarter[0]), f = at::sigmoid(quarter[1]);
    const Tensor g = at::tanh(quarter[2]), o = at::sigmoid(quarter[3]);
    const Tensor c = f * cx() + i * g;
    storage.copy_(at::cat({i, f, g, o}, 1));
    hy.copy_(o * at::tanh(c));
    cy.copy_(c);
  });
}

// (gradHy?, gradC?, cx, cy, storage, hasBias, gradGates, gradCx, gradBias)
std::unique_ptr<Kernel> BindLstmCellBackward(const Call& call) {
  const Operand of_hy = call.OptionalIn(0), of_cy = call.OptionalIn(1);
  const Operand cx = call.In(2), cy = call.In(3), storage = call.In(4);
  const bool bias = call.Bool(5);
  const Tensor of_gates = call.Out(6), of_cx = call.Out(7);
  ExpectFloats(call, 2, cx.view());
  call.ExpectRank(2, cx.view(), 2);
  const std::vector<int64_t> gates{cx.sizes()[0], 4 * cx.sizes()[1]};
  call.ExpectSizes(3, cy.view(), cx.sizes());
  call.ExpectSizes(4, storage.view(), gates);
  call.ExpectSizes(6, of_gates, gates);
  call.ExpectSizes(7, of_cx, cx.sizes());
  Tensor of_bias;
  if (bias) {
    of_bias = call.Out(8);
    call.ExpectSizes(8, of_bias, {gates[1]});
  }
  return MakeKernel([=] {
    const TensorVector quarter = storage().chunk(4, 1);
    const Tensor &i = quarter[0], &f = quarter[1], &g = quarter[2], &o = quarter[3];
    const Tensor tanh_c = at::tanh(cy());
    const Tensor zero = at::zeros_like(tanh_c);
    const Tensor h = of_hy.defined() ? of_hy() : zero;
    const Tensor c = h * o * (1 - tanh_c * tanh_c) + (of_cy.defined() ? of_cy() : zero);
    const Tensor result = at::cat({c * g * i * (1 - i), c * cx() * f * (1 - f), c * i * (1 - g * g),
                                   h * tanh_c * o * (1 - o)},
                                  1);
    of_gates.copy_(result);
    of_cx.copy_(c * f);
    if (of_bias.defined()) of_bias.copy_(result.sum(0));
  });
}

}  // namespace

KernelRows LstmRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnLSTM", BindLstm, kBoth, {13, 14, 15, 16, 17, 18, 19}},
      {"aclnnLstmBackward", BindLstmBackward, kBoth, {3, 4, 5}},
      {"aclnnThnnFusedLstmCell", BindLstmCell, kBoth},
      {"aclnnThnnFusedLstmCellBackward", BindLstmCellBackward, kBoth, {8}},
  };
}

}  // namespace acltape::opapi
