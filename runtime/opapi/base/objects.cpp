#include "runtime/opapi/base/objects.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "aclnn/aclnn_base.h"
#include "runtime/kernel_launch.h"
#include "runtime/opapi/base/dtype.h"

using acltape::opapi::ItemSize;
using acltape::opapi::kParamInvalid;
using acltape::opapi::kParamNull;
using acltape::opapi::Reject;

namespace acltape::opapi {

aclnnStatus Reject(aclnnStatus code, const std::string& message) {
  SoftSetErrorMessage(message.c_str());
  return code;
}

}  // namespace acltape::opapi

namespace {

// Row-major strides of a dense tensor.
std::vector<int64_t> DenseStrides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

bool Describe(aclTensor& tensor, const int64_t* dims, uint64_t count, aclDataType dtype,
              const int64_t* strides, int64_t offset, aclFormat format, const int64_t* storage_dims,
              uint64_t storage_count, void* address) {
  if ((count > 0 && dims == nullptr) || (storage_count > 0 && storage_dims == nullptr)) {
    return false;
  }
  if (std::any_of(dims, dims + count, [](int64_t size) { return size < 0; })) return false;
  tensor.sizes.assign(dims, dims + count);
  if (strides != nullptr) {
    tensor.strides.assign(strides, strides + count);
  } else {
    tensor.strides = DenseStrides(tensor.sizes);
  }
  tensor.storage_dims.assign(storage_dims, storage_dims + storage_count);
  tensor.offset = offset;
  tensor.dtype = dtype;
  tensor.format = format;
  tensor.address = address;
  tensor.reported.reset();
  return true;
}

// Copies `values` into an array that the caller frees with delete[] (GetViewShape's convention).
aclnnStatus GiveArray(const char* function, const void* object, const std::vector<int64_t>* values,
                      int64_t** array, uint64_t* count) {
  if (object == nullptr || array == nullptr || count == nullptr) {
    return Reject(kParamNull, std::string(function) + ": an argument is NULL.");
  }
  *array = new int64_t[values->size()];
  std::copy(values->begin(), values->end(), *array);
  *count = values->size();
  return OK;
}

template <typename Value>
aclnnStatus Give(const char* function, const void* object, const void* out, Value value) {
  if (object == nullptr || out == nullptr) {
    return Reject(kParamNull, std::string(function) + ": an argument is NULL.");
  }
  value();
  return OK;
}

template <typename Object>
aclnnStatus Destroy(const Object* object) {
  delete object;
  return OK;
}

template <typename Array, typename Value>
Array* CreateArray(const Value* values, uint64_t size) {
  if (size > 0 && values == nullptr) {
    SoftSetErrorMessage("Creating an array: the values are NULL but the size is not 0.");
    return nullptr;
  }
  auto* array = new Array;
  array->values.assign(values, values + size);
  return array;
}

}  // namespace

extern "C" {

ACL_FUNC_VISIBILITY aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum,
                                               aclDataType dataType, const int64_t* stride,
                                               int64_t offset, aclFormat format,
                                               const int64_t* storageDims, uint64_t storageDimsNum,
                                               void* tensorData) {
  auto tensor = std::make_unique<aclTensor>();
  if (!Describe(*tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                storageDimsNum, tensorData)) {
    SoftSetErrorMessage("aclCreateTensor: dims are NULL or negative.");
    return nullptr;
  }
  return tensor.release();
}

ACL_FUNC_VISIBILITY aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims,
                                              uint64_t viewDimsNum, aclDataType dataType,
                                              const int64_t* stride, int64_t offset,
                                              aclFormat format, const int64_t* storageDims,
                                              uint64_t storageDimsNum, void* tensorDataAddr) {
  if (tensor == nullptr) return Reject(kParamNull, "aclInitTensor: tensor is NULL.");
  if (!Describe(*tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                storageDimsNum, tensorDataAddr)) {
    return Reject(kParamInvalid, "aclInitTensor: dims are NULL or negative.");
  }
  return OK;
}

