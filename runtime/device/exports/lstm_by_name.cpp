// LSTM layers that a program calls by name (aclop): several layers, two directions, layers without
// biases and cells reach a device so from torch_npu.
//
// The gates stand in the order input, forget, candidate, output in the columns of the weights. The
// forward pass is a handful of operators a step, each of which writes to an output of the call: the
// gates' sums and then their values lie where the gates are given back, so no memory is needed
// beside the program's. Operators by name get a workspace from the device, which a recorder would
// not see. Sequences of several lengths, and those that are read from their end, are in
// by_name/lstm_in_order.cpp.
#include "aclnnop/aclnn_addcmul.h"
#include "aclnnop/aclnn_addmm.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_lstm_backward.h"
#include "aclnnop/aclnn_mm.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_sigmoid.h"
#include "aclnnop/aclnn_tanh.h"
#include "runtime/device/by_name/lstm.h"

namespace acltape::device {
namespace {

// The positions of an operator's arguments.
constexpr LstmArguments kLayer{0, 1, 1, 2, 3, 4, 5, 0, 1, 2, {3, 5, 4, 6}, 7};
constexpr LstmArguments kCell{0, 1, 2, 3, 4, 5, 6, 0, 1, 2, {3, 5, 4, 6}, 7};
constexpr LstmGradientArguments kLayerGradient{0,  1,  1, 4, 5, 6, 7, 8, 9, 10, {11, 13, 12, 14},
                                               15, 16, 0, 0, 1, 2, 3, 4};
constexpr LstmGradientArguments kCellGradient{0,  1,  2, 4, 5, 6, 7, 8, 9, 10, {11, 13, 12, 14},
                                              15, 16, 0, 1, 2, 3, 4, 5};

// A cell has one step, whose dimension is left out of the gradient's tensors.
aclError ReadSizes(const NamedCall& call, int x, const std::vector<int64_t>& outputs,
                   LstmSizes* sizes) {
  const std::vector<int64_t>& input = call.inputs.Shape(x);
  const size_t rank = input.size();
  if ((rank != 2 && rank != 3) || outputs.size() != rank) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: the sequence has %zu dimensions and the result %zu, expected 3 or 2",
                call.name, rank, outputs.size());
  }
  *sizes = {rank == 3 ? input[0] : 1, input[rank - 2], input[rank - 1], outputs[rank - 1]};
  return ACL_SUCCESS;
}

class Forward {
 public:
  Forward(const NamedCall& call, const LstmArguments& at, const LstmSizes& sizes)
      : call_(call), at_(at), sizes_(sizes) {}

  aclError Run() {
    for (int64_t gate = 0; gate < kLstmColumns; ++gate) ACLTAPE_RETURN_IF_FAILED(FromInput(gate));
    for (int64_t step = 0; step < sizes_.steps; ++step) ACLTAPE_RETURN_IF_FAILED(Step(step));
    OperatorArguments own;
    const std::vector<int64_t> whole{sizes_.steps, sizes_.batch, sizes_.hidden};
    return RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(
        call_, "aclnnInplaceCopy", own.Dense(call_.outputs, at_.y, whole),
        own.Dense(call_.outputs, at_.all_h, whole));
  }

 private:
  // Columns of a gate in a weight matrix whose rows begin at `offset`.
  aclTensor* Weight(OperatorArguments& own, int weight, int64_t rows, int64_t offset,
                    int64_t gate) {
    return own.View(call_.inputs, weight, {rows, sizes_.hidden}, {sizes_.columns(), 1},
                    offset + gate * sizes_.hidden);
  }
  // One step of an output.
  aclTensor* At(OperatorArguments& own, int output, int64_t step) {
    return own.Dense(call_.outputs, output, {sizes_.batch, sizes_.hidden}, step * sizes_.state());
  }
  // A state before a step: the one that the program gave, or the step before's.
  aclTensor* Before(OperatorArguments& own, int first, int all, int64_t step) {
    if (step > 0) return At(own, all, step - 1);
    return own.Dense(call_.inputs, first, {sizes_.batch, sizes_.hidden});
  }

