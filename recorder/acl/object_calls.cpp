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

// A hook around an object's creation or end. It is true where the ACL level is recorded.
class Hook {
 public:
  Hook() {
    const acltape::wire::ArenaHeader* arena = acltape::agent::Arena();
    recorded_ = arena != nullptr && (arena->levels & acltape::wire::kLevelAcl) != 0;
    if (!recorded_) return;
    tape_ = acltape::agent::t_tape;
    if (tape_ == acltape::agent::kNoTape || tape_ == nullptr || !tape_->open) return;
    acltape::agent::BeginHook(tape_->own, hook_);
  }
  ~Hook() {
    if (acltape::agent::IsTimed(hook_)) acltape::agent::EndTimedHook(tape_->own, hook_, 0);
  }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  explicit operator bool() const { return recorded_; }

 private:
  bool recorded_ = false;
  acltape::agent::Tape* tape_ = nullptr;
  acltape::agent::TimedHook hook_ = {};
};

template <typename Function>
Function RealObject(ObjectCall call) {
  return reinterpret_cast<Function>(Real(ObjectFunctionNumber(call)));
}

template <typename Object, typename Value, typename Keep>
Object* Create(ObjectCall call, Value value, uint64_t size, const Keep& keep) {
  auto real = RealObject<Object* (*)(Value, uint64_t)>(call);
  if (real == nullptr) return nullptr;
  Object* result = real(value, size);
  if (const Hook hook; hook) keep(result);
  return result;
}

// Told before: the object's address may be given out again at once.
template <typename Object, typename Drop>
aclnnStatus Destroy(ObjectCall call, Object* object, const Drop& drop) {
  auto real = RealObject<aclnnStatus (*)(Object*)>(call);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  if (const Hook hook; hook) drop(object);
  return real(object);
}

aclnnStatus Move(ObjectCall call, aclOpExecutor* executor, size_t index, aclTensor* tensor,
                 void* address) {
  auto real = RealObject<decltype(&aclSetTensorAddr)>(call);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(executor, index, tensor, address);
  if (const Hook hook; hook && result == ACLNN_SUCCESS) MoveTensor(executor, tensor, -1, address);
  return result;
}

aclnnStatus MoveElement(ObjectCall call, aclOpExecutor* executor, size_t index, size_t element,
                        aclTensorList* tensors, void* address) {
  auto real = RealObject<decltype(&aclSetDynamicTensorAddr)>(call);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(executor, index, element, tensors, address);
  if (const Hook hook; hook && result == ACLNN_SUCCESS) {
    MoveTensor(executor, tensors, static_cast<int64_t>(element), address);
  }
  return result;
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
  if (const Hook hook; hook) {
    KeepTensor(result, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
               storageDimsNum, tensorData);
  }
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
  if (const Hook hook; hook && result == ACLNN_SUCCESS) {
    KeepTensor(tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
               storageDimsNum, tensorDataAddr);
  }
  return result;
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  auto real = RealObject<decltype(&aclCreateScalar)>(kCreateScalar);
  if (real == nullptr) return nullptr;
  aclScalar* result = real(value, dataType);
  if (const Hook hook; hook) KeepScalar(result, value, dataType);
  return result;
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return Create<aclIntArray>(kCreateIntArray, value, size,
                             [&](const void* made) { KeepArray(made, value, size); });
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return Create<aclFloatArray>(kCreateFloatArray, value, size,
                               [&](const void* made) { KeepArray(made, value, size); });
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return Create<aclBoolArray>(kCreateBoolArray, value, size,
                              [&](const void* made) { KeepArray(made, value, size); });
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return Create<aclTensorList>(kCreateTensorList, value, size, [&](const void* made) {
    KeepList(made, reinterpret_cast<const void* const*>(value), size);
  });
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return Create<aclScalarList>(kCreateScalarList, value, size, [&](const void* made) {
    KeepList(made, reinterpret_cast<const void* const*>(value), size);
  });
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return Destroy(kDestroyTensor, tensor, DropTensor);
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return Destroy(kDestroyScalar, scalar, DropScalar);
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return Destroy(kDestroyIntArray, array, DropArray);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return Destroy(kDestroyFloatArray, array, DropArray);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return Destroy(kDestroyBoolArray, array, DropArray);
}

aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return Destroy(kDestroyTensorList, array, DropList);
}

aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return Destroy(kDestroyScalarList, array, DropList);
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  auto real = RealObject<decltype(&aclSetAclOpExecutorRepeatable)>(kSetRepeatable);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(executor);
  if (const Hook hook; hook && result == ACLNN_SUCCESS) MakeRepeatable(executor);
  return result;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  return Destroy(kDestroyExecutor, executor, DropExecutor);
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  return Move(kSetInput, executor, index, tensor, addr);
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  return Move(kSetOutput, executor, index, tensor, addr);
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                             void* addr) {
  return Move(kSetTensor, executor, index, tensor, addr);
}

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                         const size_t relativeIndex, aclTensorList* tensors,
                                         void* addr) {
  return MoveElement(kSetDynamicInput, executor, irIndex, relativeIndex, tensors, addr);
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                          const size_t relativeIndex, aclTensorList* tensors,
                                          void* addr) {
  return MoveElement(kSetDynamicOutput, executor, irIndex, relativeIndex, tensors, addr);
}

aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                    const size_t relativeIndex, aclTensorList* tensors,
                                    void* addr) {
  return MoveElement(kSetDynamicTensor, executor, irIndex, relativeIndex, tensors, addr);
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  auto real = RealObject<decltype(&aclSetRawTensorAddr)>(kSetRaw);
  if (real == nullptr) return ACLNN_ERR_INNER_NULLPTR;
  const aclnnStatus result = real(tensor, addr);
  if (const Hook hook; hook && result == ACLNN_SUCCESS) MoveRaw(tensor, addr);
  return result;
}

}  // extern "C"

namespace acltape::acl_agent {

// The rows are in the order of ObjectCall.
const WrappedFunction kObjectFunctions[] = {
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
