// Operators by name whose result has elements of their input as they are: parts, permutations,
// repeated elements, and tensors with a margin. Each is a copy between two views
// (aclnnInplaceCopy).
#include <algorithm>

#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_fill_scalar.h"
#include "aclnnop/aclnn_flip.h"
#include "aclnnop/aclnn_zero.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Dims = std::vector<int64_t>;

// Elements of the first input that become those of the output, in this shape.
struct ElementsView {
  Dims shape;
  Dims strides;
  int64_t offset = 0;
  Dims flipped = {};  // dims whose order is turned round
};

aclError CopyTensor(const NamedCall& call, aclTensor* to, const aclTensor* from) {
  return RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(call, "aclnnInplaceCopy", to,
                                                                  from);
}

// The elements of a tensor in plain order, of which parts can be taken: its own memory, or memory
// for a matrix that lies in blocks.
struct PlainTensor {
  PlainTensor(const NamedCall& call, const NamedTensors& tensors)
      : scratch(call.stream), of(tensors) {}

  aclError Find() {
    type = of.descs[0]->type;
    memory = of.buffers[0]->data;
    if (!of.InBlocks(0) || BytesOf(*of.descs[0]) == 0) return ACL_SUCCESS;
    return scratch.Take(BytesOf(*of.descs[0]), &memory);
  }
  aclTensor* Part(const Dims& shape, const Dims& strides, int64_t offset = 0) {
    return own.Tensor(type, memory, of.Shape(0), shape, strides, offset);
  }
  aclTensor* All() { return Part(of.Shape(0), RowMajorStrides(of.Shape(0))); }
  aclTensor* AllInBlocks() { return own.Whole(of, 0); }

  NamedScratch scratch;
  OperatorArguments own;
  const NamedTensors& of;
  aclDataType type = ACL_DT_UNDEFINED;
  void* memory = nullptr;
};

aclError CopyView(const NamedCall& call, const ElementsView& view) {
  if (ElementsOf(view.shape) == 0) return ClearPadding(call);
  PlainTensor from(call, call.inputs);
  ACLTAPE_RETURN_IF_FAILED(from.Find());
  if (call.inputs.InBlocks(0)) {
    ACLTAPE_RETURN_IF_FAILED(CopyTensor(call, from.All(), from.AllInBlocks()));
  }
  const aclTensor* part = from.Part(view.shape, view.strides, view.offset);
  OperatorArguments own;
  aclTensor* to = own.Dense(call.outputs, 0, view.shape);
  if (view.flipped.empty()) {
    ACLTAPE_RETURN_IF_FAILED(CopyTensor(call, to, part));
  } else {
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnFlipGetWorkspaceSize)>(
        call, "aclnnFlip", part, own.Integers(view.flipped), to));
  }
  return ClearPadding(call);
}

// One input and one output of the same type, besides inputs that the host knows.
aclError CheckOneTensor(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  return CheckSameType(call, call.inputs.descs[0]->type, call.outputs.descs[0]->type);
}

aclError CheckCountOf(const NamedCall& call, const char* name, const Dims& values, size_t count) {
  if (values.size() == count) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s has %zu numbers, expected %zu", call.name,
              name, values.size(), count);
}

// (x, offsets, size): size -1 means all from the offset on.
aclError SliceTensor(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckOneTensor(call));
  const Dims& shape = call.inputs.Shape(0);
  Dims offsets, sizes;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "offsets", &offsets));
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 2, "size", &sizes));
  ACLTAPE_RETURN_IF_FAILED(CheckCountOf(call, "offsets", offsets, shape.size()));
  ACLTAPE_RETURN_IF_FAILED(CheckCountOf(call, "size", sizes, shape.size()));
  ElementsView view{sizes, RowMajorStrides(shape)};
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool inside = offsets[i] >= 0 && offsets[i] <= shape[i];
    if (inside && sizes[i] == -1) view.shape[i] = shape[i] - offsets[i];
    if (!inside || view.shape[i] < 0 || view.shape[i] > shape[i] - offsets[i]) {
      return Fail(ACL_ERROR_INVALID_PARAM,
                  "aclop %s: %lld elements from %lld on are no part of dim %zu, which has %lld",
                  call.name, static_cast<long long>(sizes[i]), static_cast<long long>(offsets[i]),
                  i, static_cast<long long>(shape[i]));
    }
    view.offset += offsets[i] * view.strides[i];
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, view.shape));
  return CopyView(call, view);
}

