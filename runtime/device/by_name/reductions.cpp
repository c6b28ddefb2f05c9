// Operators by name that reduce some dims of a tensor: sums, extremes and truths, and the two parts
// of a norm.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "aclnnop/aclnn_all.h"
#include "aclnnop/aclnn_amax.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_mean.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Dims = std::vector<int64_t>;
using Value = NamedArithmetic::Value;

// Makes dims of the first input positive. Refuses those that it does not have, and an output of
// another shape than they leave.
aclError CheckReducedDims(const NamedCall& call, bool keep, Dims* dims) {
  const Dims& from = call.inputs.Shape(0);
  const auto rank = static_cast<int64_t>(from.size());
  for (int64_t& dim : *dims) dim += dim < 0 ? rank : 0;
  const auto reduced = [&](int64_t dim) { return std::count(dims->begin(), dims->end(), dim); };
  for (int64_t dim : *dims) {
    if (dim >= 0 && dim < rank && reduced(dim) == 1) continue;
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: the axes %s are not different dims of a tensor of shape %s", call.name,
                ShapeText(*dims).c_str(), ShapeText(from).c_str());
  }
  Dims shape;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (reduced(dim) == 0) {
      shape.push_back(from[dim]);
    } else if (keep) {
      shape.push_back(1);
    }
  }
  return CheckShape(call, 0, shape);
}

using PrepareExtreme = decltype(&aclnnAmaxGetWorkspaceSize);
using PrepareSum = decltype(&aclnnReduceSumGetWorkspaceSize);
static_assert(std::is_same_v<PrepareExtreme, decltype(&aclnnAllGetWorkspaceSize)>);
static_assert(std::is_same_v<PrepareSum, decltype(&aclnnMeanGetWorkspaceSize)>);

// An operator by name that an operator of libopapi.so computes.
struct Reduction {
  const char* name;
  const char* in_library;
  bool sums;  // it takes the type of the result, too
};
constexpr Reduction kReductions[] = {
    {"ReduceSum", "aclnnReduceSum", true}, {"ReduceMean", "aclnnMean", true},
    {"ReduceMax", "aclnnAmax", false},     {"ReduceMin", "aclnnAmin", false},
    {"ReduceAll", "aclnnAll", false},      {"ReduceAny", "aclnnAny", false},
};

// (x, axes). Without axes the result is x: an adapter gives none for a tensor without dims alone.
aclError Reduce(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  const aclDataType type = call.outputs.descs[0]->type;
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, call.inputs.descs[0]->type, type));
  const bool keep = FlagOf(call, "keep_dims", false);
  Dims dims;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "axes", &dims));
  ACLTAPE_RETURN_IF_FAILED(CheckReducedDims(call, keep, &dims));
  if (ElementsOf(call.outputs.Shape(0)) == 0) return ClearPadding(call);
  const auto named = [&](const Reduction& row) { return std::strcmp(row.name, call.name) == 0; };
  const Reduction& row = *std::find_if(std::begin(kReductions), std::end(kReductions), named);
  OperatorArguments own;
  aclTensor* from = own.Whole(call.inputs, 0);
  aclTensor* to = own.Whole(call.outputs, 0);
  const aclIntArray* axes = own.Integers(dims);
  if (dims.empty()) {
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(
        call, "aclnnInplaceCopy", to, from));
  } else if (row.sums) {
    ACLTAPE_RETURN_IF_FAILED(
        RunOperator<PrepareSum>(call, row.in_library, from, axes, keep, type, to));
  } else {
    ACLTAPE_RETURN_IF_FAILED(
        RunOperator<PrepareExtreme>(call, row.in_library, from, axes, keep, to));
  }
  return ClearPadding(call);
}

// The attribute p, and how an adapter writes an infinite one.
constexpr double kInfinite = INT_MAX;
constexpr double kMinusInfinite = INT_MIN;

aclError ReadExponent(const NamedCall& call, double* p) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  *p = RealOf(call, "p", 2);
  const double epsilon = RealOf(call, "epsilon", 0);
  for (const NamedTensors* side : {&call.inputs, &call.outputs}) {
    const aclDataType type = side->descs[0]->type;
    if ((type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16) && !std::isnan(*p) &&
        epsilon == 0) {
      continue;
    }
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: p is %g, epsilon %g, and a tensor has the type %d; the soft device "
                "takes a number, 0, and float32, float16 and bfloat16",
                call.name, *p, epsilon, static_cast<int>(type));
  }
  return ACL_SUCCESS;
}

bool IsInfinite(double p) {
  return std::isinf(p) || static_cast<float>(p) == static_cast<float>(kInfinite) ||
         static_cast<float>(p) == static_cast<float>(kMinusInfinite);
}

// The greatest elements along all dims of the list, which stay with the size 1.
Value GreatestOf(NamedArithmetic& in, Value a, const Dims& dims) {
  for (int64_t dim : dims) a = in.Greatest(a, dim);
  return a;
}

// (x) to the sum of |x|^p, whose root is the norm. Of p = 0 it is the number of elements that are
// not 0, and of an infinite p the greatest or least of them.
aclError SumPowers(const NamedCall& call) {
  double p = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadExponent(call, &p));
  const Dims& shape = call.inputs.Shape(0);
  Dims dims = IntegersOf(call, "axes");
  if (dims.empty()) {  // all dims
    dims.resize(shape.size());
    std::iota(dims.begin(), dims.end(), 0);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckReducedDims(call, FlagOf(call, "keepdim", false), &dims));
  const Dims& to = call.outputs.Shape(0);
  if (ElementsOf(to) == 0) return ClearPadding(call);
  if (IsInfinite(p) && ElementsOf(shape) == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: there is no extreme of no elements", call.name);
  }
  NamedArithmetic in(call);
  const Value sizes = in.Abs(in.Read(0, shape, RowMajorStrides(shape)));
  Value result;
  if (IsInfinite(p)) {
    const double sign = p > 0 ? 1 : -1;
    result = in.Times(GreatestOf(in, in.Times(sizes, sign), dims), sign);
  } else if (p == 0) {
    result = in.Sum(in.Positive(sizes), dims);
  } else {
    result = in.Sum(p == 1 ? sizes : in.Power(sizes, p), dims);
  }
  in.Write(in.As(result, to), 0, RowMajorStrides(to));
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

// (x) to x^(1/p), the norm of such a sum. Of p = 0 and of an infinite p it is x.
aclError TakeRoot(const NamedCall& call) {
  double p = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadExponent(call, &p));
  const Dims& shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  NamedArithmetic in(call);
  const Value sum = in.Read(0, shape, RowMajorStrides(shape));
  in.Write(p == 0 || p == 1 || IsInfinite(p) ? sum : in.Power(sum, 1 / p), 0,
           RowMajorStrides(shape));
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

std::vector<NamedOperator> AllReductions() {
  std::vector<NamedOperator> rows{{"LpNormReduceV2", SumPowers}, {"LpNormUpdateV2", TakeRoot}};
  for (const Reduction& row : kReductions) rows.push_back({row.name, Reduce});
  return rows;
}

}  // namespace

NamedTable ReductionsByName() {
  static const std::vector<NamedOperator> rows = AllReductions();
  return rows;
}

}  // namespace acltape::device
