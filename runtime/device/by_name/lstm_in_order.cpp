// LSTM layers over sequences of several lengths, or from the last step to the first, and their
// gradients, as formulas of float32 (Note [Lengths of sequences]).
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/lstm.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// Refuses a tensor that is missing, or that has not this number of elements.
aclError CheckLstmTensor(const NamedCall& call, bool output, int i, int64_t count) {
  const std::string name = (output ? "output " : "input ") + std::to_string(i);
  ACLTAPE_RETURN_IF_FAILED(output ? CheckOutput(call, i, name.c_str())
                                  : CheckInput(call, i, name.c_str()));
  const NamedTensors& tensors = output ? call.outputs : call.inputs;
  const aclDataType type = tensors.descs[i]->type;
  if (static_cast<int64_t>(ElementsOf(tensors.Shape(i))) == count &&
      (type == ACL_FLOAT || type == ACL_FLOAT16)) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: %s has the shape %s and the type %d; expected %lld elements of float32 or "
              "float16",
              call.name, name.c_str(), ShapeText(tensors.Shape(i)).c_str(), static_cast<int>(type),
              static_cast<long long>(count));
}

aclError CheckLstmTensors(const NamedCall& call, bool output, std::initializer_list<int> positions,
                          int64_t count) {
  for (int i : positions) ACLTAPE_RETURN_IF_FAILED(CheckLstmTensor(call, output, i, count));
  return ACL_SUCCESS;
}

aclError CheckLstmWeights(const NamedCall& call, bool output, int input, int hidden,
                          const LstmSizes& sizes) {
  const int64_t of_input = sizes.width * sizes.columns(),
                of_hidden = sizes.hidden * sizes.columns();
  if (input == hidden) return CheckLstmTensor(call, output, input, of_input + of_hidden);
  ACLTAPE_RETURN_IF_FAILED(CheckLstmTensor(call, output, input, of_input));
  return CheckLstmTensor(call, output, hidden, of_hidden);
}

// A layer's tensors, step for step.
class LstmSteps {
 public:
  LstmSteps(const NamedCall& call, const LstmSizes& sizes, const LstmOrder& order)
      : in(call), sizes_(sizes), order_(order) {}

  // The step that is visited as number k.
  int64_t Visited(int64_t k) const { return order_.reversed ? sizes_.steps - 1 - k : k; }
  bool masked() const { return order_.lengths != LstmOrder::kOne; }

  // One state of a sequence: an input of all steps at a step, or that of one step.
  Value State(int input, int64_t step = 0) {
    return in.Read(input, {sizes_.batch, sizes_.hidden}, {sizes_.hidden, 1}, step * sizes_.state());
  }
  void WriteState(const Value& value, int output, int64_t step = 0) {
    in.Write(value, output, {sizes_.hidden, 1}, step * sizes_.state());
  }
  // The state before the step that is visited as number k.
  Value Before(int first, int all, int64_t k) {
    return k == 0 ? State(first) : State(all, Visited(k - 1));
  }
  // The columns of a gate, of a value with a row for each sequence and step.
  Value Gate(const Value& all, int64_t gate, int64_t step = 0) {
    return in.Part(all, {sizes_.batch, sizes_.hidden}, {sizes_.columns(), 1},
                   step * sizes_.batch * sizes_.columns() + gate * sizes_.hidden);
  }

  // 1 for each sequence that has the step, else 0.
  Value Alive(int64_t step) {
    if (order_.lengths == LstmOrder::kMask) return State(order_.input, step);
    const Value lengths = in.Read(order_.input, {sizes_.batch, 1}, {1, 1});
    return in.Positive(in.Plus(lengths, -static_cast<double>(step)));
  }
  // `now` where a sequence is alive, else `before`.
  Value Kept(const Value& alive, const Value& now, const Value& before) {
    return in.Add(before, in.Multiply(alive, in.Subtract(now, before)));
  }
  // 1 - a * b
  Value Rest(const Value& a, const Value& b) { return in.Plus(in.Times(in.Multiply(a, b), -1), 1); }

  NamedArithmetic in;

 private:
  const LstmSizes& sizes_;
  const LstmOrder& order_;
};

}  // namespace