bool HasBit(int64_t mask, size_t bit) { return bit < 63 && (mask >> bit & 1) != 0; }

// The arguments of a StridedSlice, for one place of its lists.
struct StridedRange {
  int64_t begin, end, stride;
  bool from_start, to_end;  // `begin` or `end` is not looked at
};

// Appends the elements that a range takes of a dim to a view.
void TakeRange(const StridedRange& range, int64_t size, int64_t stride, ElementsView* view) {
  const bool down = range.stride < 0;
  const auto within = [&](int64_t index) {
    return std::clamp<int64_t>(index < 0 ? index + size : index, down ? -1 : 0,
                               down ? size - 1 : size);
  };
  const int64_t begin = range.from_start ? (down ? size - 1 : 0) : within(range.begin);
  const int64_t end = range.to_end ? (down ? -1 : size) : within(range.end);
  const int64_t step = down ? -range.stride : range.stride;
  const int64_t distance = down ? begin - end : end - begin;
  const int64_t count = distance > 0 ? (distance - 1) / step + 1 : 0;
  if (down) view->flipped.push_back(static_cast<int64_t>(view->shape.size()));
  view->shape.push_back(count);
  view->strides.push_back(count > 1 ? stride * step : stride);
  if (count > 0) view->offset += (down ? begin - (count - 1) * step : begin) * stride;
}

Dims WithoutOnes(Dims shape) {
  std::erase(shape, 1);
  return shape;
}

// (x, begin, end, strides), with the masks of TensorFlow's operator of this name.
aclError SliceWithStrides(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckOneTensor(call));
  const Dims& shape = call.inputs.Shape(0);
  const Dims in_strides = RowMajorStrides(shape);
  Dims begins, ends, steps;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "begin", &begins));
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 2, "end", &ends));
  if (call.inputs.count > 3) {
    ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 3, "strides", &steps));
  } else {
    steps.assign(begins.size(), 1);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckCountOf(call, "end", ends, begins.size()));
  ACLTAPE_RETURN_IF_FAILED(CheckCountOf(call, "strides", steps, begins.size()));
  const int64_t new_axes = IntegerOf(call, "new_axis_mask", 0);
  const int64_t ellipses = IntegerOf(call, "ellipsis_mask", 0);
  size_t named = 0, ellipsis_count = 0;  // dims of the input that the lists name
  for (size_t i = 0; i < begins.size(); ++i) {
    if (HasBit(ellipses, i)) {
      ++ellipsis_count;
    } else if (!HasBit(new_axes, i)) {
      ++named;
    }
  }
  if (named > shape.size() || ellipsis_count > 1) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: begin names %zu dims and %zu ellipses; the input has %zu dims, and one "
                "ellipsis is possible",
                call.name, named, ellipsis_count, shape.size());
  }
  ElementsView view;
  size_t dim = 0;
  const auto take_all = [&](size_t count) {
    for (; count > 0; --count, ++dim) {
      view.shape.push_back(shape[dim]);
      view.strides.push_back(in_strides[dim]);
    }
  };
  for (size_t i = 0; i < begins.size(); ++i) {
    if (HasBit(ellipses, i)) {
      take_all(shape.size() - named);
      continue;
    }
    if (HasBit(new_axes, i)) {
      view.shape.push_back(1);
      view.strides.push_back(1);
      continue;
    }
    const bool shrinks = HasBit(IntegerOf(call, "shrink_axis_mask", 0), i);
    if (steps[i] == 0 || steps[i] == INT64_MIN) {
      return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: strides has %lld in place %zu", call.name,
                  static_cast<long long>(steps[i]), i);
    }
    if (shrinks) {
      const int64_t index = begins[i] < 0 ? begins[i] + shape[dim] : begins[i];
      if (index < 0 || index >= shape[dim]) {
        return Fail(ACL_ERROR_INVALID_PARAM,
                    "aclop %s: element %lld is outside of dim %zu, which has %lld", call.name,
                    static_cast<long long>(begins[i]), dim, static_cast<long long>(shape[dim]));
      }
      view.offset += index * in_strides[dim];
    } else {
      TakeRange({begins[i], ends[i], steps[i], HasBit(IntegerOf(call, "begin_mask", 0), i),
                 HasBit(IntegerOf(call, "end_mask", 0), i)},
                shape[dim], in_strides[dim], &view);
    }
    ++dim;
  }
  if (ellipsis_count == 0) take_all(shape.size() - dim);
  // torch_npu describes an output without regard to dims of one element that come or go.
  if (WithoutOnes(view.shape) != WithoutOnes(call.outputs.Shape(0))) {
    return CheckShape(call, 0, view.shape);
  }
  return CopyView(call, view);
}

