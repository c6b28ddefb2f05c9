// A layer norm with the mean and the variance of each row, and its gradient, by the operator's
// name.
#include <algorithm>

#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// The product adds it to a variance: its kernels call it the least positive number.
constexpr double kLeastVariance = 1e-12;

aclError CheckNormTypes(const NamedCall& call) {
  for (const NamedTensors* side : {&call.inputs, &call.outputs}) {
    for (int i = 0; i < side->count; ++i) {
      const aclDataType type = side->descs[i]->type;
      if ((type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16) && !side->InBlocks(i)) {
        continue;
      }
      return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                  "aclop %s: tensor %d has the type %d, or lies in blocks; the soft device takes "
                  "float32, float16 and bfloat16 in plain order",
                  call.name, i, static_cast<int>(type));
    }
  }
  return ACL_SUCCESS;
}

// (x, gamma, beta) to (y, mean, variance).
aclError LayerNormWithVariance(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 3));
  ACLTAPE_RETURN_IF_FAILED(CheckNormTypes(call));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const auto axis = [&](const char* name) {
    const int64_t given = IntegerOf(call, name, 0);
    return given < 0 ? given + rank : given;
  };
  const int64_t begin = axis("begin_norm_axis");
  if (begin < 0 || begin >= rank || axis("begin_params_axis") != begin) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: begin_norm_axis is %lld and begin_params_axis %lld; the soft device "
                "takes one of the %lld dims of x for both",
                call.name, static_cast<long long>(IntegerOf(call, "begin_norm_axis", 0)),
                static_cast<long long>(IntegerOf(call, "begin_params_axis", 0)),
                static_cast<long long>(rank));
  }
  const std::vector<int64_t> row(shape.begin() + begin, shape.end());
  std::vector<int64_t> means = shape;
  std::fill(means.begin() + begin, means.end(), 1);
  for (int i : {1, 2}) {
    if (call.inputs.Shape(i) == row) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: input %d has the shape %s, expected %s",
                call.name, i, ShapeText(call.inputs.Shape(i)).c_str(), ShapeText(row).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  for (int i : {1, 2}) ACLTAPE_RETURN_IF_FAILED(CheckShape(call, i, means));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  const auto width = static_cast<int64_t>(ElementsOf(row));
  const int64_t rows = static_cast<int64_t>(ElementsOf(shape)) / width;
  NamedArithmetic in(call);
  const auto mean_of = [&](const Value& of) {
    return in.As(in.Over(in.Sum(of, {1}), static_cast<double>(width)), {rows, 1});
  };
  const Value x = in.Read(0, {rows, width}, {width, 1});
  const Value mean = mean_of(x), distance = in.Subtract(x, mean);
  const Value variance = mean_of(in.Multiply(distance, distance));
  const Value deviation = in.Sqrt(in.Plus(variance, RealOf(call, "epsilon", 1e-7)));
  const Value scaled =
      in.Multiply(in.Divide(distance, deviation), in.Read(1, {1, width}, {width, 1}));
  in.Write(in.Add(scaled, in.Read(2, {1, width}, {width, 1})), 0, {width, 1});
  in.Write(mean, 1, {1, 1});
  in.Write(variance, 2, {1, 1});
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

// (dy, x, variance, mean, gamma) to the gradients of x, gamma and beta. The third input is a
// variance, also where an adapter calls it a reciprocal deviation. One of each row is given.
aclError LayerNormGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 5, 3));
  ACLTAPE_RETURN_IF_FAILED(CheckNormTypes(call));
  const std::vector<int64_t>& shape = call.inputs.Shape(1);
  const std::vector<int64_t>& gamma_shape = call.inputs.Shape(4);
  const auto width = static_cast<int64_t>(ElementsOf(gamma_shape));
  const auto elements = static_cast<int64_t>(ElementsOf(shape));
  const int64_t rows = width > 0 ? elements / width : 0;
  const bool fits = call.inputs.Shape(0) == shape && gamma_shape.size() <= shape.size() &&
                    std::equal(gamma_shape.rbegin(), gamma_shape.rend(), shape.rbegin()) &&
                    static_cast<int64_t>(ElementsOf(call.inputs.Shape(2))) == rows &&
                    static_cast<int64_t>(ElementsOf(call.inputs.Shape(3))) == rows;
  if (!fits) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: dy, x, variance, mean and gamma have the shapes %s, %s, %s, %s and %s; "
                "expected dy as x, gamma as the last dims of x, and a variance and a mean for each "
                "row of them",
                call.name, ShapeText(call.inputs.Shape(0)).c_str(), ShapeText(shape).c_str(),
                ShapeText(call.inputs.Shape(2)).c_str(), ShapeText(call.inputs.Shape(3)).c_str(),
                ShapeText(gamma_shape).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 1, gamma_shape));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 2, gamma_shape));
  if (width == 0) return ClearPadding(call);
  NamedArithmetic in(call);
  const std::vector<int64_t> of_row{rows, 1};
  if (rows == 0) {
    for (int i : {1, 2}) in.Write(in.Filled({width}, 0), i, {1});
    ACLTAPE_RETURN_IF_FAILED(in.status());
    return ClearPadding(call);
  }
  const Value dy = in.Read(0, {rows, width}, {width, 1}), x = in.Read(1, {rows, width}, {width, 1});
  const Value deviation = in.Sqrt(in.Plus(in.Read(2, of_row, {1, 1}), kLeastVariance));
  const Value gamma = in.Read(4, {1, width}, {width, 1});
  const Value normed = in.Divide(in.Subtract(x, in.Read(3, of_row, {1, 1})), deviation);
  const Value scaled = in.Multiply(dy, gamma);
  const auto mean = [&](const Value& of) {
    return in.As(in.Over(in.Sum(of, {1}), static_cast<double>(width)), of_row);
  };
  const Value along =
      in.Multiply(in.Subtract(normed, mean(normed)), mean(in.Multiply(scaled, normed)));
  const Value left = in.Subtract(in.Subtract(scaled, mean(scaled)), along);
  in.Write(in.Divide(left, deviation), 0, {width, 1});
  in.Write(in.Sum(in.Multiply(dy, normed), {0}), 1, {1});
  in.Write(in.Sum(dy, {0}), 2, {1});
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

constexpr NamedOperator kLayerNormGradients[] = {
    {"LayerNorm", LayerNormWithVariance},
    {"LayerNormGrad", LayerNormGradient},
};

}  // namespace

NamedTable LayerNormGradientsByName() { return kLayerNormGradients; }

}  // namespace acltape::device
