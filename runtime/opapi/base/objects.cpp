#include "runtime/opapi/base/objects.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "aclnn/aclnn_base.h"
#include "runtime/kernel_launch.h"
#include "runtime/opapi/base/dtype.h"
#include "runtime/opapi/base/live.h"

using acltape::opapi::CheckLive;
using acltape::opapi::ItemSize;
using acltape::opapi::kParamInvalid;
using acltape::opapi::kParamNull;
using acltape::opapi::Live;
using acltape::opapi::NameOf;
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

// Gives `values` of a live tensor as an array that the caller frees with delete[] (GetViewShape's
// convention).
template <typename Values>
aclnnStatus GiveArray(const char* function, const aclTensor* tensor, int64_t** array,
                      uint64_t* count, Values values) {
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckLive(function, "tensor", tensor));
  if (array == nullptr || count == nullptr) {
    return Reject(kParamNull, std::string(function) + ": an output is NULL.");
  }
  const std::vector<int64_t> given = values(*tensor);
  *array = new int64_t[given.size()];
  std::copy(given.begin(), given.end(), *array);
  *count = given.size();
  return OK;
}

// Gives one value of a live object.
template <typename Object, typename Out, typename Value>
aclnnStatus Give(const char* function, const Object* object, Out* out, Value value) {
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckLive(function, NameOf(object), object));
  if (out == nullptr) {
    return Reject(kParamNull, std::string(function) + ": the output is NULL.");
  }
  *out = value(*object);
  return OK;
}

// Destroying NULL is nothing, as with free: adapters do it for each absent argument.
template <typename Object>
aclnnStatus Destroy(const char* function, const Object* object) {
  if (object == nullptr || Live<Object>().Destroy(object)) return OK;
  return CheckLive(function, NameOf(object), object);
}

// Lists own their members. The list goes in any case; a member that went before is a mistake.
template <typename List, typename Member>
aclnnStatus DestroyList(const char* function, const List* list,
                        std::vector<Member*> List::*members) {
  if (list == nullptr) return OK;
  if (!Live<List>().Claim(list)) return CheckLive(function, NameOf(list), list);
  auto* claimed = const_cast<List*>(list);
  aclnnStatus status = OK;
  for (const Member* member : claimed->*members) {
    if (member == nullptr || Live<Member>().Destroy(member)) continue;
    status = CheckLive(function, "a member of the list", member);
  }
  Live<List>().Free(claimed);
  return status;
}

template <typename Array, typename Value>
Array* CreateArray(const char* function, const Value* values, uint64_t size) {
  if (size > 0 && values == nullptr) {
    Reject(kParamNull, std::string(function) + ": the values are NULL but the size is not 0.");
    return nullptr;
  }
  return Live<Array>().Create(decltype(Array::values)(values, values + size));
}

// A list of live objects; some may be NULL.
template <typename List, typename Member>
List* CreateList(const char* function, const Member* const* values, uint64_t size,
                 std::vector<Member*> List::*members) {
  if (size > 0 && values == nullptr) {
    Reject(kParamNull, std::string(function) + ": the members are NULL but the size is not 0.");
    return nullptr;
  }
  std::vector<Member*> given;
  for (uint64_t i = 0; i < size; ++i) {
    if (values[i] != nullptr && CheckLive(function, "a member", values[i]) != OK) return nullptr;
    given.push_back(const_cast<Member*>(values[i]));
  }
  List* list = Live<List>().Create();
  if (list != nullptr) list->*members = std::move(given);
  return list;
}

}  // namespace

extern "C" {

ACL_FUNC_VISIBILITY aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum,
                                               aclDataType dataType, const int64_t* stride,
                                               int64_t offset, aclFormat format,
                                               const int64_t* storageDims, uint64_t storageDimsNum,
                                               void* tensorData) {
  aclTensor* tensor = Live<aclTensor>().Create();
  if (tensor == nullptr) return nullptr;
  if (Describe(*tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
               storageDimsNum, tensorData)) {
    return tensor;
  }
  Live<aclTensor>().Destroy(tensor);
  Reject(kParamInvalid, "aclCreateTensor: dims are NULL or negative.");
  return nullptr;
}

