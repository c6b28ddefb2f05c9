// Ranges of positions along a dim that get values. Device memory holds their limits and the values
// (MaskedFillRange).
#include "aclnnop/aclnn_any.h"
#include "aclnnop/aclnn_arange.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_masked_fill_tensor.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using PrepareOfTwo = aclnnStatus (*)(const aclTensor*, const aclTensor*, aclTensor*, uint64_t*,
                                     aclOpExecutor**);

struct RangeSettings {
  int64_t axis;
  int64_t rounds;  // ranges that are filled one after another, each with a value of its own
  int64_t rows;    // rows of the limits
};

aclError ReadRanges(const NamedCall& call, RangeSettings* with) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 4, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const std::vector<int64_t>& limits = call.inputs.Shape(1);
  const aclDataType type = call.inputs.descs[0]->type;
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank < 1 || rank > 3 ||
      (type != ACL_FLOAT && type != ACL_FLOAT16 && type != ACL_INT32 && type != ACL_INT8)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: x has the shape %s and the type %d; expected 1 to 3 dims, and float32, "
                "float16, int32 or int8",
                call.name, ShapeText(shape).c_str(), static_cast<int>(type));
  }
  const int64_t rows = rank == 1 ? 1 : shape[0];
  bool fits = limits.size() == 2 && limits[1] == rows && call.inputs.Shape(2) == limits &&
              call.inputs.Shape(3) == std::vector<int64_t>{limits[0]};
  for (int i : {1, 2}) {
    fits = fits && call.inputs.descs[i]->type == ACL_INT32 && !call.inputs.InBlocks(i);
  }
  if (!fits) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: start has the shape %s and the type %d, end %s and %d, and value %s; "
                "expected int32 [n, %lld] for both limits, and [n] for the values",
                call.name, ShapeText(limits).c_str(), static_cast<int>(call.inputs.descs[1]->type),
                ShapeText(call.inputs.Shape(2)).c_str(),
                static_cast<int>(call.inputs.descs[2]->type),
                ShapeText(call.inputs.Shape(3)).c_str(), static_cast<long long>(rows));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.inputs.descs[3]->type));
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.outputs.descs[0]->type));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  const int64_t axis = IntegerOf(call, "axis", -1);
  if (axis < -rank || axis >= rank) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: there is no axis %lld in a tensor of %lld dims",
                call.name, static_cast<long long>(axis), static_cast<long long>(rank));
  }
  *with = {axis < 0 ? axis + rank : axis, limits[0], rows};
  return ACL_SUCCESS;
}

// Finds where the positions of a round are, as a mask that is broadcast to the tensor.
class RangeMask {
 public:
  explicit RangeMask(const NamedCall& call) : call_(call), scratch_(call.stream) {}

  aclError Prepare(const RangeSettings& with) {
    const std::vector<int64_t>& shape = call_.inputs.Shape(0);
    with_ = with;
    length_ = shape[with.axis];
    // Along the last of several dims each row has its own range. Along another dim the ranges of
    // all rows count for the whole tensor.
    own_ranges_ = shape.size() > 1 && with.axis + 1 == static_cast<int64_t>(shape.size());
    mask_shape_.assign(shape.begin() + with.axis, shape.end());
    std::fill(mask_shape_.begin() + 1, mask_shape_.end(), 1);
    if (own_ranges_) {
      mask_shape_.assign(shape.size(), 1);
      mask_shape_.front() = with.rows;
      mask_shape_.back() = length_;
    }
    ACLTAPE_RETURN_IF_FAILED(scratch_.Take(length_ * sizeof(int32_t), &positions_));
    for (void*& memory : masks_) {
      ACLTAPE_RETURN_IF_FAILED(scratch_.Take(with.rows * length_, &memory));
    }
    const int64_t first = 0, step = 1;
    return RunOperator<decltype(&aclnnArangeGetWorkspaceSize)>(
        call_, "aclnnArange", own_.Scalar(ACL_INT64, &first), own_.Scalar(ACL_INT64, &length_),
        own_.Scalar(ACL_INT64, &step),
        own_.Tensor(ACL_INT32, positions_, {length_}, {length_}, {1}));
  }

  aclError Find(int64_t round, aclTensor** mask) {
    const auto limits = [&](int input) {
      return own_.View(call_.inputs, input, {with_.rows, 1}, {1, 1}, round * with_.rows);
    };
    const aclTensor* positions =
        own_.Tensor(ACL_INT32, positions_, {length_}, {1, length_}, {length_, 1});
    const std::vector<int64_t> of_rows{with_.rows, length_};
    aclTensor *from = Mask(0, of_rows), *until = Mask(1, of_rows), *inside = Mask(2, of_rows);
    ACLTAPE_RETURN_IF_FAILED(
        RunOperator<PrepareOfTwo>(call_, "aclnnGeTensor", positions, limits(1), from));
    ACLTAPE_RETURN_IF_FAILED(
        RunOperator<PrepareOfTwo>(call_, "aclnnLtTensor", positions, limits(2), until));
    ACLTAPE_RETURN_IF_FAILED(
        RunOperator<PrepareOfTwo>(call_, "aclnnLogicalAnd", from, until, inside));
    if (own_ranges_ || with_.rows == 1) {
      *mask = Mask(2, mask_shape_);
      return ACL_SUCCESS;
    }
    *mask = Mask(0, mask_shape_);
    return RunOperator<decltype(&aclnnAnyGetWorkspaceSize)>(
        call_, "aclnnAny", inside, own_.Integers({0}), false, Mask(0, {length_}));
  }

 private:
  aclTensor* Mask(int i, const std::vector<int64_t>& shape) {
    return own_.Tensor(ACL_BOOL, masks_[i], shape, shape, RowMajorStrides(shape));
  }

  const NamedCall& call_;
  NamedScratch scratch_;
  OperatorArguments own_;
  RangeSettings with_{};
  int64_t length_ = 0;
  bool own_ranges_ = false;
  std::vector<int64_t> mask_shape_;
  void* positions_ = nullptr;
  void* masks_[3] = {};
};

// (x [d], [n, d] or [n, c, d], start, end [rounds, n], value [rounds]) to x with the positions from
// `start` up to `end` filled, round after round. Positions outside of the dim are nowhere.
aclError FillRanges(const NamedCall& call) {
  RangeSettings with{};
  ACLTAPE_RETURN_IF_FAILED(ReadRanges(call, &with));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  OperatorArguments own;
  aclTensor* out = own.Dense(call.outputs, 0, shape);
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(
      call, "aclnnInplaceCopy", out, own.Dense(call.inputs, 0, shape)));
  RangeMask ranges(call);
  if (with.rounds > 0) ACLTAPE_RETURN_IF_FAILED(ranges.Prepare(with));
  for (int64_t round = 0; round < with.rounds; ++round) {
    aclTensor* mask = nullptr;
    ACLTAPE_RETURN_IF_FAILED(ranges.Find(round, &mask));
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceMaskedFillTensorGetWorkspaceSize)>(
        call, "aclnnInplaceMaskedFillTensor", out, mask, own.View(call.inputs, 3, {}, {}, round)));
  }
  return ClearPadding(call);
}

constexpr NamedOperator kFilledRanges[] = {
    {"MaskedFillRange", FillRanges},
};

}  // namespace

NamedTable FilledRangesByName() { return kFilledRanges; }

}  // namespace acltape::device
