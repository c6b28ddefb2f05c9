// Executors that are launched more than once: copies of their arguments, and new addresses in them.

#include <type_traits>

#include "runtime/kernel_launch.h"
#include "runtime/opapi/base/live.h"

namespace acltape::opapi {
namespace {

using acl::ArgInfo;
using acl::ArgKind;
using acl::ArgValue;
using acl::Direction;

template <typename Object>
const void* Copy(const void* object) {
  return object == nullptr ? nullptr : new Object(*static_cast<const Object*>(object));
}

const void* CopyTensorList(const void* object) {
  if (object == nullptr) return nullptr;
  auto* list = new aclTensorList(*static_cast<const aclTensorList*>(object));
  for (aclTensor*& tensor : list->tensors) {
    if (tensor != nullptr) tensor = new aclTensor(*tensor);
  }
  return list;
}

const void* CopyScalarList(const void* object) {
  if (object == nullptr) return nullptr;
  auto* list = new aclScalarList(*static_cast<const aclScalarList*>(object));
  for (aclScalar*& scalar : list->scalars) {
    if (scalar != nullptr) scalar = new aclScalar(*scalar);
  }
  return list;
}

template <typename Object>
void Delete(const void* object) {
  delete static_cast<const Object*>(object);
}

void DeleteTensorList(const void* object) {
  if (object == nullptr) return;
  for (aclTensor* tensor : static_cast<const aclTensorList*>(object)->tensors) delete tensor;
  Delete<aclTensorList>(object);
}

void DeleteScalarList(const void* object) {
  if (object == nullptr) return;
  for (aclScalar* scalar : static_cast<const aclScalarList*>(object)->scalars) delete scalar;
  Delete<aclScalarList>(object);
}

// The functions that copy and free an argument that is an object. Kinds without a row are plain
// values.
struct ObjectKind {
  ArgKind kind;
  const void* (*copy)(const void*);
  void (*free)(const void*);
};

constexpr ObjectKind kObjectKinds[] = {
    {ArgKind::kTensor, Copy<aclTensor>, Delete<aclTensor>},
    {ArgKind::kTensorList, CopyTensorList, DeleteTensorList},
    {ArgKind::kScalar, Copy<aclScalar>, Delete<aclScalar>},
    {ArgKind::kScalarList, CopyScalarList, DeleteScalarList},
    {ArgKind::kIntArray, Copy<aclIntArray>, Delete<aclIntArray>},
    {ArgKind::kFloatArray, Copy<aclFloatArray>, Delete<aclFloatArray>},
    {ArgKind::kBoolArray, Copy<aclBoolArray>, Delete<aclBoolArray>},
};

const ObjectKind* FindObjectKind(ArgKind kind) {
  for (const ObjectKind& row : kObjectKinds) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

}  // namespace

OwnedArguments::OwnedArguments(const acl::OperatorInfo& op, const ArgValue* args)
    : op_(op), values_(args, args + op.arg_count), strings_(op.arg_count) {
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    const ArgKind kind = op.args[i].kind;
    if (const ObjectKind* object = FindObjectKind(kind)) {
      values_[i].pointer = object->copy(values_[i].pointer);
    } else if (kind == ArgKind::kString && values_[i].pointer != nullptr) {
      strings_[i] = static_cast<const char*>(values_[i].pointer);
      values_[i].pointer = strings_[i].c_str();
    }
  }
}

OwnedArguments::~OwnedArguments() {
  for (uint32_t i = 0; i < op_.arg_count; ++i) {
    if (const ObjectKind* object = FindObjectKind(op_.args[i].kind)) {
      object->free(values_[i].pointer);
    }
  }
}

const ArgValue* OwnedArguments::Find(size_t n, Among among, ArgKind kind) const {
  for (uint32_t i = 0; i < op_.arg_count; ++i) {
    const ArgInfo& arg = op_.args[i];
    if (arg.kind != ArgKind::kTensor && arg.kind != ArgKind::kTensorList) continue;
    if (among == Among::kInputs && arg.direction == Direction::kOut) continue;
    if (among == Among::kOutputs && arg.direction == Direction::kIn) continue;
    if (n-- == 0) return arg.kind == kind ? &values_[i] : nullptr;
  }
  return nullptr;
}

aclTensor* OwnedArguments::Tensor(size_t n, Among among) const {
  const ArgValue* value = Find(n, among, ArgKind::kTensor);
  return value == nullptr ? nullptr : acl::Unpack<aclTensor*>(*value);
}

aclTensorList* OwnedArguments::List(size_t n, Among among) const {
  const ArgValue* value = Find(n, among, ArgKind::kTensorList);
  return value == nullptr ? nullptr : acl::Unpack<aclTensorList*>(*value);
}

namespace {

using Among = OwnedArguments::Among;

// The executor's own copy of the tensor gets the address; the tensor that the program names is only
// checked, and may be NULL.
aclnnStatus SetAddress(const char* function, aclOpExecutor* executor, size_t index, Among among,
                       const aclTensor* named, void* address) {
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckExecutor(function, executor));
  if (named != nullptr) {
    ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckLive(function, "tensor", named));
  }
  if (executor->owned == nullptr) {
    return Reject(kParamInvalid, std::string(function) + ": the executor is not repeatable.");
  }
  aclTensor* tensor = executor->owned->Tensor(index, among);
  if (tensor == nullptr) {
    return Reject(kParamInvalid, std::string(function) + ": " + std::string(executor->op->name) +
                                     " has no tensor at index " + std::to_string(index) + ".");
  }
  tensor->address = address;
  return OK;
}