  // Computes the part of a gate that comes from the input and the bias, for all steps at once.
  aclError FromInput(int64_t gate) {
    OperatorArguments own;
    const aclTensor* x = own.Dense(call_.inputs, at_.x, {sizes_.rows(), sizes_.width});
    const aclTensor* weight = Weight(own, at_.input_weight, sizes_.width, 0, gate);
    aclTensor* out = own.Dense(call_.outputs, at_.gates[gate], {sizes_.rows(), sizes_.hidden});
    if (!call_.inputs.Has(at_.bias)) {
      return RunOperator<decltype(&aclnnMmGetWorkspaceSize)>(call_, "aclnnMm", x, weight, out,
                                                             int8_t{0});
    }
    const aclTensor* bias =
        own.Dense(call_.inputs, at_.bias, {sizes_.hidden}, gate * sizes_.hidden);
    const aclScalar* one = own.Float(1);
    return RunOperator<decltype(&aclnnAddmmGetWorkspaceSize)>(call_, "aclnnAddmm", bias, x, weight,
                                                              one, one, out, int8_t{0});
  }

  aclError Step(int64_t step) {
    OperatorArguments own;
    const int64_t shared = sizes_.HiddenOffset(at_.hidden_weight == at_.input_weight);
    const aclScalar* one = own.Float(1);
    const aclTensor* h = Before(own, at_.h, at_.all_h, step);
    const aclTensor* c_before = Before(own, at_.c, at_.all_c, step);
    aclTensor* gates[kLstmColumns];
    for (int64_t gate = 0; gate < kLstmColumns; ++gate) {
      gates[gate] = At(own, at_.gates[gate], step);
      ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceAddmmGetWorkspaceSize)>(
          call_, "aclnnInplaceAddmm", gates[gate], h,
          Weight(own, at_.hidden_weight, sizes_.hidden, shared, gate), one, one, int8_t{0}));
    }
    const auto [input, forget, candidate, output] = gates;
    for (aclTensor* gate : {input, forget, output}) {
      ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceSigmoidGetWorkspaceSize)>(
          call_, "aclnnInplaceSigmoid", gate));
    }
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceTanhGetWorkspaceSize)>(
        call_, "aclnnInplaceTanh", candidate));
    aclTensor* c = At(own, at_.all_c, step);
    aclTensor* tanh_c = At(own, at_.tanh_c, step);
    ACLTAPE_RETURN_IF_FAILED(
        RunOperator<decltype(&aclnnMulGetWorkspaceSize)>(call_, "aclnnMul", forget, c_before, c));
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceAddcmulGetWorkspaceSize)>(
        call_, "aclnnInplaceAddcmul", c, input, candidate, one));
    ACLTAPE_RETURN_IF_FAILED(
        RunOperator<decltype(&aclnnTanhGetWorkspaceSize)>(call_, "aclnnTanh", c, tanh_c));
    return RunOperator<decltype(&aclnnMulGetWorkspaceSize)>(call_, "aclnnMul", output, tanh_c,
                                                            At(own, at_.all_h, step));
  }

  const NamedCall& call_;
  const LstmArguments& at_;
  const LstmSizes& sizes_;
};

// `last_input` and `last_output` are the last ones that are looked at.
aclError CheckTensors(const NamedCall& call, int last_input, int last_output) {
  if (call.inputs.count > last_input && call.outputs.count > last_output) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: it has %d inputs and %d outputs, expected %d and %d", call.name,
              call.inputs.count, call.outputs.count, last_input + 1, last_output + 1);
}

aclError RunForward(const NamedCall& call, const LstmArguments& at) {
  ACLTAPE_RETURN_IF_FAILED(CheckTensors(call, at.c, at.tanh_c));
  LstmSizes sizes{};
  LstmOrder order;
  ACLTAPE_RETURN_IF_FAILED(ReadSizes(call, at.x, call.outputs.Shape(at.all_h), &sizes));
  ACLTAPE_RETURN_IF_FAILED(ReadLstmOrder(call, at.sequence_length, sizes, &order));
  return order.plain() ? Forward(call, at, sizes).Run() : RunLstmInOrder(call, at, sizes, order);
}

