#include "runtime/opapi/kernels/recurrent.h"

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {

using at::Tensor;

std::vector<int64_t> Network::output_sizes() const {
  const int64_t first = batch_first ? batch : steps, second = batch_first ? steps : batch;
  return {first, second, hidden * directions};
}

Tensor Network::StepsFirst(const Tensor& tensor) const {
  if (batch_sizes.defined()) return tensor.reshape({steps, batch, tensor.size(-1)});
  return batch_first ? tensor.transpose(0, 1) : tensor;
}

Tensor Network::AsArgument(const Tensor& tensor, at::IntArrayRef sizes) const {
  if (batch_sizes.defined()) return tensor.reshape(sizes);
  return batch_first ? tensor.transpose(0, 1) : tensor;
}

Tensor Network::Alive() const {
  if (!batch_sizes.defined()) return {};
  const Tensor positions = at::arange(batch, at::TensorOptions(at::kLong)).reshape({1, -1, 1});
  return positions.lt(batch_sizes.to(at::kLong).reshape({-1, 1, 1}));
}

namespace {

// Sizes of an input with gaps: see Note [Sequences of different lengths].
void ReadPackedSizes(const Call& call, const NetworkArguments& at, const Tensor& input,
                     Network& network) {
  network.batch_sizes = call.View(at.batch_sizes);
  call.ExpectRank(at.batch_sizes, network.batch_sizes, 1);
  call.ExpectIndex(at.batch_sizes, network.batch_sizes);
  call.ExpectRank(at.input, input, 2);
  network.steps = network.batch_sizes.size(0);
  network.batch = input.size(0) / network.steps;
  network.batch_first = false;
  if (network.steps * network.batch != input.size(0)) {
    call.RejectArg(at.input, "has " + std::to_string(input.size(0)) +
                                 " rows, which do not split into " + std::to_string(network.steps) +
                                 " steps of one batch");
  }
}

void ReadInputSizes(const Call& call, const NetworkArguments& at, const Tensor& input,
                    Network& network) {
  network.batch_first = call.Bool(at.batch_first);
  if (!call.IsAbsent(at.batch_sizes)) {
    ReadPackedSizes(call, at, input, network);
    return;
  }
  call.ExpectRank(at.input, input, 3);
  network.steps = input.size(network.batch_first ? 1 : 0);
  network.batch = input.size(network.batch_first ? 0 : 1);
}

void CheckParameters(const Call& call, int i, int64_t width, Network& network) {
  const TensorVector params = call.Views(i);
  const size_t expected = network.per_cell() * static_cast<size_t>(network.cells());
  if (params.size() != expected) {
    call.RejectArg(i, "has " + std::to_string(params.size()) + " tensors, expected " +
                          std::to_string(expected));
  }
  network.hidden = params[1].dim() == 2 ? params[1].size(1) : 0;
  const int64_t rows = network.gates * network.hidden;
  for (int64_t cell = 0; cell < network.cells(); ++cell) {
    const size_t first = static_cast<size_t>(cell) * network.per_cell();
    const int64_t read = cell < network.directions ? width : network.hidden * network.directions;
    call.ExpectSizes(i, params[first], {rows, read});
    call.ExpectSizes(i, params[first + 1], {rows, network.hidden});
    for (size_t k = 2; k < network.per_cell(); ++k) {
      call.ExpectSizes(i, params[first + k], {rows});
    }
  }
}

}  // namespace

Network ReadNetwork(const Call& call, const NetworkArguments& at, int64_t gates) {
  Network network;
  network.gates = gates;
  network.bias = call.Bool(at.bias);
  network.layers = call.Int(at.layers);
  network.directions = call.Bool(at.bidirectional) ? 2 : 1;
  if (network.layers < 1) call.RejectArg(at.layers, "must be at least 1");
  if (at.dropout >= 0 && call.Real(at.dropout) != 0 && call.Bool(at.train) && network.layers > 1) {
    call.RejectArg(at.dropout, "is not 0; the soft device has no dropout between layers");
  }
  const Tensor input = call.View(at.input);
  ExpectFloats(call, at.input, input);
  ReadInputSizes(call, at, input, network);
  CheckParameters(call, at.params, input.size(-1), network);
  return network;
}

namespace {

void ExpectOneForEachCell(const Call& call, int i, size_t count, const Network& network) {
  if (static_cast<int64_t>(count) == network.cells()) return;
  call.RejectArg(i, "needs one tensor for each layer and direction");
}

}  // namespace

TensorVector ReadTraceOutputs(const Call& call, int i, const Network& network) {
  const TensorVector outs = call.Outs(i);
  ExpectOneForEachCell(call, i, outs.size(), network);
  for (const Tensor& out : outs) call.ExpectSizes(i, out, network.trace_sizes());
  return outs;
}

std::vector<Operand> ReadTraceInputs(const Call& call, int i, const Network& network) {
  const std::vector<Operand> traces = call.Ins(i);
  ExpectOneForEachCell(call, i, traces.size(), network);
  for (const Operand& trace : traces) call.ExpectSizes(i, trace.view(), network.trace_sizes());
  return traces;
}

TensorVector ReadParameterGradients(const Call& call, int i, const std::vector<Operand>& params) {
  const TensorVector gradients = call.Outs(i);
  if (gradients.size() != params.size()) call.RejectArg(i, "needs one tensor for each of params");
  for (size_t k = 0; k < params.size(); ++k) {
    call.ExpectSizes(i, gradients[k], params[k].sizes());
  }
  return gradients;
}

TensorVector ReadAll(const std::vector<Operand>& operands) {
  TensorVector tensors;
  for (const Operand& operand : operands) tensors.push_back(operand());
  return tensors;
}

std::vector<int64_t> VisitOrder(int64_t steps, bool reverse) {
  std::vector<int64_t> order(steps);
  for (int64_t t = 0; t < steps; ++t) order[t] = reverse ? steps - 1 - t : t;
  return order;
}

Tensor Advance(const Tensor& alive, const Tensor& next, const Tensor& before) {
  return alive.defined() ? at::where(alive, next, before) : next;
}

Tensor ZeroGaps(const Tensor& alive, const Tensor& tensor) {
  return Advance(alive, tensor, at::zeros({}, tensor.options()));
}

KernelRows RecurrentRows() {
  KernelRows rows = LstmRows();
  for (KernelRow& row : GruRows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace acltape::opapi
