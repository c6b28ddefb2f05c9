// A copy between views of two buffers, whose sizes, strides and offsets the host knows (ViewCopy).
#include "aclnnop/aclnn_copy.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

struct BufferView {
  std::vector<int64_t> size, stride;
  int64_t offset = 0;
};

// The index after the last element of a view; false when no buffer could hold it.
bool EndOf(const BufferView& view, int64_t* end) {
  *end = view.offset;
  for (size_t i = 0; i < view.size.size(); ++i) {
    int64_t steps = 0;
    if (view.size[i] < 0 || view.stride[i] < 0) return false;
    if (view.size[i] == 0) continue;
    if (__builtin_mul_overflow(view.size[i] - 1, view.stride[i], &steps) ||
        __builtin_add_overflow(*end, steps, end)) {
      return false;
    }
  }
  return *end >= view.offset && !__builtin_add_overflow(*end, int64_t{1}, end);
}

// Reads the tensor `input`, after which its sizes, strides and offset stand.
aclError ReadView(const NamedCall& call, int input, const char* name, BufferView* view) {
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, input, name));
  const std::string of = name;
  std::vector<int64_t> offset;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, input + 1, (of + "_size").c_str(), &view->size));
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, input + 2, (of + "_stride").c_str(), &view->stride));
  ACLTAPE_RETURN_IF_FAILED(
      ReadIntegers(call, input + 3, (of + "_storage_offset").c_str(), &offset));
  const size_t bytes = aclDataTypeSize(call.inputs.descs[input]->type);
  int64_t end = 0;
  bool fits = offset.size() == 1 && offset[0] >= 0 && view->size.size() == view->stride.size() &&
              bytes > 0 && !call.inputs.InBlocks(input);
  if (fits) view->offset = offset[0];
  fits = fits && EndOf(*view, &end) &&
         (ElementsOf(view->size) == 0 ||
          static_cast<size_t>(end) <= call.inputs.buffers[input]->bytes / bytes);
  if (fits) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: %s has the type %d, and a view of the size %s, the stride %s and the "
              "offset %s; no number is negative, and the view lies inside of the %zu bytes of the "
              "buffer, not in FRACTAL_NZ",
              call.name, name, static_cast<int>(call.inputs.descs[input]->type),
              ShapeText(view->size).c_str(), ShapeText(view->stride).c_str(),
              ShapeText(offset).c_str(), call.inputs.buffers[input]->bytes);
}

// A view of an input. Its strides count from the start of the buffer.
aclTensor* TensorOf(OperatorArguments& own, const NamedCall& call, int input,
                    const BufferView& view) {
  const aclDataBuffer& buffer = *call.inputs.buffers[input];
  const aclDataType type = call.inputs.descs[input]->type;
  return own.Tensor(type, buffer.data, {static_cast<int64_t>(buffer.bytes / aclDataTypeSize(type))},
                    view.size, view.stride, view.offset);
}

// (dst, size, stride, offset, src, size, stride, offset): the first tensor is the output, too.
aclError CopyBetweenViews(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 8, 1));
  BufferView to, from;
  ACLTAPE_RETURN_IF_FAILED(ReadView(call, 0, "dst", &to));
  ACLTAPE_RETURN_IF_FAILED(ReadView(call, 4, "src", &from));
  ACLTAPE_RETURN_IF_FAILED(
      CheckSameType(call, call.inputs.descs[0]->type, call.inputs.descs[4]->type));
  const aclDataBuffer* out = call.outputs.buffers[0];
  if (to.size != from.size || out == nullptr || out->data != call.inputs.buffers[0]->data ||
      call.outputs.descs[0]->type != call.inputs.descs[0]->type) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: dst_size is %s and src_size %s, and the output is not dst or has the "
                "type %d; both sizes are equal, and the output is dst",
                call.name, ShapeText(to.size).c_str(), ShapeText(from.size).c_str(),
                static_cast<int>(call.outputs.descs[0]->type));
  }
  if (ElementsOf(to.size) == 0) return ACL_SUCCESS;
  OperatorArguments own;
  return RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(
      call, "aclnnInplaceCopy", TensorOf(own, call, 0, to), TensorOf(own, call, 4, from));
}

constexpr NamedOperator kViewCopies[] = {
    {"ViewCopy", CopyBetweenViews},
};

}  // namespace

NamedTable ViewCopiesByName() { return kViewCopies; }

}  // namespace acltape::device
