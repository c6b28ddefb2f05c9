// Recurrent layers, forward and backward, and their cells. Gates stand in the order input, forget,
// candidate, output.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/optional.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// What the arguments say about the network.
struct Network {
  bool bias = false;
  int64_t layers = 1, directions = 1, steps = 0, batch = 0, hidden = 0;
  bool batch_first = false;

  int64_t cells() const { return layers * directions; }
  // Weights and biases of one direction of one layer.
  size_t per_cell() const { return bias ? 4 : 2; }
};

// Where the arguments that say it stand.
struct NetworkArguments {
  int input, params, hx, batch_sizes, bias;
};

Tensors Read(const std::vector<Operand>& operands) {
  Tensors tensors;
  for (const Operand& operand : operands) tensors.push_back(operand());
  return tensors;
}

Network ReadNetwork(const Call& call, const NetworkArguments& at) {
  if (!call.IsAbsent(at.batch_sizes)) {
    call.RejectArg(at.batch_sizes, "is given; the soft device has sequences of one length only");
  }
  Network network;
  network.bias = call.Bool(at.bias);
  network.layers = call.Int(at.bias + 1);
  const double dropout = call.Real(at.bias + 2);
  const bool train = call.Bool(at.bias + 3);
  network.directions = call.Bool(at.bias + 4) ? 2 : 1;
  network.batch_first = call.Bool(at.bias + 5);
  if (network.layers < 1) call.RejectArg(at.bias + 1, "must be at least 1");
  if (dropout != 0 && train && network.layers > 1) {
    call.RejectArg(at.bias + 2, "is not 0; the soft device has no dropout between layers");
  }
  const Tensor input = call.View(at.input);
  ExpectFloats(call, at.input, input);
  call.ExpectRank(at.input, input, 3);
  network.steps = input.size(network.batch_first ? 1 : 0);
  network.batch = input.size(network.batch_first ? 0 : 1);
  const Tensors params = call.Views(at.params);
  if (params.size() != network.per_cell() * static_cast<size_t>(network.cells())) {
    call.RejectArg(at.params,
                   "has " + std::to_string(params.size()) + " tensors, expected " +
                       std::to_string(network.per_cell() * static_cast<size_t>(network.cells())));
  }
  network.hidden = params[1].dim() == 2 ? params[1].size(1) : 0;
  for (int64_t cell = 0; cell < network.cells(); ++cell) {
    const size_t first = static_cast<size_t>(cell) * network.per_cell();
    const int64_t width =
        cell < network.directions ? input.size(2) : network.hidden * network.directions;
    call.ExpectSizes(at.params, params[first], {4 * network.hidden, width});
    call.ExpectSizes(at.params, params[first + 1], {4 * network.hidden, network.hidden});
    for (size_t k = 2; k < network.per_cell(); ++k) {
      call.ExpectSizes(at.params, params[first + k], {4 * network.hidden});
    }
  }
  for (const Tensor& state : call.Views(at.hx)) {
    call.ExpectSizes(at.hx, state, {network.cells(), network.batch, network.hidden});
  }
  return network;
}

// What one direction of one layer computes, each [steps, batch, hidden].
struct CellTrace {
  Tensor i, g, f, o, h, c, tanh_c;
};

// The steps in the order in which a direction visits them.
std::vector<int64_t> Order(int64_t steps, bool reverse) {
  std::vector<int64_t> order(steps);
  for (int64_t t = 0; t < steps; ++t) order[t] = reverse ? steps - 1 - t : t;
  return order;
}

CellTrace RunCell(const Tensor& input, const Tensor* params, bool bias, Tensor h, Tensor c,
                  bool reverse) {
  const int64_t steps = input.size(0);
  Tensor from_input = at::matmul(input, params[0].t());
  if (bias) from_input = from_input + params[2];
  std::array<Tensors, 7> parts;
  for (Tensors& part : parts) part.resize(steps);
  for (int64_t t : Order(steps, reverse)) {
    Tensor gates = from_input[t] + at::matmul(h, params[1].t());
    if (bias) gates = gates + params[3];
    const Tensors quarter = gates.chunk(4, 1);
    const Tensor i = at::sigmoid(quarter[0]), f = at::sigmoid(quarter[1]);
    const Tensor g = at::tanh(quarter[2]), o = at::sigmoid(quarter[3]);
    c = f * c + i * g;
    const Tensor tanh_c = at::tanh(c);
    h = o * tanh_c;
    const Tensor values[] = {i, g, f, o, h, c, tanh_c};
    for (size_t k = 0; k < parts.size(); ++k) parts[k][t] = values[k];
  }
  const auto join = [&](size_t k) {
    return steps == 0 ? at::empty({0, h.size(0), h.size(1)}, h.options()) : at::stack(parts[k]);
  };
  return {join(0), join(1), join(2), join(3), join(4), join(5), join(6)};
}

