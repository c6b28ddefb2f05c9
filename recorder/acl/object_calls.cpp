// The wrapped functions that make, change and destroy the operators' argument objects. They are no
// calls of their own in the trace: what they say comes back in the operators that take the objects.
#include "aclnn/acl_meta.h"
#include "recorder/acl/objects.h"
#include "recorder/acl/operators.h"
#include "recorder/acl/real.h"
#include "recorder/agent/tape.h"

namespace {

using namespace acltape::acl_agent;

// Positions in kObjectFunctions; the real functions follow those of the operators.
enum ObjectCall : uint32_t {
  kCreateTensor,
  kInitTensor,
  kCreateScalar,
  kCreateIntArray,
  kCreateFloatArray,
  kCreateBoolArray,
  kCreateTensorList,
  kCreateScalarList,
  kDestroyTensor,
  kDestroyScalar,
  kDestroyIntArray,
  kDestroyFloatArray,
  kDestroyBoolArray,
  kDestroyTensorList,
  kDestroyScalarList,
  kSetRepeatable,
  kDestroyExecutor,
  kSetInput,
  kSetOutput,
  kSetTensor,
  kSetDynamicInput,
  kSetDynamicOutput,
  kSetDynamicTensor,
  kSetRaw,
};

bool Recorded() {
  const acltape::wire::ArenaHeader* arena = acltape::agent::Arena();
  return arena != nullptr && (arena->levels & acltape::wire::kLevelAcl) != 0;
}

template <typename Function>
Function RealObject(ObjectCall call) {
  return reinterpret_cast<Function>(Real(ObjectFunctionNumber(call)));
}

}  // namespace

extern "C" {

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  auto real = RealObject<decltype(&aclCreateTensor)>(kCreateTensor);
  if (real == nullptr) return nullptr;
  aclTensor* result = real(viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                           storageDimsNum, tensorData);
  if (Recorded())
    KeepTensor(result, viewDims, viewDimsNum, dataType, stride, offset, format, tensorData);
  return result;
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                          void* tensorDataAddr) {
  auto real = RealObject<decltype(&aclInitTensor)>(kInitTensor);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(tensor, viewDims, viewDimsNum, dataType, stride, offset, format,
                                  storageDims, storageDimsNum, tensorDataAddr);
  if (Recorded()) {
    if (result == 0) {
      KeepTensor(tensor, viewDims, viewDimsNum, dataType, stride, offset, format, tensorDataAddr);
    }
  }
  return result;
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  auto real = RealObject<decltype(&aclCreateScalar)>(kCreateScalar);
  if (real == nullptr) return nullptr;
  aclScalar* result = real(value, dataType);
  if (Recorded()) KeepScalar(result, value, dataType);
  return result;
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  auto real = RealObject<decltype(&aclCreateIntArray)>(kCreateIntArray);
  if (real == nullptr) return nullptr;
  aclIntArray* result = real(value, size);
  if (Recorded()) KeepArray(result, value, size);
  return result;
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  auto real = RealObject<decltype(&aclCreateFloatArray)>(kCreateFloatArray);
  if (real == nullptr) return nullptr;
  aclFloatArray* result = real(value, size);
  if (Recorded()) KeepArray(result, value, size);
  return result;
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  auto real = RealObject<decltype(&aclCreateBoolArray)>(kCreateBoolArray);
  if (real == nullptr) return nullptr;
  aclBoolArray* result = real(value, size);
  if (Recorded()) KeepArray(result, value, size);
  return result;
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  auto real = RealObject<decltype(&aclCreateTensorList)>(kCreateTensorList);
  if (real == nullptr) return nullptr;
  aclTensorList* result = real(value, size);
  if (Recorded()) KeepList(result, reinterpret_cast<const void* const*>(value), size);
  return result;
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  auto real = RealObject<decltype(&aclCreateScalarList)>(kCreateScalarList);
  if (real == nullptr) return nullptr;
  aclScalarList* result = real(value, size);
  if (Recorded()) KeepList(result, reinterpret_cast<const void* const*>(value), size);
  return result;
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  auto real = RealObject<decltype(&aclDestroyTensor)>(kDestroyTensor);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  if (Recorded()) DropTensor(tensor);
  return real(tensor);
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  auto real = RealObject<decltype(&aclDestroyScalar)>(kDestroyScalar);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  if (Recorded()) DropScalar(scalar);
  return real(scalar);
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  auto real = RealObject<decltype(&aclDestroyIntArray)>(kDestroyIntArray);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  if (Recorded()) DropArray(array);
  return real(array);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  auto real = RealObject<decltype(&aclDestroyFloatArray)>(kDestroyFloatArray);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  if (Recorded()) DropArray(array);
  return real(array);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  auto real = RealObject<decltype(&aclDestroyBoolArray)>(kDestroyBoolArray);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  if (Recorded()) DropArray(array);
  return real(array);
}

aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  auto real = RealObject<decltype(&aclDestroyTensorList)>(kDestroyTensorList);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  if (Recorded()) DropList(array);
  return real(array);
}

aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  auto real = RealObject<decltype(&aclDestroyScalarList)>(kDestroyScalarList);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  if (Recorded()) DropList(array);
  return real(array);
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  auto real = RealObject<decltype(&aclSetAclOpExecutorRepeatable)>(kSetRepeatable);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(executor);
  if (Recorded()) {
    if (result == 0) MakeRepeatable(executor);
  }
  return result;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  auto real = RealObject<decltype(&aclDestroyAclOpExecutor)>(kDestroyExecutor);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  if (Recorded()) DropExecutor(executor);
  return real(executor);
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  auto real = RealObject<decltype(&aclSetInputTensorAddr)>(kSetInput);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(executor, index, tensor, addr);
  if (Recorded()) {
    if (result == 0) MoveTensor(executor, tensor, -1, addr);
  }
  return result;
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  auto real = RealObject<decltype(&aclSetOutputTensorAddr)>(kSetOutput);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(executor, index, tensor, addr);
  if (Recorded()) {
    if (result == 0) MoveTensor(executor, tensor, -1, addr);
  }
  return result;
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                             void* addr) {
  auto real = RealObject<decltype(&aclSetTensorAddr)>(kSetTensor);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(executor, index, tensor, addr);
  if (Recorded()) {
    if (result == 0) MoveTensor(executor, tensor, -1, addr);
  }
  return result;
}

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                         const size_t relativeIndex, aclTensorList* tensors,
                                         void* addr) {
  auto real = RealObject<decltype(&aclSetDynamicInputTensorAddr)>(kSetDynamicInput);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(executor, irIndex, relativeIndex, tensors, addr);
  if (Recorded()) {
    if (result == 0) {
      MoveTensor(executor, tensors, static_cast<int64_t>(relativeIndex), addr);
    }
  }
  return result;
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                          const size_t relativeIndex, aclTensorList* tensors,
                                          void* addr) {
  auto real = RealObject<decltype(&aclSetDynamicOutputTensorAddr)>(kSetDynamicOutput);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(executor, irIndex, relativeIndex, tensors, addr);
  if (Recorded()) {
    if (result == 0) {
      MoveTensor(executor, tensors, static_cast<int64_t>(relativeIndex), addr);
    }
  }
  return result;
}

aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                    const size_t relativeIndex, aclTensorList* tensors,
                                    void* addr) {
  auto real = RealObject<decltype(&aclSetDynamicTensorAddr)>(kSetDynamicTensor);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(executor, irIndex, relativeIndex, tensors, addr);
  if (Recorded()) {
    if (result == 0) {
      MoveTensor(executor, tensors, static_cast<int64_t>(relativeIndex), addr);
    }
  }
  return result;
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  auto real = RealObject<decltype(&aclSetRawTensorAddr)>(kSetRaw);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(tensor, addr);
  if (Recorded()) {
    if (result == 0) MoveRaw(tensor, addr);
  }
  return result;
}

}  // extern "C"

namespace acltape::acl_agent {

// In the order of ObjectCall.
const ObjectFunction kObjectFunctions[] = {
    {"aclCreateTensor", reinterpret_cast<void*>(&::aclCreateTensor)},
    {"aclInitTensor", reinterpret_cast<void*>(&::aclInitTensor)},
    {"aclCreateScalar", reinterpret_cast<void*>(&::aclCreateScalar)},
    {"aclCreateIntArray", reinterpret_cast<void*>(&::aclCreateIntArray)},
    {"aclCreateFloatArray", reinterpret_cast<void*>(&::aclCreateFloatArray)},
    {"aclCreateBoolArray", reinterpret_cast<void*>(&::aclCreateBoolArray)},
    {"aclCreateTensorList", reinterpret_cast<void*>(&::aclCreateTensorList)},
    {"aclCreateScalarList", reinterpret_cast<void*>(&::aclCreateScalarList)},
    {"aclDestroyTensor", reinterpret_cast<void*>(&::aclDestroyTensor)},
    {"aclDestroyScalar", reinterpret_cast<void*>(&::aclDestroyScalar)},
    {"aclDestroyIntArray", reinterpret_cast<void*>(&::aclDestroyIntArray)},
    {"aclDestroyFloatArray", reinterpret_cast<void*>(&::aclDestroyFloatArray)},
    {"aclDestroyBoolArray", reinterpret_cast<void*>(&::aclDestroyBoolArray)},
    {"aclDestroyTensorList", reinterpret_cast<void*>(&::aclDestroyTensorList)},
    {"aclDestroyScalarList", reinterpret_cast<void*>(&::aclDestroyScalarList)},
    {"aclSetAclOpExecutorRepeatable", reinterpret_cast<void*>(&::aclSetAclOpExecutorRepeatable)},
    {"aclDestroyAclOpExecutor", reinterpret_cast<void*>(&::aclDestroyAclOpExecutor)},
    {"aclSetInputTensorAddr", reinterpret_cast<void*>(&::aclSetInputTensorAddr)},
    {"aclSetOutputTensorAddr", reinterpret_cast<void*>(&::aclSetOutputTensorAddr)},
    {"aclSetTensorAddr", reinterpret_cast<void*>(&::aclSetTensorAddr)},
    {"aclSetDynamicInputTensorAddr", reinterpret_cast<void*>(&::aclSetDynamicInputTensorAddr)},
    {"aclSetDynamicOutputTensorAddr", reinterpret_cast<void*>(&::aclSetDynamicOutputTensorAddr)},
    {"aclSetDynamicTensorAddr", reinterpret_cast<void*>(&::aclSetDynamicTensorAddr)},
    {"aclSetRawTensorAddr", reinterpret_cast<void*>(&::aclSetRawTensorAddr)},
    {nullptr, nullptr},
};

}  // namespace acltape::acl_agent
