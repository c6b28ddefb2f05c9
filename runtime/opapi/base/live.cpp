#include "runtime/opapi/base/live.h"

#include <cinttypes>
#include <cstdio>
#include <string_view>

namespace acltape::opapi {
namespace {

struct Kind {
  const char* name;
  bool (*has)(const void* handle);
};

template <typename Object>
constexpr Kind KindRow() {
  return {NameOf(static_cast<const Object*>(nullptr)),
          [](const void* handle) { return Live<Object>().Find(handle) != nullptr; }};
}

constexpr Kind kKinds[] = {KindRow<aclTensor>(),     KindRow<aclScalar>(),
                           KindRow<aclIntArray>(),   KindRow<aclFloatArray>(),
                           KindRow<aclBoolArray>(),  KindRow<aclTensorList>(),
                           KindRow<aclScalarList>(), KindRow<aclOpExecutor>()};

// Says what a handle is that is no live object of the wanted kind.
std::string WhatItIs(const char* wanted, const void* handle) {
  for (const Kind& kind : kKinds) {
    if (kind.has(handle)) return std::string("it is an ") + kind.name;
  }
  if (std::string_view(wanted) == NameOf(static_cast<const aclOpExecutor*>(nullptr))) {
    return "it was launched already (a launch uses an executor up that is not repeatable), was "
           "destroyed, or never was one";
  }
  return "it was destroyed, or never was one";
}

std::string Hex(const void* handle) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIxPTR, reinterpret_cast<uintptr_t>(handle));
  return text;
}

template <typename Object>
aclnnStatus Check(const char* function, const char* argument, const void* handle) {
  return CheckLive(function, argument, static_cast<const Object*>(handle));
}

// A list and its members; a member may be NULL.
template <typename List, typename Member>
aclnnStatus CheckList(const char* function, const char* argument, const void* handle,
                      std::vector<Member*> List::*members) {
  ACLTAPE_OPAPI_RETURN_IF_REJECTED(Check<List>(function, argument, handle));
  for (const Member* member : static_cast<const List*>(handle)->*members) {
    if (member == nullptr || Live<Member>().Find(member) != nullptr) continue;
    return RejectHandle(function, (std::string("a member of ") + argument).c_str(), NameOf(member),
                        member);
  }
  return OK;
}

// The check of each kind of argument that is an object, in the order of acl::ArgKind.
constexpr aclnnStatus (*kChecks[])(const char*, const char*, const void*) = {
    Check<aclTensor>,
    [](const char* function, const char* argument, const void* handle) {
      return CheckList(function, argument, handle, &aclTensorList::tensors);
    },
    Check<aclScalar>,
    [](const char* function, const char* argument, const void* handle) {
      return CheckList(function, argument, handle, &aclScalarList::scalars);
    },
    Check<aclIntArray>,
    Check<aclFloatArray>,
    Check<aclBoolArray>,
};
static_assert(std::size(kChecks) == static_cast<size_t>(acl::ArgKind::kString));

}  // namespace

aclnnStatus RejectNull(const char* function, const char* argument) {
  return Reject(kParamNull, std::string(function) + ": " + argument + " is NULL.");
}

aclnnStatus RejectHandle(const char* function, const char* argument, const char* kind,
                         const void* handle) {
  return Reject(kParamInvalid, std::string(function) + ": " + argument + " " + Hex(handle) +
                                   " is no live " + kind + "; " + WhatItIs(kind, handle) + ".");
}

aclnnStatus CheckArgument(const char* function, const char* argument, const aclTensor* tensor) {
  return CheckLive(function, argument, tensor);
}

aclnnStatus CheckArgument(const char* function, const char* argument, const aclIntArray* array) {
  return CheckLive(function, argument, array);
}

aclnnStatus CheckObjects(const char* function, const acl::OperatorInfo& op,
                         const acl::ArgValue* args) {
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    const auto kind = static_cast<size_t>(op.args[i].kind);
    if (kind >= std::size(kChecks) || args[i].pointer == nullptr) continue;
    // Names of the table are literals, so they end with a zero byte.
    ACLTAPE_OPAPI_RETURN_IF_REJECTED(
        kChecks[kind](function, op.args[i].name.data(), args[i].pointer));
  }
  return OK;
}

aclOpExecutor* CreateExecutor() { return Live<aclOpExecutor>().Create(); }

aclnnStatus CheckExecutor(const char* function, const aclOpExecutor* executor) {
  return CheckLive(function, "executor", executor);
}

bool ClaimExecutor(aclOpExecutor* executor) { return Live<aclOpExecutor>().Claim(executor); }

void FreeExecutor(aclOpExecutor* claimed) { Live<aclOpExecutor>().Free(claimed); }

}  // namespace acltape::opapi
