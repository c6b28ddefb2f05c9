// Steps of Adam by name, beside formulas of doubles for each element.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Numbers that float16 and bfloat16 hold exactly.
constexpr double kRate = 0.25, kBeta1 = 0.75, kBeta2 = 0.875, kEpsilon = 0.0078125;
constexpr double kPower1 = 0.5, kPower2 = 0.625, kDecay = 0.125;

// A parameter, its moments, a gradient and the greatest second moment so far.
struct StepTensors {
  StepTensors(at::IntArrayRef shape, at::ScalarType type)
      : var(Random(shape, type)),
        m(Random(shape, type)),
        v(Random(shape, type, 0.5, 2)),
        gradient(Random(shape, type)),
        greatest(Random(shape, type, 0.5, 2)) {}

  Tensor var, m, v, gradient, greatest;
};

struct StepOf {
  double var, m, v;
};

// Compares each element with what the formula gives for it.
template <typename Formula>
void ExpectStep(const StepTensors& before, const StepTensors& after, const Formula& formula) {
  const double tolerance = before.var.scalar_type() == at::kFloat  ? 1e-5
                           : before.var.scalar_type() == at::kHalf ? 2e-3
                                                                   : 2e-2;
  const auto number = [](const Tensor& of, int64_t i) { return of.view(-1)[i].item<double>(); };
  for (int64_t i = 0; i < before.var.numel(); ++i) {
    const StepOf wanted = formula({number(before.var, i), number(before.m, i), number(before.v, i)},
                                  number(before.gradient, i), number(before.greatest, i));
    EXPECT_NEAR(number(after.var, i), wanted.var, tolerance * (1 + std::abs(wanted.var))) << i;
    EXPECT_NEAR(number(after.m, i), wanted.m, tolerance * (1 + std::abs(wanted.m))) << i;
    EXPECT_NEAR(number(after.v, i), wanted.v, tolerance * (1 + std::abs(wanted.v))) << i;
  }
}

StepTensors CopyOfStep(const StepTensors& tensors) {
  StepTensors copy = tensors;
  for (Tensor* tensor : {&copy.var, &copy.m, &copy.v}) *tensor = tensor->clone();
  return copy;
}

void AddNumbers(NamedCall& call, at::ScalarType type, std::initializer_list<double> numbers) {
  for (double number : numbers) call.Host(at::scalar_tensor(number, type));
}

void DescribeAdam(NamedCall& call, const StepTensors& of) {
  const at::ScalarType type = of.var.scalar_type();
  call.In(of.var).In(of.m).In(of.v);
  AddNumbers(call, type, {kPower1, kPower2, kRate, kBeta1, kBeta2, kEpsilon});
  call.In(of.gradient).Out(of.var).Out(of.m).Out(of.v);
}

void DescribeAdamW(NamedCall& call, const StepTensors& of, bool greatest) {
  const at::ScalarType type = of.var.scalar_type();
  call.In(of.var).In(of.m).In(of.v);
  AddNumbers(call, type, {kPower1, kPower2, kRate, kDecay, kBeta1, kBeta2, kEpsilon});
  call.In(of.gradient);
  if (greatest) {
    call.In(of.greatest);
  } else {
    call.None();
  }
  call.Out(of.var).Out(of.m).Out(of.v);
}

void ExpectStepToBeRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(AdamByName, AStepWithThePowersOfTheBetas) {
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (bool nesterov : {false, true}) {
      const StepTensors before({3, 1, 4}, type);
      const StepTensors after = CopyOfStep(before);
      NamedCall call("ApplyAdamD");
      DescribeAdam(call, after);
      call.Set("use_locking", true).Set("use_nesterov", nesterov);
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      ExpectStep(before, after, [&](const StepOf& old, double g, double) {
        StepOf wanted{0, old.m + (1 - kBeta1) * (g - old.m),
                      old.v + (1 - kBeta2) * (g * g - old.v)};
        const double rate = kRate * std::sqrt(1 - kPower2) / (1 - kPower1);
        const double direction = nesterov ? wanted.m * kBeta1 + (1 - kBeta1) * g : wanted.m;
        wanted.var = old.var - rate * direction / (kEpsilon + std::sqrt(wanted.v));
        return wanted;
      });
    }
  }
}