aclError ReadLstmOrder(const NamedCall& call, int sequence_length, const LstmSizes& sizes,
                       LstmOrder* order) {
  const std::string direction = call.Text("direction");
  *order = {LstmOrder::kOne, sequence_length, direction == "REDIRECTIONAL"};
  if (!order->reversed && !direction.empty() && direction != "UNIDIRECTIONAL") {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: direction is %s; the soft device has UNIDIRECTIONAL and REDIRECTIONAL",
                call.name, direction.c_str());
  }
  if (!call.inputs.Has(sequence_length)) return ACL_SUCCESS;
  const std::vector<int64_t>& shape = call.inputs.Shape(sequence_length);
  // A scalar stands for none.
  if (shape.empty() || ElementsOf(shape) == 0) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, sequence_length, "seq_length"));
  const aclDataType type = call.inputs.descs[sequence_length]->type;
  const std::vector<int64_t> mask{sizes.steps, sizes.batch, sizes.hidden}, lengths{sizes.batch};
  if (shape == mask && (type == ACL_FLOAT16 || type == ACL_FLOAT)) {
    order->lengths = LstmOrder::kMask;
  } else if (shape == lengths && type == ACL_INT32) {
    order->lengths = LstmOrder::kOfEach;
  } else {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: seq_length has the shape %s and the type %d; the soft device takes a "
                "mask of shape %s in float16 or float32, or int32 lengths of shape %s",
                call.name, ShapeText(shape).c_str(), static_cast<int>(type),
                ShapeText(mask).c_str(), ShapeText(lengths).c_str());
  }
  return ACL_SUCCESS;
}

aclError RunLstmInOrder(const NamedCall& call, const LstmArguments& at, const LstmSizes& sizes,
                        const LstmOrder& order) {
  const bool biased = call.inputs.Has(at.bias);
  const int64_t columns = sizes.columns(), rows = sizes.rows();
  ACLTAPE_RETURN_IF_FAILED(CheckLstmTensor(call, false, at.x, rows * sizes.width));
  ACLTAPE_RETURN_IF_FAILED(CheckLstmWeights(call, false, at.input_weight, at.hidden_weight, sizes));
  if (biased) ACLTAPE_RETURN_IF_FAILED(CheckLstmTensor(call, false, at.bias, columns));
  ACLTAPE_RETURN_IF_FAILED(CheckLstmTensors(call, false, {at.h, at.c}, sizes.state()));
  ACLTAPE_RETURN_IF_FAILED(CheckLstmTensors(
      call, true,
      {at.y, at.all_h, at.all_c, at.gates[0], at.gates[1], at.gates[2], at.gates[3], at.tanh_c},
      sizes.steps * sizes.state()));
  LstmSteps steps(call, sizes, order);
  NamedArithmetic& in = steps.in;
  Value from_input = in.Product(in.Read(at.x, {rows, sizes.width}, {sizes.width, 1}),
                                in.Read(at.input_weight, {sizes.width, columns}, {columns, 1}));
  if (biased) from_input = in.Add(from_input, in.Read(at.bias, {1, columns}, {columns, 1}));
  const Value weight = in.Read(at.hidden_weight, {sizes.hidden, columns}, {columns, 1},
                               sizes.HiddenOffset(at.hidden_weight == at.input_weight));
  Value h = steps.State(at.h), c = steps.State(at.c);
  for (int64_t k = 0; k < sizes.steps; ++k) {
    const int64_t step = steps.Visited(k);
    const Value here =
        in.Part(from_input, {sizes.batch, columns}, {columns, 1}, step * sizes.batch * columns);
    const Value sums = in.Add(here, in.Product(h, weight));
    const Value gates[] = {in.Sigmoid(steps.Gate(sums, 0)), in.Sigmoid(steps.Gate(sums, 1)),
                           in.Tanh(steps.Gate(sums, 2)), in.Sigmoid(steps.Gate(sums, 3))};
    const auto& [input, forget, candidate, output] = gates;
    const Value next_c = in.Add(in.Multiply(forget, c), in.Multiply(input, candidate));
    const Value alive = steps.masked() ? steps.Alive(step) : Value{};
    c = steps.masked() ? steps.Kept(alive, next_c, c) : next_c;
    const Value tanh_c = in.Tanh(c);
    Value y = in.Multiply(output, tanh_c);
    if (steps.masked()) y = in.Multiply(y, alive);
    h = steps.masked() ? steps.Kept(alive, y, h) : y;
    for (int64_t gate = 0; gate < kLstmColumns; ++gate) {
      steps.WriteState(gates[gate], at.gates[gate], step);
    }
    steps.WriteState(y, at.y, step);
    steps.WriteState(h, at.all_h, step);
    steps.WriteState(c, at.all_c, step);
    steps.WriteState(tanh_c, at.tanh_c, step);
  }
  return in.status();
}

