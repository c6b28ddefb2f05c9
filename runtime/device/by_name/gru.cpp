// A layer of gated recurrent units in one direction and its gradient, by the operators' names, as
// aclnnGRU and aclnnGRUBackward.
#include "aclnnop/aclnn_gru.h"
#include "aclnnop/aclnn_gru_backward.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

constexpr int64_t kColumnGroups = 3;  // one for each gate

// Positions of inputs, and of outputs.
enum GruInput { kX, kInputWeight, kStateWeight, kInputBias, kStateBias, kLengths, kFirstState };
enum GruOutput { kY, kStates, kUpdate, kReset, kNew, kNewOfState };
// Those of the gradient.
enum GruGradientInput {
  kOfX,
  kOfInputWeight,
  kOfStateWeight,
  kOfY,
  kOfFirstState,
  kOfStates,
  kGradientOfY,
  kGradientOfLast,
  kOfUpdate,
  kOfReset,
  kOfNew,
  kOfNewOfState,
  kOfLengths
};
enum GruGradientOutput {
  kToInputWeight,
  kToStateWeight,
  kToInputBias,
  kToStateBias,
  kToX,
  kToFirstState
};

// The gates stand in the order reset, update, new in the columns of the weights, and the reset gate
// multiplies what the state adds to the new gate.
aclError CheckGruForm(const NamedCall& call, int of_lengths) {
  const std::string direction = call.Text("direction"), order = call.Text("gate_order");
  const bool lengths = call.inputs.Has(of_lengths) && ElementsOf(call.inputs.Shape(of_lengths)) > 1;
  if ((direction.empty() || direction == "UNIDIRECTIONAL") && order == "rzh" &&
      FlagOf(call, "reset_after", true) && FlagOf(call, "time_major", true) && !lengths) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "aclop %s: the soft device has the direction UNIDIRECTIONAL, the gate_order rzh, "
              "reset_after, time_major, and sequences of one length only",
              call.name);
}

// The sequence has steps, batch and width, and the weight of the state is a matrix.
aclError CheckGruRanks(const NamedCall& call, int x, int state_weight) {
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, x, "x"));
  const size_t dims = call.inputs.Shape(x).size();
  const size_t weight_dims = call.inputs.Shape(state_weight).size();
  if (dims == 3 && weight_dims == 2) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: x has %zu dims and weight_hidden %zu, expected 3 and 2", call.name, dims,
              weight_dims);
}

aclError RunGruLayer(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, kStateWeight + 1, kNewOfState + 1));
  ACLTAPE_RETURN_IF_FAILED(CheckGruForm(call, kLengths));
  ACLTAPE_RETURN_IF_FAILED(CheckGruRanks(call, kX, kStateWeight));
  const std::vector<int64_t>& sequence = call.inputs.Shape(kX);
  const std::vector<int64_t>& weight = call.inputs.Shape(kStateWeight);
  const int64_t steps = sequence[0], batch = sequence[1], width = sequence[2], hidden = weight[0];
  const int64_t columns = kColumnGroups * hidden;
  ACLTAPE_RETURN_IF_FAILED(CheckInputShape(call, kInputWeight, {width, columns}));
  ACLTAPE_RETURN_IF_FAILED(CheckInputShape(call, kStateWeight, {hidden, columns}));
  const std::vector<int64_t> states{steps, batch, hidden}, state{1, batch, hidden};
  for (int i = kY; i <= kNewOfState; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, i, ("output " + std::to_string(i)).c_str()));
    ACLTAPE_RETURN_IF_FAILED(CheckShape(call, i, states));
  }
  OperatorArguments own;
  // aclnnGRU has the weights of torch.nn.GRU, a row a gate; here they have a column a gate.
  std::vector<aclTensor*> params{
      own.View(call.inputs, kInputWeight, {columns, width}, {1, columns}),
      own.View(call.inputs, kStateWeight, {columns, hidden}, {1, columns})};
  const bool biased = call.inputs.Has(kInputBias) && call.inputs.Has(kStateBias);
  for (int i : {kInputBias, kStateBias}) {
    if (!biased) continue;
    ACLTAPE_RETURN_IF_FAILED(CheckInputShape(call, i, {columns}));
    params.push_back(own.Dense(call.inputs, i, {columns}));
  }
  const aclTensor* first = nullptr;
  if (call.inputs.Has(kFirstState)) {
    ACLTAPE_RETURN_IF_FAILED(CheckInput(call, kFirstState, "init_h"));
    if (ElementsOf(call.inputs.Shape(kFirstState)) != ElementsOf(state)) {
      return CheckInputShape(call, kFirstState, state);
    }
    first = own.Dense(call.inputs, kFirstState, state);
  }
  NamedScratch scratch(call.stream);
  void* last = nullptr;
  const aclDataType type = call.outputs.descs[kY]->type;
  if (ElementsOf(state) > 0) {
    ACLTAPE_RETURN_IF_FAILED(scratch.Take(ElementsOf(state) * aclDataTypeSize(type), &last));
  }
  const auto output = [&](int i) { return own.Dense(call.outputs, i, states); };
  const auto traced = [&](int i) { return own.List({output(i)}); };
  const aclTensorList* param_list = own.List(params);
  return RunOperator<decltype(&aclnnGRUGetWorkspaceSize)>(
      call, "aclnnGRU", own.Dense(call.inputs, kX, sequence), param_list, first, nullptr, biased,
      int64_t{1}, 0.0, true, false, false, output(kY),
      own.Tensor(type, last, state, state, RowMajorStrides(state)), traced(kReset), traced(kUpdate),
      traced(kNew), traced(kNewOfState), traced(kStates));
}

