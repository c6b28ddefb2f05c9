// Steps of the optimiser Adam by name, which change a parameter and its two moments. Each computes
// in float32 and rounds once.
#include <cmath>

#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// A number of a step: the input that gives it, its name, and its place among the settings.
template <typename Settings>
struct StepNumber {
  int input;
  const char* name;
  double Settings::*to;
};

template <typename Settings, size_t kCount>
aclError ReadStepNumbers(const NamedCall& call, const StepNumber<Settings> (&numbers)[kCount],
                         Settings* with) {
  for (const auto& number : numbers) {
    ACLTAPE_RETURN_IF_FAILED(ReadNumber(call, number.input, number.name, &(with->*number.to)));
  }
  return ACL_SUCCESS;
}

// The inputs 0 to 2 and the outputs are the parameter and its moments. They and these other inputs
// have the parameter's shape and type.
aclError CheckStep(const NamedCall& call, std::initializer_list<int> others) {
  const aclDataType type = call.inputs.descs[0]->type;
  std::vector<int> shaped{0, 1, 2};
  shaped.insert(shaped.end(), others);
  for (int i : shaped) {
    ACLTAPE_RETURN_IF_FAILED(CheckInputShape(call, i, call.inputs.Shape(0)));
    ACLTAPE_RETURN_IF_FAILED(CheckFloats(call, call.inputs, i));
    ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.inputs.descs[i]->type));
  }
  for (int i = 0; i < 3; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, i, ("output " + std::to_string(i)).c_str()));
    ACLTAPE_RETURN_IF_FAILED(CheckFloats(call, call.outputs, i));
    ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.outputs.descs[i]->type));
    ACLTAPE_RETURN_IF_FAILED(CheckShape(call, i, call.inputs.Shape(0)));
  }
  return ACL_SUCCESS;
}

// The tensors of a step as rows of elements, whatever their shape.
struct StepRows {
  explicit StepRows(const NamedCall& call)
      : in(call), length{static_cast<int64_t>(ElementsOf(call.inputs.Shape(0)))} {}

  Value Read(int input) { return in.Read(input, length, step); }
  // The input, moved towards other values: it keeps the part `beta` of itself.
  Value Moved(int input, double beta, const Value& towards) {
    return in.Add(in.Times(Read(input), beta), in.Times(towards, 1 - beta));
  }
  // Gives the three results.
  aclError Write(const Value& var, const Value& m, const Value& v) {
    in.Write(var, 0, step);
    in.Write(m, 1, step);
    in.Write(v, 2, step);
    return in.status();
  }

  NamedArithmetic in;
  const std::vector<int64_t> length, step{1};
};

struct BertAdamSettings {
  double lr, beta1, beta2, epsilon, max_grad_norm, global_grad_norm, weight_decay, step_size;
};

// (var, m, v, lr, beta1, beta2, epsilon, grad, max_grad_norm, global_grad_norm, weight_decay,
// step_size) to (var, m, v). The mode "mbart_adam" alone has a step size.
aclError StepBertAdam(const NamedCall& call) {
  constexpr int kGradient = 7;
  constexpr StepNumber<BertAdamSettings> kNumbers[] = {
      {3, "lr", &BertAdamSettings::lr},
      {4, "beta1", &BertAdamSettings::beta1},
      {5, "beta2", &BertAdamSettings::beta2},
      {6, "epsilon", &BertAdamSettings::epsilon},
      {8, "max_grad_norm", &BertAdamSettings::max_grad_norm},
      {9, "global_grad_norm", &BertAdamSettings::global_grad_norm},
      {10, "weight_decay", &BertAdamSettings::weight_decay}};
  const bool other = call.Text("adam_mode") == "mbart_adam";
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, other ? 12 : 11, 3));
  ACLTAPE_RETURN_IF_FAILED(CheckStep(call, {kGradient}));
  BertAdamSettings with{};
  ACLTAPE_RETURN_IF_FAILED(ReadStepNumbers(call, kNumbers, &with));
  if (other) ACLTAPE_RETURN_IF_FAILED(ReadNumber(call, 11, "step_size", &with.step_size));
  StepRows rows(call);
  NamedArithmetic& in = rows.in;
  Value gradient = rows.Read(kGradient);
  if (with.max_grad_norm > 0 && with.global_grad_norm > 1) {
    gradient = in.Over(gradient, with.global_grad_norm);
  }
  const Value var = rows.Read(0), m = rows.Moved(1, with.beta1, gradient);
  const Value v = rows.Moved(2, with.beta2, in.Multiply(gradient, gradient));
  Value update = in.Divide(m, in.Plus(in.Sqrt(v), with.epsilon));
  if (other) update = in.Times(update, with.step_size);
  if (with.weight_decay > 0) {
    update = in.Add(update, in.Times(var, with.weight_decay * (other ? with.lr : 1)));
  }
  if (!other) update = in.Times(update, with.lr);
  return rows.Write(in.Subtract(var, update), m, v);
}

