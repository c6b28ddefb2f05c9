#include "runtime/compat/atb_operation.h"

#include <cstdio>
#include <utility>

namespace atb {
namespace {

Sizes DenseStrides(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

}  // namespace

Sizes SizesOf(const Tensor& tensor) {
  return {tensor.desc.shape.dims, tensor.desc.shape.dims + tensor.desc.shape.dimNum};
}

int64_t CountFrom(const Tensor& tensor, size_t dim) {
  int64_t count = 1;
  for (size_t i = dim; i < tensor.desc.shape.dimNum; ++i) count *= tensor.desc.shape.dims[i];
  return count;
}

View::View(const Tensor& tensor, Matrix matrix) : View(tensor, SizesOf(tensor), matrix) {}

View::View(const Tensor& tensor, Sizes sizes, Matrix matrix) {
  Sizes strides = DenseStrides(sizes);
  if (matrix == Matrix::kTransposed) {
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
  }
  handle_ = aclCreateTensor(sizes.data(), sizes.size(), tensor.desc.dtype, strides.data(), 0,
                            tensor.desc.format, sizes.data(), sizes.size(), tensor.deviceData);
}

View::View(const Tensor& tensor, const Sizes& sizes, const Sizes& whole)
    : handle_(aclCreateTensor(sizes.data(), sizes.size(), tensor.desc.dtype,
                              DenseStrides(whole).data(), 0, tensor.desc.format, whole.data(),
                              whole.size(), tensor.deviceData)) {}

View::~View() { aclDestroyTensor(handle_); }

Sizes NumbersIn(const Tensor& tensor) {
  const auto* first = static_cast<const int32_t*>(tensor.hostData);
  return {first, first + CountFrom(tensor, 0)};
}

HostNumbers::HostNumbers(const Sizes& values)
    : handle_(aclCreateIntArray(values.data(), values.size())) {}

HostNumbers::~HostNumbers() { aclDestroyIntArray(handle_); }

bool LieInHostMemory(const Tensor& tensor) {
  return tensor.desc.shape.dimNum == 1 && tensor.desc.dtype == ACL_INT32 &&
         (tensor.hostData != nullptr || CountFrom(tensor, 0) == 0);
}

Status SoftOperation::Setup(const VariantPack& pack, uint64_t& workspace_size, Context* context) {
  workspace_size = 0;
  const char* lacks = "has another number of tensors, or no context";
  if (context != nullptr && pack.inTensors.size() == inputs_ &&
      pack.outTensors.size() == outputs_) {
    lacks = Lacks(pack);
  }
  if (lacks == nullptr) return kNoError;
  std::fprintf(stderr, "acltape: %s %s.\n", name_, lacks);
  return kInvalidParam;
}

// Callers do not look at what Execute gives back, so a failure is said here too.
Status SoftOperation::Execute(const VariantPack& pack, uint8_t*, uint64_t workspace_size,
                              Context* context) {
  if (Setup(pack, workspace_size, context) != kNoError) return kInvalidParam;
  const aclnnStatus status = Issue(pack, context->GetExecuteStream());
  if (status == 0) return kNoError;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "acltape: %s failed (%d): %s\n", name_, status, text != nullptr ? text : "");
  return status;
}

Status Offered(const char* operation, std::initializer_list<Parameter> parameters) {
  for (const Parameter& parameter : parameters) {
    if (parameter.offered) continue;
    std::fprintf(stderr, "acltape: %s with %s %g is not offered by the soft device.\n", operation,
                 parameter.name, parameter.value);
    return kInvalidParam;
  }
  return kNoError;
}

}  // namespace atb