aclError RunLstmGradientInOrder(const NamedCall& call, const LstmGradientArguments& at,
                                const LstmSizes& sizes, const LstmOrder& order) {
  const int64_t columns = sizes.columns(), rows = sizes.rows(), hidden = sizes.hidden;
  const int64_t offset = sizes.HiddenOffset(at.hidden_weight == at.input_weight);
  ACLTAPE_RETURN_IF_FAILED(CheckLstmTensor(call, false, at.x, rows * sizes.width));
  ACLTAPE_RETURN_IF_FAILED(CheckLstmWeights(call, false, at.input_weight, at.hidden_weight, sizes));
  ACLTAPE_RETURN_IF_FAILED(
      CheckLstmTensors(call, false, {at.h, at.c, at.dh, at.dc}, sizes.state()));
  ACLTAPE_RETURN_IF_FAILED(CheckLstmTensors(
      call, false,
      {at.all_h, at.all_c, at.dy, at.gates[0], at.gates[1], at.gates[2], at.gates[3], at.tanh_c},
      sizes.steps * sizes.state()));
  ACLTAPE_RETURN_IF_FAILED(
      CheckLstmWeights(call, true, at.input_weight_out, at.hidden_weight_out, sizes));
  ACLTAPE_RETURN_IF_FAILED(CheckLstmTensor(call, true, at.bias_out, columns));
  ACLTAPE_RETURN_IF_FAILED(CheckLstmTensor(call, true, at.x_out, rows * sizes.width));
  ACLTAPE_RETURN_IF_FAILED(CheckLstmTensors(call, true, {at.h_out, at.c_out}, sizes.state()));
  LstmSteps steps(call, sizes, order);
  NamedArithmetic& in = steps.in;
  const Value to_state = in.Read(at.hidden_weight, {columns, hidden}, {1, columns}, offset);
  const Value of_sums = in.Space({rows, columns}), before = in.Space({rows, hidden});
  Value dh = steps.State(at.dh), dc = steps.State(at.dc);
  for (int64_t k = sizes.steps; k-- > 0;) {
    const int64_t step = steps.Visited(k);
    const Value input = steps.State(at.gates[0], step), forget = steps.State(at.gates[1], step);
    const Value candidate = steps.State(at.gates[2], step);
    const Value output = steps.State(at.gates[3], step);
    const Value tanh_c = steps.State(at.tanh_c, step);
    const Value alive = steps.masked() ? steps.Alive(step) : Value{};
    const auto living = [&](const Value& a) { return steps.masked() ? in.Multiply(a, alive) : a; };
    const Value dy = living(in.Add(steps.State(at.dy, step), dh));
    const Value of_c =
        in.Add(living(dc), in.Multiply(in.Multiply(dy, output), steps.Rest(tanh_c, tanh_c)));
    // The derivative of the sigmoid, of its value.
    const auto sigmoid = [&](const Value& a) { return in.Subtract(a, in.Multiply(a, a)); };
    const Value of_gates[] = {
        in.Multiply(in.Multiply(of_c, candidate), sigmoid(input)),
        in.Multiply(in.Multiply(of_c, steps.Before(at.c, at.all_c, k)), sigmoid(forget)),
        in.Multiply(in.Multiply(of_c, input), steps.Rest(candidate, candidate)),
        in.Multiply(in.Multiply(dy, tanh_c), sigmoid(output))};
    for (int64_t gate = 0; gate < kLstmColumns; ++gate) {
      in.Set(steps.Gate(of_sums, gate, step), of_gates[gate]);
    }
    in.Set(in.Part(before, {sizes.batch, hidden}, {hidden, 1}, step * sizes.state()),
           steps.Before(at.h, at.all_h, k));
    const Value here =
        in.Part(of_sums, {sizes.batch, columns}, {columns, 1}, step * sizes.batch * columns);
    const Value through_h = in.Product(here, to_state), through_c = in.Multiply(of_c, forget);
    // A sequence that lacks the step hands on what it has, unchanged.
    dh = steps.masked() ? in.Add(through_h, in.Subtract(dh, living(dh))) : through_h;
    dc = steps.masked() ? in.Add(through_c, in.Subtract(dc, living(dc))) : through_c;
  }
  steps.WriteState(dh, at.h_out);
  steps.WriteState(dc, at.c_out);
  const Value of_x =
      in.Product(of_sums, in.Read(at.input_weight, {columns, sizes.width}, {1, columns}));
  in.Write(of_x, at.x_out, {sizes.width, 1});
  in.Write(in.Product(in.Read(at.x, {sizes.width, rows}, {1, sizes.width}), of_sums),
           at.input_weight_out, {columns, 1});
  in.Write(in.Product(in.Part(before, {hidden, rows}, {1, hidden}), of_sums), at.hidden_weight_out,
           {columns, 1}, at.hidden_weight_out == at.input_weight_out ? offset : 0);
  in.Write(in.Sum(of_sums, {0}), at.bias_out, {1});
  return in.status();
}

}  // namespace acltape::device