ElementsView Permuted(const Dims& shape, const Dims& order) {
  const Dims strides = RowMajorStrides(shape);
  ElementsView view;
  for (int64_t dim : order) {
    view.shape.push_back(shape[dim]);
    view.strides.push_back(strides[dim]);
  }
  return view;
}

aclError CheckPermutation(const NamedCall& call, Dims* order, size_t rank) {
  if (IsPermutation(order, rank)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: perm %s is no order of %zu dims", call.name,
              ShapeText(*order).c_str(), rank);
}

// (x, perm)
aclError TransposeTensor(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckOneTensor(call));
  Dims order;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "perm", &order));
  ACLTAPE_RETURN_IF_FAILED(CheckPermutation(call, &order, call.inputs.Shape(0).size()));
  const ElementsView view = Permuted(call.inputs.Shape(0), order);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, view.shape));
  return CopyView(call, view);
}

// A transposition before or after a change of the shape.
aclError TransposeAndReshape(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckOneTensor(call));
  const bool first = FlagOf(call, "transpose_first", false);
  const Dims shape = IntegersOf(call, "shape");
  Dims order = IntegersOf(call, "perm");
  const Dims& transposed = first ? call.inputs.Shape(0) : shape;
  ACLTAPE_RETURN_IF_FAILED(CheckPermutation(call, &order, transposed.size()));
  if (ElementsOf(shape) != ElementsOf(call.inputs.Shape(0)) ||
      std::any_of(shape.begin(), shape.end(), [](int64_t dim) { return dim < 0; })) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: the shape %s has other elements than the input of shape %s", call.name,
                ShapeText(shape).c_str(), ShapeText(call.inputs.Shape(0)).c_str());
  }
  const ElementsView view = Permuted(transposed, order);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, first ? shape : view.shape));
  return CopyView(call, view);
}

// (x, shape)
aclError BroadcastTensor(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckOneTensor(call));
  const Dims& from = call.inputs.Shape(0);
  const Dims strides = RowMajorStrides(from);
  Dims shape;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "shape", &shape));
  bool fits = shape.size() >= from.size();
  ElementsView view{shape, Dims(shape.size(), 0)};
  for (size_t i = 0; fits && i < from.size(); ++i) {
    const size_t to = shape.size() - from.size() + i;
    if (view.shape[to] == -1) view.shape[to] = from[i];
    fits = from[i] == 1 || from[i] == view.shape[to];
    if (from[i] != 1) view.strides[to] = strides[i];
  }
  if (!fits) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: a tensor of shape %s is not broadcast to %s",
                call.name, ShapeText(from).c_str(), ShapeText(shape).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, view.shape));
  return CopyView(call, view);
}