// A state that may come without the dim of its layer.
aclError CheckGruState(const NamedCall& call, int i, const std::vector<int64_t>& state) {
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, i, ("input " + std::to_string(i)).c_str()));
  if (ElementsOf(call.inputs.Shape(i)) == ElementsOf(state)) return ACL_SUCCESS;
  return CheckInputShape(call, i, state);
}

aclError RunGruGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, kOfNewOfState + 1, kToFirstState + 1));
  ACLTAPE_RETURN_IF_FAILED(CheckGruForm(call, kOfLengths));
  ACLTAPE_RETURN_IF_FAILED(CheckGruRanks(call, kOfX, kOfStateWeight));
  const std::vector<int64_t>& sequence = call.inputs.Shape(kOfX);
  const std::vector<int64_t>& weight = call.inputs.Shape(kOfStateWeight);
  const int64_t steps = sequence[0], batch = sequence[1], width = sequence[2], hidden = weight[0];
  const int64_t columns = kColumnGroups * hidden;
  const std::vector<int64_t> states{steps, batch, hidden}, state{1, batch, hidden};
  ACLTAPE_RETURN_IF_FAILED(CheckInputShape(call, kOfInputWeight, {width, columns}));
  ACLTAPE_RETURN_IF_FAILED(CheckInputShape(call, kOfStateWeight, {hidden, columns}));
  for (int i : {kOfStates, kGradientOfY, kOfUpdate, kOfReset, kOfNew, kOfNewOfState}) {
    ACLTAPE_RETURN_IF_FAILED(CheckInputShape(call, i, states));
  }
  for (int i : {kOfFirstState, kGradientOfLast}) {
    ACLTAPE_RETURN_IF_FAILED(CheckGruState(call, i, state));
  }
  for (int i = kToInputWeight; i <= kToFirstState; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, i, ("output " + std::to_string(i)).c_str()));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, kToInputWeight, {width, columns}));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, kToStateWeight, {hidden, columns}));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, kToInputBias, {columns}));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, kToStateBias, {columns}));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, kToX, sequence));
  if (ElementsOf(call.outputs.Shape(kToFirstState)) != ElementsOf(state)) {
    return CheckShape(call, kToFirstState, state);
  }
  OperatorArguments own;
  const auto weights = [&](const NamedTensors& tensors, int of_input, int of_state) {
    return std::vector<aclTensor*>{own.View(tensors, of_input, {columns, width}, {1, columns}),
                                   own.View(tensors, of_state, {columns, hidden}, {1, columns})};
  };
  std::vector<aclTensor*> params = weights(call.inputs, kOfInputWeight, kOfStateWeight);
  std::vector<aclTensor*> to = weights(call.outputs, kToInputWeight, kToStateWeight);
  for (int i : {kToInputBias, kToStateBias}) {
    // The gradient reads no bias, so that any tensor of the size stands for it.
    params.push_back(own.Dense(call.inputs, kOfStateWeight, {columns}));
    to.push_back(own.Dense(call.outputs, i, {columns}));
  }
  const auto input = [&](int i) { return own.Dense(call.inputs, i, states); };
  const auto traced = [&](int i) { return own.List({input(i)}); };
  const aclTensorList* param_list = own.List(params);
  return RunOperator<decltype(&aclnnGRUBackwardGetWorkspaceSize)>(
      call, "aclnnGRUBackward", own.Dense(call.inputs, kOfX, sequence), param_list,
      own.Dense(call.inputs, kOfFirstState, state), input(kGradientOfY),
      own.Dense(call.inputs, kGradientOfLast, state), traced(kOfReset), traced(kOfUpdate),
      traced(kOfNew), traced(kOfNewOfState), traced(kOfStates), nullptr, true, int64_t{1}, false,
      false, own.Dense(call.outputs, kToX, sequence), own.Dense(call.outputs, kToFirstState, state),
      own.List(to));
}

constexpr NamedOperator kRecurrent[] = {
    {"DynamicGRUV2", RunGruLayer},
    {"DynamicGRUV2Grad", RunGruGradient},
};

}  // namespace

NamedTable RecurrentByName() { return kRecurrent; }

}  // namespace acltape::device