struct AdamSettings {
  double beta1_power, beta2_power, lr, beta1, beta2, epsilon;
};

// (var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad) to (var, m, v). The powers
// are those of this step. The attribute use_locking changes no result.
aclError StepAdam(const NamedCall& call) {
  constexpr int kGradient = 9;
  constexpr StepNumber<AdamSettings> kNumbers[] = {{3, "beta1_power", &AdamSettings::beta1_power},
                                                   {4, "beta2_power", &AdamSettings::beta2_power},
                                                   {5, "lr", &AdamSettings::lr},
                                                   {6, "beta1", &AdamSettings::beta1},
                                                   {7, "beta2", &AdamSettings::beta2},
                                                   {8, "epsilon", &AdamSettings::epsilon}};
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 10, 3));
  ACLTAPE_RETURN_IF_FAILED(CheckStep(call, {kGradient}));
  AdamSettings with{};
  ACLTAPE_RETURN_IF_FAILED(ReadStepNumbers(call, kNumbers, &with));
  StepRows rows(call);
  NamedArithmetic& in = rows.in;
  const Value gradient = rows.Read(kGradient), m = rows.Moved(1, with.beta1, gradient);
  const Value v = rows.Moved(2, with.beta2, in.Multiply(gradient, gradient));
  Value direction = m;
  if (FlagOf(call, "use_nesterov", false)) {
    direction = in.Add(in.Times(m, with.beta1), in.Times(gradient, 1 - with.beta1));
  }
  const double rate = with.lr * std::sqrt(1 - with.beta2_power) / (1 - with.beta1_power);
  const Value update = in.Divide(in.Times(direction, rate), in.Plus(in.Sqrt(v), with.epsilon));
  return rows.Write(in.Subtract(rows.Read(0), update), m, v);
}

struct AdamWSettings {
  double beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon;
};

// (var, m, v, beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon, grad,
// max_grad_norm) to (var, m, v). The powers are those of the step before this one. With amsgrad the
// greatest second moment so far, max_grad_norm, takes the place of v in the step alone: it is no
// output, so it stays as it is, and v is written as without it.
aclError StepAdamW(const NamedCall& call) {
  constexpr int kGradient = 10, kGreatest = 11;
  constexpr StepNumber<AdamWSettings> kNumbers[] = {
      {3, "beta1_power", &AdamWSettings::beta1_power},
      {4, "beta2_power", &AdamWSettings::beta2_power},
      {5, "lr", &AdamWSettings::lr},
      {6, "weight_decay", &AdamWSettings::weight_decay},
      {7, "beta1", &AdamWSettings::beta1},
      {8, "beta2", &AdamWSettings::beta2},
      {9, "epsilon", &AdamWSettings::epsilon}};
  const bool with_greatest = FlagOf(call, "amsgrad", false);
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 11, 3));
  ACLTAPE_RETURN_IF_FAILED(CheckStep(call, {kGradient}));
  if (with_greatest) ACLTAPE_RETURN_IF_FAILED(CheckStep(call, {kGreatest}));
  AdamWSettings with{};
  ACLTAPE_RETURN_IF_FAILED(ReadStepNumbers(call, kNumbers, &with));
  StepRows rows(call);
  NamedArithmetic& in = rows.in;
  Value gradient = rows.Read(kGradient);
  if (FlagOf(call, "maximize", false)) gradient = in.Times(gradient, -1);
  const Value m = rows.Moved(1, with.beta1, gradient);
  const Value v = rows.Moved(2, with.beta2, in.Multiply(gradient, gradient));
  const Value second = with_greatest ? in.Greater(rows.Read(kGreatest), v) : v;
  const double corrected1 = 1 - with.beta1_power * with.beta1;
  const double corrected2 = 1 - with.beta2_power * with.beta2;
  const Value denominator = in.Plus(in.Sqrt(in.Over(second, corrected2)), with.epsilon);
  const Value update = in.Times(in.Divide(m, denominator), with.lr / corrected1);
  const Value decayed = in.Times(rows.Read(0), 1 - with.lr * with.weight_decay);
  return rows.Write(in.Subtract(decayed, update), m, v);
}

constexpr NamedOperator kAdamSteps[] = {
    {"ApplyAdamD", StepAdam},
    {"ApplyAdamV2", StepBertAdam},
    {"ApplyAdamW", StepAdamW},
};

}  // namespace

NamedTable OptimisersByName() { return kAdamSteps; }

}  // namespace acltape::device
