// Allocators that a client registers for the operator library (MEM-12); the runtime only keeps
// them.
#include "runtime/device/plain_object.h"

using namespace acltape::device;

namespace {

struct Description {
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc allocate = nullptr;
  aclrtAllocatorFreeFunc free = nullptr;
  aclrtAllocatorAllocAdviseFunc allocate_advised = nullptr;
  aclrtAllocatorGetAddrFromBlockFunc address_of = nullptr;
};

aclError FindDescription(aclrtAllocatorDesc desc, const char* call, Description** description) {
  *description = static_cast<Description*>(desc);
  return CheckPlain(*description, call, "allocatorDesc");
}

template <typename Member, typename Value>
aclError Set(aclrtAllocatorDesc desc, Member member, Value value, const char* call) {
  Description* description = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDescription(desc, call, &description));
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, "%s: the value is NULL", call);
  description->*member = value;
  return ACL_SUCCESS;
}

}  // namespace

aclrtAllocatorDesc aclrtAllocatorCreateDesc(void) { return Plain<Description>().Create(); }

aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc) {
  ACLTAPE_CALL("aclrtAllocatorDestroyDesc");
  return DestroyPlain(static_cast<Description*>(allocatorDesc), kCall, "allocatorDesc");
}

aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocator allocator) {
  ACLTAPE_CALL("aclrtAllocatorSetObjToDesc");
  return Set(allocatorDesc, &Description::object, allocator, kCall);
}

aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                          aclrtAllocatorAllocFunc func) {
  ACLTAPE_CALL("aclrtAllocatorSetAllocFuncToDesc");
  return Set(allocatorDesc, &Description::allocate, func, kCall);
}

aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                         aclrtAllocatorFreeFunc func) {
  ACLTAPE_CALL("aclrtAllocatorSetFreeFuncToDesc");
  return Set(allocatorDesc, &Description::free, func, kCall);
}

aclError aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                aclrtAllocatorAllocAdviseFunc func) {
  ACLTAPE_CALL("aclrtAllocatorSetAllocAdviseFuncToDesc");
  return Set(allocatorDesc, &Description::allocate_advised, func, kCall);
}

aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                     aclrtAllocatorGetAddrFromBlockFunc func) {
  ACLTAPE_CALL("aclrtAllocatorSetGetAddrFromBlockFuncToDesc");
  return Set(allocatorDesc, &Description::address_of, func, kCall);
}

aclError aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc) {
  ACLTAPE_CALL("aclrtAllocatorRegister");
  Description* description = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDescription(allocatorDesc, kCall, &description));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, kCall, &found));
  std::lock_guard lock(found->context().mutex);
  found->allocator_description = description;
  return ACL_SUCCESS;
}

aclError aclrtAllocatorGetByStream(aclrtStream stream, aclrtAllocatorDesc* allocatorDesc,
                                   aclrtAllocator* allocator, aclrtAllocatorAllocFunc* allocFunc,
                                   aclrtAllocatorFreeFunc* freeFunc,
                                   aclrtAllocatorAllocAdviseFunc* allocAdviseFunc,
                                   aclrtAllocatorGetAddrFromBlockFunc* getAddrFromBlockFunc) {
  ACLTAPE_CALL("aclrtAllocatorGetByStream");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, kCall, &found));
  std::lock_guard lock(found->context().mutex);
  auto* description = static_cast<Description*>(found->allocator_description);
  if (description == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: no allocator is registered for stream %u", kCall,
                found->id());
  }
  // The program may have destroyed it since.
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(description, kCall, "the registered allocatorDesc"));
  if (allocatorDesc != nullptr) *allocatorDesc = description;
  if (allocator != nullptr) *allocator = description->object;
  if (allocFunc != nullptr) *allocFunc = description->allocate;
  if (freeFunc != nullptr) *freeFunc = description->free;
  if (allocAdviseFunc != nullptr) *allocAdviseFunc = description->allocate_advised;
  if (getAddrFromBlockFunc != nullptr) *getAddrFromBlockFunc = description->address_of;
  return ACL_SUCCESS;
}

aclError aclrtAllocatorUnregister(aclrtStream stream) {
  ACLTAPE_CALL("aclrtAllocatorUnregister");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, kCall, &found));
  std::lock_guard lock(found->context().mutex);
  if (found->allocator_description == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: no allocator is registered for stream %u", kCall,
                found->id());
  }
  found->allocator_description = nullptr;
  return ACL_SUCCESS;
}
