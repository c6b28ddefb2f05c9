// Tensor descriptions: plain structures, which need no device.
#include "runtime/device/tensor_desc.h"

#include <algorithm>

#include "runtime/device/call.h"
#include "runtime/device/plain_object.h"
#include "runtime/device/thread_state.h"

using namespace acltape::device;

namespace acltape::device {

size_t BytesOf(const aclTensorDesc& desc) {
  return ElementsOf(desc.shape) * aclDataTypeSize(desc.type);
}

}  // namespace acltape::device

namespace {

bool ShapeIsGiven(int dims, const int64_t* shape) {
  return dims == 0 || (dims > 0 && shape != nullptr);
}

aclError SetShape(std::vector<int64_t>& to, int dims, const int64_t* shape, const char* call) {
  if (!ShapeIsGiven(dims, shape)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: %d dimensions at %p are no shape", call, dims,
                static_cast<const void*>(shape));
  }
  to.assign(shape, shape + dims);
  return ACL_SUCCESS;
}

// The shape that readers see: that of the memory where it was given.
const std::vector<int64_t>& ShownShape(const aclTensorDesc& desc) {
  return desc.storage_shape.empty() ? desc.shape : desc.storage_shape;
}

}  // namespace

aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t* dims,
                                   aclFormat format) {
  if (!ShapeIsGiven(numDims, dims)) {
    Fail(ACL_ERROR_INVALID_PARAM, "aclCreateTensorDesc: %d dimensions at %p are no shape", numDims,
         static_cast<const void*>(dims));
    return nullptr;
  }
  aclTensorDesc* desc = Plain<aclTensorDesc>().Create();
  if (desc == nullptr) return nullptr;
  desc->type = dataType;
  desc->shape.assign(dims, dims + numDims);
  desc->format = format;
  desc->storage_format = format;
  desc->made_by = SystemThreadId();
  return desc;
}

// Destroying NULL is nothing, as with free.
void aclDestroyTensorDesc(const aclTensorDesc* desc) {
  if (desc != nullptr) DestroyPlain(desc, "aclDestroyTensorDesc", "desc");
}

aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
  return ValueOr(
      desc, "aclGetTensorDescType", "desc", [](const aclTensorDesc& live) { return live.type; },
      ACL_DT_UNDEFINED);
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
  return ValueOr(
      desc, "aclGetTensorDescFormat", "desc",
      [](const aclTensorDesc& live) { return live.storage_format; }, ACL_FORMAT_UNDEFINED);
}

size_t aclGetTensorDescElementCount(const aclTensorDesc* desc) {
  return ValueOr(
      desc, "aclGetTensorDescElementCount", "desc",
      [](const aclTensorDesc& live) { return ElementsOf(ShownShape(live)); }, 0);
}

size_t aclGetTensorDescSize(const aclTensorDesc* desc) {
  return ValueOr(
      desc, "aclGetTensorDescSize", "desc",
      [](const aclTensorDesc& live) {
        return ElementsOf(ShownShape(live)) * aclDataTypeSize(live.type);
      },
      0);
}

size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
  return ValueOr(
      desc, "aclGetTensorDescNumDims", "desc",
      [](const aclTensorDesc& live) { return ShownShape(live).size(); }, 0);
}

int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index) {
  int64_t dim = -1;
  return aclGetTensorDescDimV2(desc, index, &dim) == ACL_SUCCESS ? dim : -1;
}

aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* dimSize) {
  ACLTAPE_CALL("aclGetTensorDescDimV2");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(desc, kCall, "desc"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(dimSize, kCall, "dimSize"));
  const std::vector<int64_t>& shape = ShownShape(*desc);
  if (index >= shape.size()) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no dimension %zu in a shape of %zu", kCall,
                index, shape.size());
  }
  *dimSize = shape[index];
  return ACL_SUCCESS;
}

void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
  if (CheckPlain(desc, "aclSetTensorDescName", "desc") != ACL_SUCCESS) return;
  desc->name = name != nullptr ? name : "";
}

const char* aclGetTensorDescName(aclTensorDesc* desc) {
  return ValueOr(
      desc, "aclGetTensorDescName", "desc",
      [](const aclTensorDesc& live) { return live.name.c_str(); }, "");
}

aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
  ACLTAPE_CALL("aclSetTensorFormat");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(desc, kCall, "desc"));
  desc->storage_format = format;
  return ACL_SUCCESS;
}

aclError aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  ACLTAPE_CALL("aclSetTensorShape");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(desc, kCall, "desc"));
  return SetShape(desc->storage_shape, numDims, dims, kCall);
}

aclError aclSetTensorOriginFormat(aclTensorDesc* desc, aclFormat format) {
  ACLTAPE_CALL("aclSetTensorOriginFormat");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(desc, kCall, "desc"));
  desc->format = format;
  return ACL_SUCCESS;
}

aclError aclSetTensorOriginShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  ACLTAPE_CALL("aclSetTensorOriginShape");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(desc, kCall, "desc"));
  return SetShape(desc->shape, numDims, dims, kCall);
}

aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) {
  ACLTAPE_CALL("aclSetTensorPlaceMent");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(desc, kCall, "desc"));
  desc->memory = memType;
  return ACL_SUCCESS;
}

aclError aclSetTensorConst(aclTensorDesc* desc, void* dataBuffer, size_t length) {
  ACLTAPE_CALL("aclSetTensorConst");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(desc, kCall, "desc"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(dataBuffer, kCall, "dataBuffer"));
  const char* first = static_cast<const char*>(dataBuffer);
  desc->constant.assign(first, first + length);
  return ACL_SUCCESS;
}
