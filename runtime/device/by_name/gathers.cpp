// Elements of tensors by indices, by a mask, or repeated, by the operator's name.
#include <algorithm>
#include <type_traits>

#include "aclnnop/aclnn_clamp.h"
#include "aclnnop/aclnn_embedding_dense_backward.h"
#include "aclnnop/aclnn_gather.h"
#include "aclnnop/aclnn_gather_v2.h"
#include "aclnnop/aclnn_repeat.h"
#include "aclnnop/aclnn_s_where.h"
#include "aclnnop/aclnn_stack.h"
#include "aclnnop/aclnn_tril.h"
#include "aclnnop/aclnn_triu.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

aclError CheckTypeOfResult(const NamedCall& call, int input) {
  return CheckSameType(call, call.inputs.descs[input]->type, call.outputs.descs[0]->type);
}

// Makes a dim positive. A tensor without dims has the dim 0, too.
aclError CheckDim(const NamedCall& call, const char* name, size_t dims, int64_t* dim) {
  const auto rank = static_cast<int64_t>(std::max<size_t>(dims, 1));
  const int64_t given = *dim;
  if (given < 0) *dim += rank;
  if (*dim >= 0 && *dim < rank) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s %lld is no dim of a tensor of %zu dims",
              call.name, name, static_cast<long long>(given), dims);
}

// (x, indices, axis): slices of a dim.
aclError GatherSlices(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckTypeOfResult(call, 0));
  const std::vector<int64_t>& x = call.inputs.Shape(0);
  const std::vector<int64_t>& index = call.inputs.Shape(1);
  std::vector<int64_t> axis{0};
  if (call.inputs.count > 2) ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 2, "axis", &axis));
  if (axis.size() != 1 || x.empty() || IntegerOf(call, "batch_dims", 0) != 0) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: axis is %s, batch_dims %lld, and x has the shape %s; the soft device "
                "takes one axis, no batches, and a dim at least",
                call.name, ShapeText(axis).c_str(),
                static_cast<long long>(IntegerOf(call, "batch_dims", 0)), ShapeText(x).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckDim(call, "axis", x.size(), axis.data()));
  std::vector<int64_t> shape(x.begin(), x.begin() + axis[0]);
  shape.insert(shape.end(), index.begin(), index.end());
  shape.insert(shape.end(), x.begin() + axis[0] + 1, x.end());
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnGatherV2GetWorkspaceSize)>(
        call, "aclnnGatherV2", own.Dense(call.inputs, 0, x), axis[0],
        own.Dense(call.inputs, 1, index), own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

// (x, index): for each index an element of the same place, but for one dim.
aclError GatherEach(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckTypeOfResult(call, 0));
  const std::vector<int64_t>& x = call.inputs.Shape(0);
  const std::vector<int64_t>& index = call.inputs.Shape(1);
  int64_t dim = IntegerOf(call, "dim", 0);
  ACLTAPE_RETURN_IF_FAILED(CheckDim(call, "dim", x.size(), &dim));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, index));
  if (ElementsOf(index) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnGatherGetWorkspaceSize)>(
        call, "aclnnGather", own.Dense(call.inputs, 0, x), dim, own.Dense(call.inputs, 1, index),
        own.Dense(call.outputs, 0, index)));
  }
  return ClearPadding(call);
}