Tensor StepsFirst(const Tensor& tensor, const Network& network) {
  return network.batch_first ? tensor.transpose(0, 1) : tensor;
}

// (input, params, hx, batchSizes?, hasBias, numLayers, dropout, train, bidirectional, batchFirst,
// output, hy, cy, i, j, f, o, h, c, tanhC); the last seven are written when training only.
std::unique_ptr<Kernel> BindLstm(const Call& call) {
  const Network network = ReadNetwork(call, {0, 1, 2, 3, 4});
  const Operand input = call.In(0);
  const std::vector<Operand> params = call.Ins(1), states = call.Ins(2);
  if (!states.empty() && states.size() != 2) call.RejectArg(2, "must hold 2 tensors");
  const bool train = call.Bool(7);
  const Tensor output = call.Out(10), hy = call.Out(11), cy = call.Out(12);
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.back() = network.hidden * network.directions;
  call.ExpectSizes(10, output, sizes);
  for (int i : {11, 12}) {
    call.ExpectSizes(i, call.View(i), {network.cells(), network.batch, network.hidden});
  }
  std::array<Tensors, 7> traces;
  for (int k = 0; train && k < 7; ++k) {
    traces[k] = call.Outs(13 + k);
    if (static_cast<int64_t>(traces[k].size()) != network.cells()) {
      call.RejectArg(13 + k, "needs one tensor for each layer and direction");
    }
    for (const Tensor& trace : traces[k]) {
      call.ExpectSizes(13 + k, trace, {network.steps, network.batch, network.hidden});
    }
  }
  return MakeKernel([=] {
    const Tensors weights = Read(params), initial = Read(states);
    Tensor sequence = StepsFirst(input(), network);
    const Tensor zero = at::zeros({network.batch, network.hidden}, sequence.options());
    Tensors last_h, last_c;
    for (int64_t layer = 0; layer < network.layers; ++layer) {
      Tensors outputs;
      for (int64_t direction = 0; direction < network.directions; ++direction) {
        const int64_t cell = layer * network.directions + direction;
        const CellTrace trace =
            RunCell(sequence, &weights[static_cast<size_t>(cell) * network.per_cell()],
                    network.bias, initial.empty() ? zero : initial[0][cell],
                    initial.empty() ? zero : initial[1][cell], direction == 1);
        outputs.push_back(trace.h);
        const int64_t last = direction == 1 ? 0 : network.steps - 1;
        last_h.push_back(trace.h[last]);
        last_c.push_back(trace.c[last]);
        const Tensor values[] = {trace.i, trace.g, trace.f,     trace.o,
                                 trace.h, trace.c, trace.tanh_c};
        for (size_t k = 0; k < 7; ++k) {
          if (!traces[k].empty()) traces[k][cell].copy_(values[k]);
        }
      }
      sequence = at::cat(outputs, 2);
    }
    output.copy_(network.batch_first ? sequence.transpose(0, 1) : sequence);
    hy.copy_(at::stack(last_h));
    cy.copy_(at::stack(last_c));
  });
}