aclnnStatus SetListAddress(const char* function, aclOpExecutor* executor, size_t index, Among among,
                           size_t member, const aclTensorList* named, void* address) {
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckExecutor(function, executor));
  if (named != nullptr) {
    ACLTAPE_OPAPI_RETURN_IF_REJECTED(CheckLive(function, "tensors", named));
  }
  if (executor->owned == nullptr) {
    return Reject(kParamInvalid, std::string(function) + ": the executor is not repeatable.");
  }
  aclTensorList* list = executor->owned->List(index, among);
  if (list == nullptr || member >= list->tensors.size() || list->tensors[member] == nullptr) {
    return Reject(kParamInvalid, std::string(function) + ": " + std::string(executor->op->name) +
                                     " has no tensor " + std::to_string(member) +
                                     " in a list at index " + std::to_string(index) + ".");
  }
  list->tensors[member]->address = address;
  return OK;
}

}  // namespace
}  // namespace acltape::opapi

using acltape::opapi::Among;
using acltape::opapi::OwnedArguments;

extern "C" {

ACL_FUNC_VISIBILITY aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  constexpr const char* kFunction = "aclSetAclOpExecutorRepeatable";
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(acltape::opapi::CheckExecutor(kFunction, executor));
  if (executor->owned == nullptr) {
    // The first phase saw them live, but they belong to the program.
    ACLTAPE_OPAPI_RETURN_IF_REJECTED(
        acltape::opapi::CheckObjects(kFunction, *executor->op, executor->args.data()));
    executor->owned = std::make_unique<OwnedArguments>(*executor->op, executor->args.data());
    executor->task.reset();
  }
  return OK;
}

ACL_FUNC_VISIBILITY aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  using acltape::opapi::Live;
  if (executor == nullptr || Live<aclOpExecutor>().Destroy(executor)) return OK;
  return acltape::opapi::CheckExecutor("aclDestroyAclOpExecutor", executor);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index,
                                                 aclTensor* tensor, void* addr) {
  return acltape::opapi::SetAddress("aclSetTensorAddr", executor, index, Among::kAll, tensor, addr);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index,
                                                      aclTensor* tensor, void* addr) {
  return acltape::opapi::SetAddress("aclSetInputTensorAddr", executor, index, Among::kInputs,
                                    tensor, addr);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index,
                                                       aclTensor* tensor, void* addr) {
  return acltape::opapi::SetAddress("aclSetOutputTensorAddr", executor, index, Among::kOutputs,
                                    tensor, addr);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                                        const size_t relativeIndex,
                                                        aclTensorList* tensors, void* addr) {
  return acltape::opapi::SetListAddress("aclSetDynamicTensorAddr", executor, irIndex, Among::kAll,
                                        relativeIndex, tensors, addr);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor,
                                                             size_t irIndex,
                                                             const size_t relativeIndex,
                                                             aclTensorList* tensors, void* addr) {
  return acltape::opapi::SetListAddress("aclSetDynamicInputTensorAddr", executor, irIndex,
                                        Among::kInputs, relativeIndex, tensors, addr);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor,
                                                              size_t irIndex,
                                                              const size_t relativeIndex,
                                                              aclTensorList* tensors, void* addr) {
  return acltape::opapi::SetListAddress("aclSetDynamicOutputTensorAddr", executor, irIndex,
                                        Among::kOutputs, relativeIndex, tensors, addr);
}

}  // extern "C"
