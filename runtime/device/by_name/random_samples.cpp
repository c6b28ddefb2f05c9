// Random parts of what a tensor marks: examples of a training step (SubSample), and positions of
// elements (RandomChoiceWithMask). A device draws other numbers.
#include <cmath>

#include "aclnnop/aclnn_zero.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/seeds.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

constexpr int64_t kMostElements = int64_t{1} << 24;  // float32 counts no further

// The elements of a row in a random order, those that are marked before the others.
Value MarkedFirst(NamedArithmetic& in, const Value& marked, int64_t seed, int64_t offset) {
  const Value others = in.Plus(in.Times(marked, 0), -1);
  return in.Descending(in.Where(marked, in.Random(marked.shape, seed, offset), others));
}

// Elements of a row at these positions.
Value Picked(NamedArithmetic& in, const Value& row, const Value& positions) {
  const Value table = in.As(row, {row.shape[0], 1});
  return in.As(in.Rows(table, positions), positions.shape);
}

// 1 for `most` of the elements that are marked, or for all of them when there are fewer.
Value Sampled(NamedArithmetic& in, const Value& marked, const Value& most) {
  const Value order = MarkedFirst(in, marked, SeedOfThisCall(), 0);
  const Value places = in.Counting(marked.shape);
  const Value taken =
      in.Multiply(Picked(in, marked, order), in.Positive(in.Subtract(most, places)));
  const Value back = in.Descending(in.Times(Picked(in, places, order), -1));
  return Picked(in, taken, back);
}

// 1 where a row of integers has this one.
Value Equal(NamedArithmetic& in, const Value& row, double number) {
  return in.Positive(in.Plus(in.Times(in.Abs(in.Plus(row, -number)), -1), 0.5));
}

// (labels) to the labels of a sample, and -1 for the other examples. The label 1 is that of a
// positive example and 0 that of a negative one; examples with another label are in no sample. The
// sample has batch_size_per_images examples where there are enough. Up to positive_fraction of them
// are positive, and the others are negative.
aclError SampleLabels(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const int64_t size = IntegerOf(call, "batch_size_per_images", -1);
  const auto fraction = static_cast<float>(RealOf(call, "positive_fraction", -1));
  if (shape.size() != 1 || shape[0] > kMostElements || call.inputs.descs[0]->type != ACL_INT32 ||
      call.outputs.descs[0]->type != ACL_INT32 || size < 0 || !(fraction >= 0 && fraction <= 1)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: labels have the shape %s and the type %d, the result has the type %d, "
                "batch_size_per_images is %lld and positive_fraction %g; expected int32 [n] of at "
                "most 2^24 labels, a size, and a number from 0 to 1",
                call.name, ShapeText(shape).c_str(), static_cast<int>(call.inputs.descs[0]->type),
                static_cast<int>(call.outputs.descs[0]->type), static_cast<long long>(size),
                static_cast<double>(fraction));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (shape[0] == 0) return ACL_SUCCESS;
  NamedArithmetic in(call);
  const Value labels = in.Copied(0, shape, {1});
  const auto number = [&](double value) { return in.Plus(in.Times(in.Counting({1}), 0), value); };
  const auto most = std::floor(static_cast<float>(size) * fraction);
  const Value positive = Sampled(in, Equal(in, labels, 1), number(most));
  const Value left = in.Subtract(number(static_cast<double>(size)), in.Sum(positive, {0}));
  const Value negative = Sampled(in, Equal(in, labels, 0), left);
  in.Write(in.Plus(in.Add(in.Times(positive, 2), negative), -1), 0, {1});
  return in.status();
}

aclError CheckChoice(const NamedCall& call, int64_t count) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 2));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const auto elements = static_cast<int64_t>(ElementsOf(shape));
  if (shape.empty() || shape.size() > 5 || elements > kMostElements || call.inputs.InBlocks(0) ||
      call.inputs.descs[0]->type != ACL_BOOL || count < 1 ||
      call.outputs.descs[0]->type != ACL_INT32 || call.outputs.descs[1]->type != ACL_BOOL) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: x has the shape %s and the type %d, count is %lld, and the results have "
                "the types %d and %d; expected bool of 1 to 5 dims and at most 2^24 elements in "
                "plain order, a count above 0, int32 and bool",
                call.name, ShapeText(shape).c_str(), static_cast<int>(call.inputs.descs[0]->type),
                static_cast<long long>(count), static_cast<int>(call.outputs.descs[0]->type),
                static_cast<int>(call.outputs.descs[1]->type));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, {count, static_cast<int64_t>(shape.size())}));
  return CheckShape(call, 1, {count});
}

// (x) to the indices of `count` elements of x that are true, in a random order, and a row that is
// true for them. When there are fewer, indices of 0 follow, for which the row is false.
aclError ChooseTrueElements(const NamedCall& call) {
  const int64_t count = IntegerOf(call, "count", 0);
  ACLTAPE_RETURN_IF_FAILED(CheckChoice(call, count));
  OperatorArguments own;
  for (int i = 0; i < 2; ++i) {
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceZeroGetWorkspaceSize)>(
        call, "aclnnInplaceZero", own.Whole(call.outputs, i)));
  }
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const auto elements = static_cast<int64_t>(ElementsOf(shape));
  const auto rank = static_cast<int64_t>(shape.size());
  if (elements == 0) return ClearPadding(call);
  int64_t seed = IntegerOf(call, "seed", 0);
  const int64_t offset = IntegerOf(call, "seed2", 0);
  if (seed == 0 && offset == 0) seed = SeedOfThisCall();
  NamedArithmetic in(call);
  const Value marked = in.Copied(0, {elements}, {1});
  const Value order = in.First(MarkedFirst(in, marked, seed, offset), std::min(count, elements));
  const Value chosen = Picked(in, marked, order);
  for (int64_t dim = 0; dim < rank; ++dim) {
    std::vector<int64_t> along(shape.size(), 1);
    along[dim] = shape[dim];
    const Value indices = in.Add(in.Times(in.Counting(shape), 0), in.Counting(along));
    const Value of_chosen = Picked(in, in.As(indices, {elements}), order);
    in.Write(in.Multiply(of_chosen, chosen), 0, {rank}, dim);
  }
  in.Write(chosen, 1, {1});
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

constexpr NamedOperator kRandomSamples[] = {
    {"SubSample", SampleLabels},
    {"RandomChoiceWithMask", ChooseTrueElements},
};

}  // namespace

NamedTable RandomSamplesByName() { return kRandomSamples; }

}  // namespace acltape::device
