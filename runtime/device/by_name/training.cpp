// Operators by name of training: dropout with masks of bytes.
#include "aclnnop/aclnn_bernoulli.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// (shape, prob): a byte for each element, 1 with the probability `prob` and else 0. The output may
// have more elements than the shape; they are drawn, too.
aclError DrawMask(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 2, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the mask"));
  std::vector<int64_t> shape;
  double keep = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 0, "shape", &shape));
  ACLTAPE_RETURN_IF_FAILED(ReadNumber(call, 1, "prob", &keep));
  const std::vector<int64_t>& mask = call.outputs.Shape(0);
  if (!(keep >= 0 && keep <= 1) || call.outputs.descs[0]->type != ACL_UINT8 ||
      ElementsOf(mask) < ElementsOf(shape)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: prob is %g, the mask has the type %d and the shape %s; expected a "
                "number from 0 to 1, and uint8 elements for each of the shape %s",
                call.name, keep, static_cast<int>(call.outputs.descs[0]->type),
                ShapeText(mask).c_str(), ShapeText(shape).c_str());
  }
  if (ElementsOf(mask) == 0) return ACL_SUCCESS;
  OperatorArguments own;
  return RunOperator<decltype(&aclnnInplaceBernoulliGetWorkspaceSize)>(
      call, "aclnnInplaceBernoulli", own.Dense(call.outputs, 0, mask),
      own.Float(static_cast<float>(keep)), IntegerOf(call, "seed", 0), IntegerOf(call, "seed2", 0));
}

// The attributes of a softmax that a dropout follows, in a forward pass or a gradient.
struct DroppedSoftmax {
  std::vector<int64_t> shape, strides;
  int64_t dim;
  double alpha, keep;
};

// `shaped` inputs have the shape of the result; input `mask` has a byte for each element at least.
aclError ReadDroppedSoftmax(const NamedCall& call, const char* axis, int mask,
                            std::initializer_list<int> shaped, DroppedSoftmax* with) {
  const std::vector<int64_t>& shape = call.outputs.Shape(0);
  for (int i : shaped) {
    ACLTAPE_RETURN_IF_FAILED(CheckFloats(call, call.inputs, i));
    if (call.inputs.Shape(i) == shape) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: input %d has the shape %s, and the result %s",
                call.name, i, ShapeText(call.inputs.Shape(i)).c_str(), ShapeText(shape).c_str());
  }
  for (int i = 0; i < call.outputs.count; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckFloats(call, call.outputs, i));
    ACLTAPE_RETURN_IF_FAILED(CheckShape(call, i, shape));
  }
  const std::vector<int64_t> dims = IntegersOf(call, axis);
  const auto rank = static_cast<int64_t>(shape.size());
  with->shape = shape;
  with->strides = RowMajorStrides(shape);
  with->dim = dims.empty() ? -1 : dims[0];
  with->alpha = RealOf(call, "alpha", 1);
  with->keep = RealOf(call, "input_keep_prob", 1);
  if (call.inputs.descs[mask]->type == ACL_UINT8 &&
      ElementsOf(call.inputs.Shape(mask)) >= ElementsOf(shape) && dims.size() <= 1 &&
      with->dim >= -rank && with->dim < rank) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: %s is %s, and the mask has the type %d and the shape %s; expected one dim "
              "of the result, and uint8 elements for each of the shape %s",
              call.name, axis, ShapeText(dims).c_str(),
              static_cast<int>(call.inputs.descs[mask]->type),
              ShapeText(call.inputs.Shape(mask)).c_str(), ShapeText(shape).c_str());
}

// Gives the elements that a dropout keeps, scaled. With a probability of 0 it keeps none.
Value Dropped(NamedArithmetic& in, const DroppedSoftmax& with, const Value& of, int mask) {
  const Value left = in.Multiply(of, in.Read(mask, with.shape, with.strides));
  return with.keep > 0 ? in.Over(left, with.keep) : left;
}

// (x1, x2, mask): the softmax of x1 + alpha * x2, and what the dropout leaves of it.
aclError SoftmaxAndDropout(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 2));
  DroppedSoftmax with{};
  ACLTAPE_RETURN_IF_FAILED(ReadDroppedSoftmax(call, "axis", 2, {0, 1}, &with));
  NamedArithmetic in(call);
  const auto input = [&](int i) { return in.Read(i, with.shape, with.strides); };
  const Value softmax = in.Softmax(in.Add(input(0), in.Times(input(1), with.alpha)), with.dim);
  in.Write(softmax, 0, with.strides);
  in.Write(Dropped(in, with, softmax, 2), 1, with.strides);
  return in.status();
}

// (gradient, mask, softmax) to the gradient of x2 above.
aclError SoftmaxAndDropoutGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 1));
  DroppedSoftmax with{};
  ACLTAPE_RETURN_IF_FAILED(ReadDroppedSoftmax(call, "axes", 1, {0, 2}, &with));
  NamedArithmetic in(call);
  const auto input = [&](int i) { return in.Read(i, with.shape, with.strides); };
  const Value of_softmax = Dropped(in, with, input(0), 1);
  in.Write(in.Times(in.SoftmaxGradient(of_softmax, input(2), with.dim), with.alpha), 0,
           with.strides);
  return in.status();
}

constexpr NamedOperator kTraining[] = {
    {"DropOutGenMaskV3", DrawMask},
    {"AxpyWithSoftmaxAndDropOutDoMask", SoftmaxAndDropout},
    {"DropoutWithMulsAndSoftmaxGrad", SoftmaxAndDropoutGradient},
};

}  // namespace

NamedTable TrainingByName() { return kTraining; }

}  // namespace acltape::device