TEST(AdamByName, AStepWithDecayAndTheGreatestMoment) {
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (bool greatest : {false, true}) {
      for (bool maximise : {false, true}) {
        const StepTensors before({7}, type);
        const StepTensors after = CopyOfStep(before);
        const Tensor kept = before.greatest.clone();
        NamedCall call("ApplyAdamW");
        DescribeAdamW(call, after, greatest);
        call.Set("amsgrad", greatest).Set("maximize", maximise);
        ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
        EXPECT_TRUE(SameBits(before.greatest, kept));
        ExpectStep(before, after, [&](const StepOf& old, double g, double most) {
          if (maximise) g = -g;
          StepOf wanted{0, old.m * kBeta1 - (kBeta1 - 1) * g,
                        old.v * kBeta2 - (kBeta2 - 1) * g * g};
          const double second = greatest ? std::max(most, wanted.v) : wanted.v;
          const double root = std::sqrt(second / (1 - kPower2 * kBeta2)) + kEpsilon;
          wanted.var =
              old.var * (1 - kRate * kDecay) - kRate / (1 - kPower1 * kBeta1) * wanted.m / root;
          return wanted;
        });
      }
    }
  }
  // Without amsgrad the greatest moment may be there, and is not read.
  const StepTensors tensors({2}, at::kFloat);
  NamedCall unused("ApplyAdamW");
  DescribeAdamW(unused, tensors, true);
  EXPECT_EQ(unused.Run(), ACL_SUCCESS) << TakeMessage();
}

TEST(AdamByName, ParametersWithoutElementsAndOfOne) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{{0, 3}, {}, {1}}) {
    const StepTensors before(shape, at::kFloat);
    const StepTensors after = CopyOfStep(before);
    NamedCall step("ApplyAdamD"), decayed("ApplyAdamW");
    DescribeAdam(step, after);
    EXPECT_EQ(step.Run(), ACL_SUCCESS) << TakeMessage();
    DescribeAdamW(decayed, after, false);
    EXPECT_EQ(decayed.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_EQ(at::equal(before.var, after.var), before.var.numel() == 0);
  }
}

TEST(AdamByName, WrongTensorsAreRefused) {
  const StepTensors tensors({3}, at::kFloat);
  const auto with = [&](const char* name, const Tensor& gradient, const char* said) {
    StepTensors changed = tensors;
    changed.gradient = gradient;
    NamedCall call(name);
    if (std::string(name) == "ApplyAdamD") {
      DescribeAdam(call, changed);
    } else {
      DescribeAdamW(call, changed, false);
    }
    ExpectStepToBeRefused(call, said);
  };
  with("ApplyAdamD", at::zeros({4}), "input 9 has the shape [4], expected [3]");
  with("ApplyAdamD", at::zeros({3}, at::kInt), "the soft device takes float32, float16");
  with("ApplyAdamD", at::zeros({3}, at::kHalf), "its tensors have the types 0 and 1");
  with("ApplyAdamW", at::zeros({3, 1}), "input 10 has the shape [3, 1], expected [3]");
  NamedCall greatest("ApplyAdamW");
  DescribeAdamW(greatest, tensors, false);
  ExpectStepToBeRefused(greatest.Set("amsgrad", true), "input 11 is missing");
  NamedCall fewer("ApplyAdamD");
  fewer.In(tensors.var);
  ExpectStepToBeRefused(fewer, "it has 1 inputs and 0 outputs, expected at least 10 and 3");
  StepTensors other = tensors;
  other.var = at::zeros({3});
  NamedCall on_device("ApplyAdamD");
  on_device.In(other.var).In(other.m).In(other.v);
  for (int i = 0; i < 6; ++i) on_device.In(at::scalar_tensor(0.5f));
  on_device.In(other.gradient).Out(other.var).Out(other.m).Out(other.v);
  ExpectStepToBeRefused(on_device, "beta1_power is known on the device alone");
}

TEST(AdamByName, ACapturedStepRunsAgain) {
  aclrtStream stream = nullptr;
  TestStream();
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  const StepTensors captured({5}, at::kFloat);
  const StepTensors eager = CopyOfStep(captured);
  aclmdlRI model = nullptr;
  NamedCall call("ApplyAdamD");
  DescribeAdam(call, captured);
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  ASSERT_EQ(call.Launch(stream), ACL_SUCCESS) << TakeMessage();
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    NamedCall again("ApplyAdamD");
    DescribeAdam(again, eager);
    ASSERT_EQ(again.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(captured.var, eager.var));
    EXPECT_TRUE(SameBits(captured.v, eager.v));
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

}  // namespace
}  // namespace acltape::opapi
