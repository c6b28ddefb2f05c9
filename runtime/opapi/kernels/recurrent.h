// Parts that recurrent layers share: their arguments, layers and directions, and sequences of
// different lengths.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "runtime/opapi/engine/kernel_table.h"

namespace acltape::opapi {

using TensorVector = std::vector<at::Tensor>;

// The family's rows, by the kind of cell.
KernelRows LstmRows();
KernelRows GruRows();

// The positions of the arguments that describe a network; -1: the operator has no such argument.
struct NetworkArguments {
  int input, params, batch_sizes, bias, layers, dropout, train, bidirectional, batch_first;
};

// A network of layers with one or two directions. A cell is one direction of one layer; cells are
// counted by layers first.
struct Network {
  bool bias = false;
  int64_t gates = 0, layers = 1, directions = 1, steps = 0, batch = 0, hidden = 0;
  bool batch_first = false;
  // The number of sequences that have each step, when they are of different lengths. They lie in
  // the order of their lengths, the longest first. The tensor is in device memory.
  at::Tensor batch_sizes;

  int64_t cells() const { return layers * directions; }
  // Weights and biases of one cell.
  size_t per_cell() const { return bias ? 4 : 2; }
  std::vector<int64_t> state_sizes() const { return {cells(), batch, hidden}; }
  std::vector<int64_t> trace_sizes() const { return {steps, batch, hidden}; }
  // The sizes of what the last layer gives, or of its gradient.
  std::vector<int64_t> output_sizes() const;

  // An argument as [steps, batch, width]; and such a tensor in the order of the arguments.
  at::Tensor StepsFirst(const at::Tensor& tensor) const;
  at::Tensor AsArgument(const at::Tensor& tensor, at::IntArrayRef sizes) const;

  // True where a sequence has a step: [steps, batch, 1]. Undefined when all sequences have all
  // steps. It reads device memory.
  at::Tensor Alive() const;
};

// Reads and checks what describes the network. Weights have `gates` blocks of rows.
//
// Note [Sequences of different lengths]: the adapter packs them with gaps. The input is
// [steps * batch, width] with all rows of each step, and batchSizes says how many of them count.
// Gaps are not read; results have zeros there, and states stay as they are.
Network ReadNetwork(const Call& call, const NetworkArguments& at, int64_t gates);

// The members of a list, which holds one tensor of `sizes` for each cell.
TensorVector ReadTraceOutputs(const Call& call, int i, const Network& network);
std::vector<Operand> ReadTraceInputs(const Call& call, int i, const Network& network);
// The gradients of the parameters, of their sizes.
TensorVector ReadParameterGradients(const Call& call, int i, const std::vector<Operand>& params);

TensorVector ReadAll(const std::vector<Operand>& operands);

// The steps in the order in which a direction visits them.
std::vector<int64_t> VisitOrder(int64_t steps, bool reverse);

// `next` where a sequence has the step, else `before`. `alive` is of one step, or undefined.
at::Tensor Advance(const at::Tensor& alive, const at::Tensor& next, const at::Tensor& before);

// The tensor with zeros where no sequence has the step. `alive` is of all steps, or undefined.
at::Tensor ZeroGaps(const at::Tensor& alive, const at::Tensor& tensor);

// Calls `cell(index, sequence, reverse)` for all cells; each gives [steps, batch, hidden]. The
// result is what the last layer gives, [steps, batch, directions * hidden].
template <typename Cell>
at::Tensor RunLayers(const Network& network, at::Tensor sequence, const Cell& cell) {
  for (int64_t layer = 0; layer < network.layers; ++layer) {
    TensorVector outputs;
    for (int64_t direction = 0; direction < network.directions; ++direction) {
      outputs.push_back(cell(layer * network.directions + direction, sequence, direction == 1));
    }
    sequence = at::cat(outputs, 2);
  }
  return sequence;
}

// Runs the gradients of all cells, from the last layer to the first. `cell(index, sequence,
// gradient, reverse)` gets its layer's input and the gradient of its output, and gives the gradient
// of its input. `states` are the outputs of all cells.
template <typename Cell>
at::Tensor RunLayersBackward(const Network& network, const at::Tensor& input,
                             const TensorVector& states, at::Tensor gradient, const Cell& cell) {
  for (int64_t layer = network.layers - 1; layer >= 0; --layer) {
    const auto below = states.begin() + (layer - 1) * network.directions;
    const at::Tensor sequence =
        layer == 0 ? input : at::cat(TensorVector(below, below + network.directions), 2);
    const TensorVector apart = gradient.chunk(network.directions, 2);
    at::Tensor sum;
    for (int64_t direction = 0; direction < network.directions; ++direction) {
      const at::Tensor part =
          cell(layer * network.directions + direction, sequence, apart[direction], direction == 1);
      sum = sum.defined() ? sum + part : part;
    }
    gradient = sum;
  }
  return gradient;
}

}  // namespace acltape::opapi