ACL_FUNC_VISIBILITY aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  const size_t size = ItemSize(dataType);
  if (value == nullptr || size == 0) {
    SoftSetErrorMessage("aclCreateScalar: the value is NULL or its dtype is not supported.");
    return nullptr;
  }
  auto* scalar = new aclScalar{};
  std::memcpy(scalar->bytes, value, size);
  scalar->dtype = dataType;
  return scalar;
}

ACL_FUNC_VISIBILITY aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return CreateArray<aclIntArray>(value, size);
}

ACL_FUNC_VISIBILITY aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return CreateArray<aclFloatArray>(value, size);
}

ACL_FUNC_VISIBILITY aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return CreateArray<aclBoolArray>(value, size);
}

ACL_FUNC_VISIBILITY aclTensorList* aclCreateTensorList(const aclTensor* const* value,
                                                       uint64_t size) {
  if (size > 0 && value == nullptr) {
    SoftSetErrorMessage("aclCreateTensorList: the tensors are NULL but the size is not 0.");
    return nullptr;
  }
  auto* list = new aclTensorList;
  for (uint64_t i = 0; i < size; ++i) list->tensors.push_back(const_cast<aclTensor*>(value[i]));
  return list;
}

ACL_FUNC_VISIBILITY aclScalarList* aclCreateScalarList(const aclScalar* const* value,
                                                       uint64_t size) {
  if (size > 0 && value == nullptr) {
    SoftSetErrorMessage("aclCreateScalarList: the scalars are NULL but the size is not 0.");
    return nullptr;
  }
  auto* list = new aclScalarList;
  for (uint64_t i = 0; i < size; ++i) list->scalars.push_back(const_cast<aclScalar*>(value[i]));
  return list;
}

ACL_FUNC_VISIBILITY aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return Destroy(tensor);
}
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return Destroy(scalar);
}
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return Destroy(array);
}
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return Destroy(array);
}
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return Destroy(array);
}

ACL_FUNC_VISIBILITY aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  if (array != nullptr) {
    for (const aclTensor* tensor : array->tensors) delete tensor;
  }
  return Destroy(array);
}

ACL_FUNC_VISIBILITY aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  if (array != nullptr) {
    for (const aclScalar* scalar : array->scalars) delete scalar;
  }
  return Destroy(array);
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims,
                                                uint64_t* viewDimsNum) {
  if (tensor != nullptr && tensor->reported != nullptr) {
    const std::vector<int64_t> sizes = tensor->reported->Get(tensor->sizes);
    return GiveArray("aclGetViewShape", tensor, &sizes, viewDims, viewDimsNum);
  }
  return GiveArray("aclGetViewShape", tensor, tensor ? &tensor->sizes : nullptr, viewDims,
                   viewDimsNum);
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                                                   uint64_t* storageDimsNum) {
  return GiveArray("aclGetStorageShape", tensor, tensor ? &tensor->storage_dims : nullptr,
                   storageDims, storageDimsNum);
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                                                  uint64_t* stridesNum) {
  return GiveArray("aclGetViewStrides", tensor, tensor ? &tensor->strides : nullptr, stridesValue,
                   stridesNum);
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return Give("aclGetViewOffset", tensor, offset, [&] { *offset = tensor->offset; });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return Give("aclGetFormat", tensor, format, [&] { *format = tensor->format; });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return Give("aclGetDataType", tensor, dataType, [&] { *dataType = tensor->dtype; });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return Give("aclGetIntArraySize", array, size, [&] { *size = array->values.size(); });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return Give("aclGetFloatArraySize", array, size, [&] { *size = array->values.size(); });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return Give("aclGetBoolArraySize", array, size, [&] { *size = array->values.size(); });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList,
                                                     uint64_t* size) {
  return Give("aclGetTensorListSize", tensorList, size,
              [&] { *size = tensorList->tensors.size(); });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList,
                                                     uint64_t* size) {
  return Give("aclGetScalarListSize", scalarList, size,
              [&] { *size = scalarList->scalars.size(); });
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  if (tensor == nullptr) return Reject(kParamNull, "aclSetRawTensorAddr: tensor is NULL.");
  tensor->address = addr;
  return OK;
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return Give("aclGetRawTensorAddr", tensor, addr, [&] { *addr = tensor->address; });
}

ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char* /*configPath*/) { return OK; }

ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize() { return OK; }

}  // extern "C"
