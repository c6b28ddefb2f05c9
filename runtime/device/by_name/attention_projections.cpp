// A normalisation of rows with the projections of an attention (AttentionLnQKV), and the gradients
// of such projections (AttentionQKVGradX, AttentionQKVGradW).
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/attention_heads.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

constexpr int kProjections = 3;  // query, key, value

// Refuses matrices that are transposed in another way than the product takes them.
aclError CheckTransposed(const NamedCall& call, const char* flag, bool expected) {
  if (FlagOf(call, flag, expected) == expected) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s is %s; the soft device takes %s alone",
              call.name, flag, expected ? "false" : "true", expected ? "true" : "false");
}

aclError CheckMatrix(const NamedCall& call, int i) {
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, i, ("input " + std::to_string(i)).c_str()));
  if (call.inputs.Shape(i).size() == 2) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: input %d has the shape %s, expected a matrix",
              call.name, i, ShapeText(call.inputs.Shape(i)).c_str());
}

// Rows brought to the mean 0 and the variance 1, then scaled and moved.
struct NormalisedRows {
  Value rows, mean, variance;
};

NormalisedRows NormaliseRows(NamedArithmetic& in, const Value& x, const Value& gamma,
                             const Value& beta, double epsilon) {
  const auto width = static_cast<double>(x.shape[1]);
  const auto mean = [&](const Value& of) {
    return in.As(in.Over(in.Sum(of, {1}), width), {x.shape[0], 1});
  };
  const Value means = mean(x), centred = in.Subtract(x, means);
  const Value variance = mean(in.Multiply(centred, centred));
  const Value scaled = in.Divide(centred, in.Sqrt(in.Plus(variance, epsilon)));
  return {in.Add(in.Multiply(scaled, gamma), beta), means, variance};
}

// (x, kernel_query, kernel_key, kernel_value, gamma, beta, bias_query, bias_key, bias_value) to
// (norm, query_output, key_output, value_output, mean, variance): the projections have their heads
// apart, and the variance is without epsilon.
aclError NormaliseAndProject(const NamedCall& call) {
  constexpr int kX = 0, kKernel = 1, kGamma = 4, kBeta = 5, kBias = 6, kMean = 4, kVariance = 5;
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 6, 6));
  ACLTAPE_RETURN_IF_FAILED(CheckTransposed(call, "trans_a", false));
  ACLTAPE_RETURN_IF_FAILED(CheckMatrix(call, kX));
  ACLTAPE_RETURN_IF_FAILED(CheckMatrix(call, kKernel));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 1, "query_output"));
  const bool transposed = FlagOf(call, "trans_b", false);
  const int64_t rows = call.inputs.Shape(kX)[0], width = call.inputs.Shape(kX)[1];
  const int64_t columns = call.inputs.Shape(kKernel)[transposed ? 0 : 1];
  const std::vector<int64_t> apart = call.outputs.Shape(1);
  const int biases =
      call.inputs.Has(kBias) + call.inputs.Has(kBias + 1) + call.inputs.Has(kBias + 2);
  if (apart.size() != 4 || apart[0] * apart[2] != rows || apart[1] * apart[3] != columns ||
      (biases != 0 && biases != kProjections)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: the projections have the shape %s, with %d biases; expected [batch, "
                "heads, length, width] of %lld rows and %lld columns, and 3 biases or none",
                call.name, ShapeText(apart).c_str(), biases, static_cast<long long>(rows),
                static_cast<long long>(columns));
  }
  const std::vector<int64_t> kernel =
      transposed ? std::vector<int64_t>{columns, width} : std::vector<int64_t>{width, columns};
  ACLTAPE_RETURN_IF_FAILED(
      CheckExpectedInputs(call, {{kX, {rows, width}}, {kGamma, {width}}, {kBeta, {width}}}));
  for (int i = 0; i < kProjections; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckExpectedInputs(call, {{kKernel + i, kernel}}));
    if (biases > 0) {
      ACLTAPE_RETURN_IF_FAILED(CheckExpectedInputs(call, {{kBias + i, {columns}}}));
    }
    ACLTAPE_RETURN_IF_FAILED(CheckExpectedOutputs(call, {{1 + i, apart}}));
  }
  ACLTAPE_RETURN_IF_FAILED(
      CheckExpectedOutputs(call, {{0, {rows, width}}, {kMean, {rows}}, {kVariance, {rows}}}));
  if (rows == 0) return ACL_SUCCESS;
  NamedArithmetic in(call);
  const NormalisedRows norm =
      NormaliseRows(in, WholeInput(in, call, kX), WholeInput(in, call, kGamma),
                    WholeInput(in, call, kBeta), RealOf(call, "epsilon", 1e-7));
  WholeOutput(in, call, 0, norm.rows);
  WholeOutput(in, call, kMean, in.As(norm.mean, {rows}));
  WholeOutput(in, call, kVariance, in.As(norm.variance, {rows}));
  for (int i = 0; i < kProjections; ++i) {
    const Value weight = WholeInput(in, call, kKernel + i);
    Value product = in.Product(norm.rows, transposed ? Transposed(in, weight) : weight);
    if (biases > 0) product = in.Add(product, WholeInput(in, call, kBias + i));
    WholeOutput(in, call, 1 + i, HeadsApart(in, product, apart[0], apart[1]));
  }
  return in.status();
}