ACL_FUNC_VISIBILITY aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims,
                                              uint64_t viewDimsNum, aclDataType dataType,
                                              const int64_t* stride, int64_t offset,
                                              aclFormat format, const int64_t* storageDims,
                                              uint64_t storageDimsNum, void* tensorDataAddr) {
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckLive("aclInitTensor", "tensor", tensor));
  if (!Describe(*tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                storageDimsNum, tensorDataAddr)) {
    return Reject(kParamInvalid, "aclInitTensor: dims are NULL or negative.");
  }
  return OK;
}

ACL_FUNC_VISIBILITY aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  const size_t size = ItemSize(dataType);
  if (value == nullptr || size == 0) {
    Reject(kParamInvalid, "aclCreateScalar: the value is NULL or its dtype is not supported.");
    return nullptr;
  }
  aclScalar* scalar = Live<aclScalar>().Create();
  if (scalar == nullptr) return nullptr;
  std::memcpy(scalar->bytes, value, size);
  scalar->dtype = dataType;
  return scalar;
}

ACL_FUNC_VISIBILITY aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return CreateArray<aclIntArray>("aclCreateIntArray", value, size);
}

ACL_FUNC_VISIBILITY aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return CreateArray<aclFloatArray>("aclCreateFloatArray", value, size);
}

ACL_FUNC_VISIBILITY aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return CreateArray<aclBoolArray>("aclCreateBoolArray", value, size);
}

ACL_FUNC_VISIBILITY aclTensorList* aclCreateTensorList(const aclTensor* const* value,
                                                       uint64_t size) {
  return CreateList("aclCreateTensorList", value, size, &aclTensorList::tensors);
}

ACL_FUNC_VISIBILITY aclScalarList* aclCreateScalarList(const aclScalar* const* value,
                                                       uint64_t size) {
  return CreateList("aclCreateScalarList", value, size, &aclScalarList::scalars);
}

ACL_FUNC_VISIBILITY aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return Destroy("aclDestroyTensor", tensor);
}
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return Destroy("aclDestroyScalar", scalar);
}
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return Destroy("aclDestroyIntArray", array);
}
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return Destroy("aclDestroyFloatArray", array);
}
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return Destroy("aclDestroyBoolArray", array);
}

ACL_FUNC_VISIBILITY aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return DestroyList("aclDestroyTensorList", array, &aclTensorList::tensors);
}

ACL_FUNC_VISIBILITY aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return DestroyList("aclDestroyScalarList", array, &aclScalarList::scalars);
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims,
                                                uint64_t* viewDimsNum) {
  return GiveArray("aclGetViewShape", tensor, viewDims, viewDimsNum, [](const aclTensor& live) {
    return live.reported != nullptr ? live.reported->Get(live.sizes) : live.sizes;
  });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                                                   uint64_t* storageDimsNum) {
  return GiveArray("aclGetStorageShape", tensor, storageDims, storageDimsNum,
                   [](const aclTensor& live) { return live.storage_dims; });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                                                  uint64_t* stridesNum) {
  return GiveArray("aclGetViewStrides", tensor, stridesValue, stridesNum,
                   [](const aclTensor& live) { return live.strides; });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return Give("aclGetViewOffset", tensor, offset,
              [](const aclTensor& live) { return live.offset; });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return Give("aclGetFormat", tensor, format, [](const aclTensor& live) { return live.format; });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return Give("aclGetDataType", tensor, dataType, [](const aclTensor& live) { return live.dtype; });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return Give("aclGetIntArraySize", array, size,
              [](const aclIntArray& live) { return live.values.size(); });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return Give("aclGetFloatArraySize", array, size,
              [](const aclFloatArray& live) { return live.values.size(); });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return Give("aclGetBoolArraySize", array, size,
              [](const aclBoolArray& live) { return live.values.size(); });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList,
                                                     uint64_t* size) {
  return Give("aclGetTensorListSize", tensorList, size,
              [](const aclTensorList& live) { return live.tensors.size(); });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList,
                                                     uint64_t* size) {
  return Give("aclGetScalarListSize", scalarList, size,
              [](const aclScalarList& live) { return live.scalars.size(); });
}

ACL_FUNC_VISIBILITY aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return Give("aclGetRawTensorAddr", tensor, addr,
              [](const aclTensor& live) { return live.address; });
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckLive("aclSetRawTensorAddr", "tensor", tensor));
  tensor->address = addr;
  return OK;
}

ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char* /*configPath*/) { return OK; }

ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize() { return OK; }

}  // extern "C"