// (input, hx, params, dy, dh, dc, i, g, f, o, h, c, tanhc, batchSizes?, hasBias, numLayers,
// dropout, train, bidirectional, batchFirst, mask?, dx, dhPrev, dcPrev, dparams)
std::unique_ptr<Kernel> BindLstmBackward(const Call& call) {
  const Network network = ReadNetwork(call, {0, 2, 1, 13, 14});
  const Operand input = call.In(0);
  const std::vector<Operand> states = call.Ins(1), params = call.Ins(2);
  if (states.size() != 2) call.RejectArg(1, "must hold 2 tensors");
  const Operand dy = call.In(3), dh = call.OptionalIn(4), dc = call.OptionalIn(5);
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.back() = network.hidden * network.directions;
  call.ExpectSizes(3, dy.view(), sizes);
  const std::vector<int64_t> state_sizes{network.cells(), network.batch, network.hidden};
  std::array<std::vector<Operand>, 7> traces;
  for (int k = 0; k < 7; ++k) {
    traces[k] = call.Ins(6 + k);
    if (static_cast<int64_t>(traces[k].size()) != network.cells()) {
      call.RejectArg(6 + k, "needs one tensor for each layer and direction");
    }
    for (const Operand& trace : traces[k]) {
      call.ExpectSizes(6 + k, trace.view(), {network.steps, network.batch, network.hidden});
    }
  }
  const Tensor dx = call.Out(21), dh_first = call.Out(22), dc_first = call.Out(23);
  call.ExpectSizes(21, dx, input.sizes());
  for (int i : {22, 23}) call.ExpectSizes(i, call.View(i), state_sizes);
  const Tensors dparams = call.Outs(24);
  if (dparams.size() != params.size()) call.RejectArg(24, "needs one tensor for each of params");
  for (size_t k = 0; k < params.size(); ++k) {
    call.ExpectSizes(24, dparams[k], params[k].sizes());
  }
  return MakeKernel([=] {
    const Tensors weights = Read(params), initial = Read(states);
    Tensor gradient = StepsFirst(dy(), network);
    Tensors first_h(network.cells()), first_c(network.cells());
    for (int64_t layer = network.layers - 1; layer >= 0; --layer) {
      Tensors below;  // what the layer read: the input, or the directions of the layer below
      for (int64_t direction = 0; layer > 0 && direction < network.directions; ++direction) {
        below.push_back(traces[4][(layer - 1) * network.directions + direction]());
      }
      const Tensor sequence = layer == 0 ? StepsFirst(input(), network) : at::cat(below, 2);
      const Tensors apart = gradient.chunk(network.directions, 2);
      Tensor of_sequence;
      for (int64_t direction = 0; direction < network.directions; ++direction) {
        const int64_t cell = layer * network.directions + direction;
        const size_t first = static_cast<size_t>(cell) * network.per_cell();
        const auto trace = [&](size_t k) { return traces[k][cell](); };
        const Tensor i = trace(0), g = trace(1), f = trace(2), o = trace(3), h = trace(4),
                     c = trace(5), tanh_c = trace(6);
        Tensor next_h = dh.defined() ? dh()[cell] : at::zeros_like(initial[0][cell]);
        Tensor next_c = dc.defined() ? dc()[cell] : at::zeros_like(initial[1][cell]);
        Tensors of_gates(network.steps), before(network.steps);
        std::vector<int64_t> order = Order(network.steps, direction == 1);
        for (size_t n = order.size(); n-- > 0;) {
          const int64_t t = order[n];
          const Tensor c_before = n == 0 ? initial[1][cell] : c[order[n - 1]];
          before[t] = n == 0 ? initial[0][cell] : h[order[n - 1]];
          const Tensor of_h = apart[direction][t] + next_h;
          const Tensor of_c = next_c + of_h * o[t] * (1 - tanh_c[t] * tanh_c[t]);
          of_gates[t] =
              at::cat({of_c * g[t] * i[t] * (1 - i[t]), of_c * c_before * f[t] * (1 - f[t]),
                       of_c * i[t] * (1 - g[t] * g[t]), of_h * tanh_c[t] * o[t] * (1 - o[t])},
                      1);
          next_h = at::matmul(of_gates[t], weights[first + 1]);
          next_c = of_c * f[t];
        }
        first_h[cell] = next_h;
        first_c[cell] = next_c;
        const Tensor all = at::stack(of_gates), flat = all.flatten(0, 1);
        dparams[first].copy_(at::matmul(flat.t(), sequence.flatten(0, 1)));
        dparams[first + 1].copy_(at::matmul(flat.t(), at::stack(before).flatten(0, 1)));
        if (network.bias) {
          dparams[first + 2].copy_(flat.sum(0));
          dparams[first + 3].copy_(flat.sum(0));
        }
        const Tensor part = at::matmul(all, weights[first]);
        of_sequence = of_sequence.defined() ? of_sequence + part : part;
      }
      gradient = of_sequence;
    }
    dx.copy_(network.batch_first ? gradient.transpose(0, 1) : gradient);
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
  return MakeKernel([=] {
    Tensor sum = from_input() + from_hidden();
    if (input_bias.defined()) sum = sum + input_bias();
    if (hidden_bias.defined()) sum = sum + hidden_bias();
    const Tensors quarter = sum.chunk(4, 1);
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
    const Tensors quarter = storage().chunk(4, 1);
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

KernelRows RecurrentRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnLSTM", BindLstm, kBoth, {13, 14, 15, 16, 17, 18, 19}},
      {"aclnnLstmBackward", BindLstmBackward, kBoth, {4, 5}},
      {"aclnnThnnFusedLstmCell", BindLstmCell, kBoth},
      {"aclnnThnnFusedLstmCellBackward", BindLstmCellBackward, kBoth, {8}},
  };
}

}  // namespace acltape::opapi