// (ln_dx, query_dx, key_dw, value_dw, kernel_query, kernel_key, kernel_value) to dx: ln_dx and the
// gradients of the three projections, which are multiplied with their kernels.
aclError ProjectionGradientOfX(const NamedCall& call) {
  constexpr int kOther = 0, kResultGradient = 1, kKernel = 4;
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 7, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckTransposed(call, "trans_a", false));
  ACLTAPE_RETURN_IF_FAILED(CheckTransposed(call, "trans_b", true));
  ACLTAPE_RETURN_IF_FAILED(CheckMatrix(call, kOther));
  ACLTAPE_RETURN_IF_FAILED(CheckMatrix(call, kResultGradient));
  const int64_t rows = call.inputs.Shape(kOther)[0], width = call.inputs.Shape(kOther)[1];
  const int64_t columns = call.inputs.Shape(kResultGradient)[1];
  ACLTAPE_RETURN_IF_FAILED(CheckExpectedInputs(call, {{kOther, {rows, width}}}));
  for (int i = 0; i < kProjections; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckExpectedInputs(
        call, {{kResultGradient + i, {rows, columns}}, {kKernel + i, {width, columns}}}));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckExpectedOutputs(call, {{0, {rows, width}}}));
  NamedArithmetic in(call);
  Value sum = WholeInput(in, call, kOther);
  for (int i = 0; i < kProjections; ++i) {
    const Value kernel = WholeInput(in, call, kKernel + i);
    sum =
        in.Add(sum, in.Product(WholeInput(in, call, kResultGradient + i), Transposed(in, kernel)));
  }
  WholeOutput(in, call, 0, sum);
  return in.status();
}

// (x, query_dx, key_dw, value_dw) to (dw_query, dw_key, dw_value, dbias_query, dbias_key,
// dbias_value).
aclError ProjectionGradientOfWeights(const NamedCall& call) {
  constexpr int kX = 0, kResultGradient = 1;
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 4, 2 * kProjections));
  ACLTAPE_RETURN_IF_FAILED(CheckTransposed(call, "trans_a", true));
  ACLTAPE_RETURN_IF_FAILED(CheckTransposed(call, "trans_b", false));
  ACLTAPE_RETURN_IF_FAILED(CheckMatrix(call, kX));
  ACLTAPE_RETURN_IF_FAILED(CheckMatrix(call, kResultGradient));
  const int64_t rows = call.inputs.Shape(kX)[0], width = call.inputs.Shape(kX)[1];
  const int64_t columns = call.inputs.Shape(kResultGradient)[1];
  ACLTAPE_RETURN_IF_FAILED(CheckExpectedInputs(call, {{kX, {rows, width}}}));
  for (int i = 0; i < kProjections; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckExpectedInputs(call, {{kResultGradient + i, {rows, columns}}}));
    ACLTAPE_RETURN_IF_FAILED(
        CheckExpectedOutputs(call, {{i, {width, columns}}, {kProjections + i, {columns}}}));
  }
  NamedArithmetic in(call);
  const Value x = WholeInput(in, call, kX), of_rows = Transposed(in, x);
  for (int i = 0; i < kProjections; ++i) {
    const Value gradient = WholeInput(in, call, kResultGradient + i);
    WholeOutput(in, call, i, in.Product(of_rows, gradient));
    WholeOutput(in, call, kProjections + i, in.Sum(gradient, {0}));
  }
  return in.status();
}

constexpr NamedOperator kAttentionProjections[] = {
    {"AttentionLnQKV", NormaliseAndProject},
    {"AttentionQKVGradW", ProjectionGradientOfWeights},
    {"AttentionQKVGradX", ProjectionGradientOfX},
};

}  // namespace

NamedTable AttentionProjectionsByName() { return kAttentionProjections; }

}  // namespace acltape::device
