// A program's own allocator, registered for a stream, as frameworks hand theirs to the runtime.
#include "acl/acl.h"
#include "acl/acl_rt_allocator.h"
#include "session.h"

namespace {

struct Arena {
  char* base;
  size_t used;
};

void* Take(aclrtAllocator allocator, size_t bytes) {
  auto* arena = static_cast<Arena*>(allocator);
  arena->used += (bytes + 511) / 512 * 512;
  return arena->base + arena->used - (bytes + 511) / 512 * 512;
}
void* TakeNear(aclrtAllocator allocator, size_t bytes, aclrtAllocatorAddr) {
  return Take(allocator, bytes);
}
void Give(aclrtAllocator, aclrtAllocatorBlock) {}
void* AddressOf(aclrtAllocatorBlock block) { return block; }

}  // namespace

int main() {
  aclrtStream stream = StartSession();
  Arena arena = {static_cast<char*>(MallocDevice(1 << 16)), 0};
  aclrtAllocatorDesc description = aclrtAllocatorCreateDesc();
  CHECK(description != nullptr);
  CHECK_ACL(aclrtAllocatorSetObjToDesc(description, &arena));
  CHECK_ACL(aclrtAllocatorSetAllocFuncToDesc(description, Take));
  CHECK_ACL(aclrtAllocatorSetFreeFuncToDesc(description, Give));
  CHECK_ACL(aclrtAllocatorSetAllocAdviseFuncToDesc(description, TakeNear));
  CHECK_ACL(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(description, AddressOf));
  CHECK_ACL(aclrtAllocatorRegister(stream, description));
  aclrtAllocatorDesc found = nullptr;
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc take = nullptr;
  aclrtAllocatorFreeFunc give = nullptr;
  aclrtAllocatorAllocAdviseFunc take_near = nullptr;
  aclrtAllocatorGetAddrFromBlockFunc address_of = nullptr;
  CHECK_ACL(
      aclrtAllocatorGetByStream(stream, &found, &object, &take, &give, &take_near, &address_of));
  CHECK(object == &arena && take == Take && give == Give && take_near == TakeNear &&
        address_of == AddressOf);
  void* block = address_of(take(object, 100));
  CHECK_ACL(aclrtMemsetAsync(block, 100, 3, 100, stream));
  unsigned char back[100];
  Download(back, block, 100, stream);
  for (unsigned char byte : back) CHECK(byte == 3);
  give(object, block);
  CHECK_ACL(aclrtAllocatorUnregister(stream));
  CHECK_ACL(aclrtAllocatorDestroyDesc(description));
  CHECK_ACL(aclrtFree(arena.base));
  return EndSession(stream);
}
