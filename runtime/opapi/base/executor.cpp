// Executors that are launched more than once: copies of their arguments, and new addresses in them.

#include <type_traits>

#include "runtime/kernel_launch.h"
#include "runtime/opapi/base/objects.h"

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

// The functions that copy and free an argument that is an object. Kinds without a row are plain
// values.
struct ObjectKind {
  ArgKind kind;
  const void* (*copy)(const void*);
  void (*free)(const void*);
};

constexpr ObjectKind kObjectKinds[] = {
    {ArgKind::kTensor, Copy<aclTensor>, Delete<aclTensor>},
    {ArgKind::kTensorList, CopyTensorList,
     [](const void* list) { aclDestroyTensorList(static_cast<const aclTensorList*>(list)); }},
    {ArgKind::kScalar, Copy<aclScalar>, Delete<aclScalar>},
    {ArgKind::kScalarList, CopyScalarList,
     [](const void* list) { aclDestroyScalarList(static_cast<const aclScalarList*>(list)); }},
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

aclnnStatus SetAddress(const char* function, aclOpExecutor* executor, size_t index, Among among,
                       void* address) {
  if (executor == nullptr) {
    return Reject(kParamNull, std::string(function) + ": executor is NULL.");
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
                           size_t member, void* address) {
  if (executor == nullptr) {
    return Reject(kParamNull, std::string(function) + ": executor is NULL.");
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
  if (executor == nullptr) {
    return acltape::opapi::Reject(acltape::opapi::kParamNull,
                                  "aclSetAclOpExecutorRepeatable: executor is NULL.");
  }
  if (executor->owned == nullptr) {
    executor->owned = std::make_unique<OwnedArguments>(*executor->op, executor->args.data());
    executor->task.reset();
  }
  return OK;
}

ACL_FUNC_VISIBILITY aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  delete executor;
  return OK;
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index,
                                                 aclTensor* /*tensor*/, void* addr) {
  return acltape::opapi::SetAddress("aclSetTensorAddr", executor, index, Among::kAll, addr);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index,
                                                      aclTensor* /*tensor*/, void* addr) {
  return acltape::opapi::SetAddress("aclSetInputTensorAddr", executor, index, Among::kInputs, addr);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index,
                                                       aclTensor* /*tensor*/, void* addr) {
  return acltape::opapi::SetAddress("aclSetOutputTensorAddr", executor, index, Among::kOutputs,
                                    addr);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                                        const size_t relativeIndex,
                                                        aclTensorList* /*tensors*/, void* addr) {
  return acltape::opapi::SetListAddress("aclSetDynamicTensorAddr", executor, irIndex, Among::kAll,
                                        relativeIndex, addr);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor,
                                                             size_t irIndex,
                                                             const size_t relativeIndex,
                                                             aclTensorList* /*tensors*/,
                                                             void* addr) {
  return acltape::opapi::SetListAddress("aclSetDynamicInputTensorAddr", executor, irIndex,
                                        Among::kInputs, relativeIndex, addr);
}

ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor,
                                                              size_t irIndex,
                                                              const size_t relativeIndex,
                                                              aclTensorList* /*tensors*/,
                                                              void* addr) {
  return acltape::opapi::SetListAddress("aclSetDynamicOutputTensorAddr", executor, irIndex,
                                        Among::kOutputs, relativeIndex, addr);
}

}  // extern "C"