// (x, paddings, constant_values): elements before and after those of each dim in turn. The value is
// 0 where it is not given.
aclError PadTensor(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckOneTensor(call));
  const Dims& inner = call.inputs.Shape(0);
  Dims margins;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "paddings", &margins));
  ACLTAPE_RETURN_IF_FAILED(CheckCountOf(call, "paddings", margins, 2 * inner.size()));
  const std::string mode = call.Text("mode");
  if ((!mode.empty() && mode != "constant") || !FlagOf(call, "paddings_contiguous", true)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: the soft device pads with a constant alone, and takes the margins of a "
                "dim side by side",
                call.name);
  }
  Dims outer = inner;
  const auto negative = [](int64_t margin) { return margin < 0; };
  bool fits = std::none_of(margins.begin(), margins.end(), negative);
  for (size_t i = 0; i < inner.size(); ++i) {
    fits = fits && !__builtin_add_overflow(outer[i], margins[2 * i], &outer[i]) &&
           !__builtin_add_overflow(outer[i], margins[2 * i + 1], &outer[i]);
  }
  if (!fits) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: paddings %s has a number that is negative or too large", call.name,
                ShapeText(margins).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, outer));
  if (ElementsOf(outer) == 0) return ClearPadding(call);
  PlainTensor to(call, call.outputs);
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(to.Find());
  if (call.inputs.count > 2 && !OnHost(call.inputs, 2)) {
    ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 2, "constant_values"));
    ACLTAPE_RETURN_IF_FAILED(
        CheckSameType(call, call.inputs.descs[2]->type, call.outputs.descs[0]->type));
    ACLTAPE_RETURN_IF_FAILED(
        CheckCountOf(call, "constant_values", Dims(ElementsOf(call.inputs.Shape(2))), 1));
    ACLTAPE_RETURN_IF_FAILED(CopyTensor(call, to.All(), own.Dense(call.inputs, 2, {})));
  } else if (call.inputs.count > 2) {
    const aclDataType type = call.inputs.descs[2]->type;
    const char* value = nullptr;
    ACLTAPE_RETURN_IF_FAILED(ReadBytes(call, 2, "constant_values", aclDataTypeSize(type), &value));
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceFillScalarGetWorkspaceSize)>(
        call, "aclnnInplaceFillScalar", to.All(), own.Scalar(type, value)));
  } else {
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceZeroGetWorkspaceSize)>(
        call, "aclnnInplaceZero", to.All()));
  }
  if (ElementsOf(inner) > 0) {
    const Dims strides = RowMajorStrides(outer);
    int64_t offset = 0;
    for (size_t i = 0; i < inner.size(); ++i) offset += margins[2 * i] * strides[i];
    ACLTAPE_RETURN_IF_FAILED(
        CopyTensor(call, to.Part(inner, strides, offset), own.Dense(call.inputs, 0, inner)));
  }
  if (call.outputs.InBlocks(0)) {
    ACLTAPE_RETURN_IF_FAILED(CopyTensor(call, to.AllInBlocks(), to.All()));
  }
  return ClearPadding(call);
}

// (x, axis): the elements of these dims in the reverse order.
aclError ReverseTensor(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckOneTensor(call));
  const Dims& shape = call.inputs.Shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  ElementsView view{shape, RowMajorStrides(shape)};
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "axis", &view.flipped));
  for (int64_t& dim : view.flipped) {
    if (dim < 0) dim += rank;
    if (dim >= 0 && dim < rank) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: axis %s has no dims of a tensor of shape %s",
                call.name, ShapeText(view.flipped).c_str(), ShapeText(shape).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  return CopyView(call, view);
}

// (x, size, stride, storage_offset): elements of the memory of x, whatever its shape is.
aclError CopyStrided(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckOneTensor(call));
  Dims shape, strides, offset;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "size", &shape));
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 2, "stride", &strides));
  if (call.inputs.count > 3) {
    ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 3, "storage_offset", &offset));
  } else {
    offset = {0};
  }
  ACLTAPE_RETURN_IF_FAILED(CheckCountOf(call, "stride", strides, shape.size()));
  ACLTAPE_RETURN_IF_FAILED(CheckCountOf(call, "storage_offset", offset, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  const aclTensorDesc& desc = *call.inputs.descs[0];
  const aclDataBuffer& buffer = *call.inputs.buffers[0];
  const auto elements = static_cast<int64_t>(buffer.bytes / aclDataTypeSize(desc.type));
  int64_t last = offset[0];
  bool fits = offset[0] >= 0 && !call.inputs.InBlocks(0);
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t length = 0;
    fits = fits && strides[i] >= 0 && !__builtin_mul_overflow(shape[i] - 1, strides[i], &length) &&
           !__builtin_add_overflow(last, length, &last);
  }
  if (!fits || last >= elements) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: the size %s with the strides %s from element %lld on leaves the memory "
                "of %lld elements in plain order",
                call.name, ShapeText(shape).c_str(), ShapeText(strides).c_str(),
                static_cast<long long>(offset[0]), static_cast<long long>(elements));
  }
  OperatorArguments own;
  const aclTensor* from = own.Tensor(desc.type, buffer.data, {elements}, shape, strides, offset[0]);
  ACLTAPE_RETURN_IF_FAILED(CopyTensor(call, own.Dense(call.outputs, 0, shape), from));
  return ClearPadding(call);
}

constexpr NamedOperator kViews[] = {
    {"Slice", SliceTensor},
    {"StridedSlice", SliceWithStrides},
    {"Transpose", TransposeTensor},
    {"ConfusionTransposeD", TransposeAndReshape},
    {"AsStrided", CopyStrided},
    {"ReverseV2", ReverseTensor},
    {"BroadcastTo", BroadcastTensor},
    {"Pad", PadTensor},
    {"PadV3", PadTensor},
};

}  // namespace

NamedTable ViewsByName() { return kViews; }

}  // namespace acltape::device