// (gradient, indices) to the sums of the rows that have one index. Rows of the index padding_idx do
// not count; it is a position from the start here, and -1 means none.
aclError SumRowsByIndex(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckTypeOfResult(call, 0));
  const std::vector<int64_t>& gradient = call.inputs.Shape(0);
  std::vector<int64_t> rows = call.inputs.Shape(1);
  const int64_t count = IntegerOf(call, "num_weights", -1);
  const int64_t padding = IntegerOf(call, "padding_idx", -1);
  if (!gradient.empty()) rows.push_back(gradient.back());
  if (gradient.empty() || rows != gradient || count < 0 || padding < -1 || padding >= count) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: the gradient has the shape %s, the indices %s, num_weights is %lld and "
                "padding_idx %lld; expected a row for each index, and a position of the rows or -1",
                call.name, ShapeText(gradient).c_str(), ShapeText(call.inputs.Shape(1)).c_str(),
                static_cast<long long>(count), static_cast<long long>(padding));
  }
  const std::vector<int64_t> shape{count, gradient.back()};
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnEmbeddingDenseBackwardGetWorkspaceSize)>(
        call, "aclnnEmbeddingDenseBackward", own.Dense(call.inputs, 0, gradient),
        own.Whole(call.inputs, 1), static_cast<uint64_t>(count), static_cast<uint64_t>(padding),
        FlagOf(call, "scale_grad_by_freq", false), own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

// (x, multiples)
aclError RepeatTensor(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckTypeOfResult(call, 0));
  std::vector<int64_t> multiples, shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "multiples", &multiples));
  bool fits = multiples.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = multiples[i] >= 0 && !__builtin_mul_overflow(shape[i], multiples[i], &shape[i]);
  }
  if (!fits) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: multiples is %s; expected a number for each dim of the shape %s",
                call.name, ShapeText(multiples).c_str(), ShapeText(call.inputs.Shape(0)).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnRepeatGetWorkspaceSize)>(
        call, "aclnnRepeat", own.Whole(call.inputs, 0), own.Integers(multiples),
        own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

// Tensors of one shape, side by side in a new dim.
aclError StackTensors(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, std::max(call.inputs.count, 1), 1));
  std::vector<int64_t> shape = call.inputs.Shape(0);
  int64_t dim = IntegerOf(call, "axis", 0);
  ACLTAPE_RETURN_IF_FAILED(CheckDim(call, "axis", shape.size() + 1, &dim));
  for (int i = 0; i < call.inputs.count; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckTypeOfResult(call, i));
    if (call.inputs.Shape(i) == shape) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: input %d has the shape %s, and the first %s",
                call.name, i, ShapeText(call.inputs.Shape(i)).c_str(), ShapeText(shape).c_str());
  }
  shape.insert(shape.begin() + dim, call.inputs.count);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    std::vector<aclTensor*> parts;
    for (int i = 0; i < call.inputs.count; ++i) {
      parts.push_back(own.Whole(call.inputs, i));
    }
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnStackGetWorkspaceSize)>(
        call, "aclnnStack", own.List(parts), dim, own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

// Three inputs, whose shapes are broadcast; `one` and `other` may be numbers of the host.
struct ThreeTensors {
  explicit ThreeTensors(const NamedCall& call) : scratch(call.stream) {}

  aclError Read(const NamedCall& call, int first, int one, int other) {
    ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 3, 1));
    ACLTAPE_RETURN_IF_FAILED(CheckInput(call, first, "the first tensor"));
    ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
    for (int i : {one, other}) ACLTAPE_RETURN_IF_FAILED(CheckTypeOfResult(call, i));
    whole = own.Whole(call.inputs, first);
    ACLTAPE_RETURN_IF_FAILED(InputOnDevice(call, one, "the second tensor", &scratch, &own, &a));
    ACLTAPE_RETURN_IF_FAILED(InputOnDevice(call, other, "the third tensor", &scratch, &own, &b));
    out = own.Whole(call.outputs, 0);
    return ACL_SUCCESS;
  }

  NamedScratch scratch;
  OperatorArguments own;
  aclTensor *whole = nullptr, *a = nullptr, *b = nullptr, *out = nullptr;
};

// `truth`, `yes` and `no` are positions of inputs.
aclError Choose(const NamedCall& call, int truth, int yes, int no) {
  ThreeTensors with(call);
  ACLTAPE_RETURN_IF_FAILED(with.Read(call, truth, yes, no));
  const aclDataType type = call.inputs.descs[truth]->type;
  if (type != ACL_BOOL && type != ACL_UINT8) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: the condition has the type %d, expected bool",
                call.name, static_cast<int>(type));
  }
  if (ElementsOf(call.outputs.Shape(0)) > 0) {
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnSWhereGetWorkspaceSize)>(
        call, "aclnnSWhere", with.whole, with.a, with.b, with.out));
  }
  return ClearPadding(call);
}

// (condition, x1, x2)
aclError SelectElements(const NamedCall& call) { return Choose(call, 0, 1, 2); }
// (x, mask, value)
aclError FillByMask(const NamedCall& call) { return Choose(call, 1, 2, 0); }

// (x, least, most)
aclError ClipElements(const NamedCall& call) {
  ThreeTensors with(call);
  ACLTAPE_RETURN_IF_FAILED(with.Read(call, 0, 1, 2));
  ACLTAPE_RETURN_IF_FAILED(CheckTypeOfResult(call, 0));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, call.inputs.Shape(0)));
  if (ElementsOf(call.outputs.Shape(0)) > 0) {
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnClampTensorGetWorkspaceSize)>(
        call, "aclnnClampTensor", with.whole, with.a, with.b, with.out));
  }
  return ClearPadding(call);
}

aclError KeepTriangle(const NamedCall& call, const char* in_library) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckTypeOfResult(call, 0));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (shape.size() < 2) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: x has the shape %s, expected two dims at least",
                call.name, ShapeText(shape).c_str());
  }
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnTrilGetWorkspaceSize)>(
        call, in_library, own.Dense(call.inputs, 0, shape), IntegerOf(call, "diagonal", 0),
        own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}
static_assert(
    std::is_same_v<decltype(&aclnnTrilGetWorkspaceSize), decltype(&aclnnTriuGetWorkspaceSize)>);

aclError KeepLowerTriangle(const NamedCall& call) { return KeepTriangle(call, "aclnnTril"); }
aclError KeepUpperTriangle(const NamedCall& call) { return KeepTriangle(call, "aclnnTriu"); }

constexpr NamedOperator kGathers[] = {
    {"EmbeddingDenseGrad", SumRowsByIndex},
    {"GatherV2", GatherSlices},
    {"GatherElements", GatherEach},
    {"Tile", RepeatTensor},
    {"Pack", StackTensors},
    {"Select", SelectElements},
    {"MaskedFill", FillByMask},
    {"ClipByValueV2", ClipElements},
    {"Tril", KeepLowerTriangle},
    {"Triu", KeepUpperTriangle},
};

}  // namespace

NamedTable GathersByName() { return kGathers; }

}  // namespace acltape::device
