// Sequences of several lengths, brought to the mean 0 and the deviation 1 (NormalizeBatch).
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// (x [n, c, d], seq_len [n]): the first elements of each sequence, as many as its length, give the
// mean and the deviation of a feature, or of all features. The elements after them are brought to
// the same scale. The operator adds epsilon to the deviation.
aclError NormalizeSequences(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const std::string kind = call.Text("normalize_type");
  const bool all = kind == "all_features";
  if (shape.size() != 3 || call.inputs.Shape(1) != std::vector<int64_t>{shape[0]} ||
      call.inputs.descs[0]->type != ACL_FLOAT || call.inputs.descs[1]->type != ACL_INT32 ||
      (!all && kind != "per_feature")) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: x has the shape %s and the type %d, seq_len %s and %d, and "
                "normalize_type is \"%s\"; expected float32 [n, c, d], int32 [n], and per_feature "
                "or all_features",
                call.name, ShapeText(shape).c_str(), static_cast<int>(call.inputs.descs[0]->type),
                ShapeText(call.inputs.Shape(1)).c_str(),
                static_cast<int>(call.inputs.descs[1]->type), kind.c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, ACL_FLOAT, call.outputs.descs[0]->type));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  const int64_t n = shape[0], features = shape[1], length = shape[2];
  if (ElementsOf(shape) == 0) return ACL_SUCCESS;
  NamedArithmetic in(call);
  const Value x = in.Read(0, shape, RowMajorStrides(shape));
  const Value steps = in.AtMost(in.Read(1, {n, 1, 1}, {1, 1, 1}), static_cast<double>(length));
  const Value counts = all ? in.Times(steps, static_cast<double>(features)) : steps;
  const Value inside = in.Positive(in.Subtract(steps, in.Counting({1, 1, length})));
  const Value none = in.Times(in.Counting({1, 1, 1}), 0);
  const auto sum = [&](const Value& of) {
    const Value counted = in.Where(inside, of, none);
    return all ? in.As(in.Sum(counted, {1, 2}), {n, 1, 1})
               : in.As(in.Sum(counted, {2}), {n, features, 1});
  };
  const Value from_mean = in.Subtract(x, in.Divide(sum(x), counts));
  const Value squares = sum(in.Multiply(from_mean, from_mean));
  const Value deviation = in.Sqrt(in.Divide(squares, in.Plus(counts, -1)));
  in.Write(in.Divide(from_mean, in.Plus(deviation, RealOf(call, "epsilon", 1e-5))), 0,
           RowMajorStrides(shape));
  return in.status();
}

constexpr NamedOperator kNormalisations[] = {
    {"NormalizeBatch", NormalizeSequences},
};

}  // namespace

NamedTable NormalisationsByName() { return kNormalisations; }

}  // namespace acltape::device