aclError RunGradient(const NamedCall& call, const LstmGradientArguments& at) {
  ACLTAPE_RETURN_IF_FAILED(CheckTensors(call, at.sequence_length, at.c_out));
  LstmSizes sizes{};
  LstmOrder order;
  ACLTAPE_RETURN_IF_FAILED(ReadSizes(call, at.x, call.inputs.Shape(at.all_h), &sizes));
  ACLTAPE_RETURN_IF_FAILED(ReadLstmOrder(call, at.sequence_length, sizes, &order));
  if (!order.plain()) return RunLstmGradientInOrder(call, at, sizes, order);
  const int64_t columns = sizes.columns();
  const int64_t hidden_offset = sizes.HiddenOffset(at.hidden_weight == at.input_weight);
  const std::vector<int64_t> state{1, sizes.batch, sizes.hidden};
  const std::vector<int64_t> sequence{sizes.steps, sizes.batch, sizes.hidden};
  OperatorArguments own;
  const auto in = [&](int i, const std::vector<int64_t>& shape) {
    return own.Dense(call.inputs, i, shape);
  };
  const auto traced = [&](int i) { return own.List({in(i, sequence)}); };
  // aclnnLstmBackward has the weights of torch.nn.LSTM, a row a gate; here they have a column a
  // gate.
  const auto weights = [&](const NamedTensors& tensors, int input, int hidden) {
    return std::vector<aclTensor*>{
        own.View(tensors, input, {columns, sizes.width}, {1, columns}),
        own.View(tensors, hidden, {columns, sizes.hidden}, {1, columns}, hidden_offset)};
  };
  std::vector<aclTensor*> params = weights(call.inputs, at.input_weight, at.hidden_weight);
  std::vector<aclTensor*> out = weights(call.outputs, at.input_weight_out, at.hidden_weight_out);
  for (int i = 0; i < 2; ++i) {
    // The gradient reads no bias, so that any tensor of the size stands for it. That of both is
    // one.
    params.push_back(own.Dense(call.inputs, at.hidden_weight, {columns}, hidden_offset));
    out.push_back(own.Dense(call.outputs, at.bias_out, {columns}));
  }
  const aclTensor* x = in(at.x, {sizes.steps, sizes.batch, sizes.width});
  const aclTensorList* hx = own.List({in(at.h, state), in(at.c, state)});
  const aclTensorList* param_list = own.List(params);
  const aclTensorList* gates[kLstmColumns];
  for (int64_t gate = 0; gate < kLstmColumns; ++gate) gates[gate] = traced(at.gates[gate]);
  // The order of its gates is input, candidate, forget, output.
  return RunOperator<decltype(&aclnnLstmBackwardGetWorkspaceSize)>(
      call, "aclnnLstmBackward", x, hx, param_list, in(at.dy, sequence), in(at.dh, state),
      in(at.dc, state), gates[0], gates[2], gates[1], gates[3], traced(at.all_h), traced(at.all_c),
      traced(at.tanh_c), nullptr, true, int64_t{1}, 0.0, true, false, false, nullptr,
      own.Dense(call.outputs, at.x_out, {sizes.steps, sizes.batch, sizes.width}),
      own.Dense(call.outputs, at.h_out, state), own.Dense(call.outputs, at.c_out, state),
      own.List(out));
}

}  // namespace

aclError RunLstm(const NamedCall& call) { return RunForward(call, kLayer); }
aclError RunLstmCell(const NamedCall& call) { return RunForward(call, kCell); }
aclError RunLstmGradient(const NamedCall& call) { return RunGradient(call, kLayerGradient); }
aclError RunLstmCellGradient(const NamedCall& call) { return RunGradient(call, kCellGradient); }

}  // namespace acltape::device
