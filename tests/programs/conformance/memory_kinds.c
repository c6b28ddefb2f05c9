/* The ways to allocate: aligned, cached, with a configuration; and to free after all work. */
#include "acl/acl.h"
#include "session.h"

enum { kBytes = 1000 };

static void Use(void* block, aclrtStream stream) {
  unsigned char back[kBytes];
  CHECK_ACL(aclrtMemsetAsync(block, kBytes, 42, kBytes, stream));
  Download(back, block, kBytes, stream);
  for (int i = 0; i < kBytes; ++i) CHECK(back[i] == 42);
}

int main(void) {
  aclrtStream stream = StartSession();
  void *aligned = NULL, *cached = NULL, *configured = NULL, *host = NULL, *plain_host = NULL;
  CHECK_ACL(aclrtMallocAlign32(&aligned, kBytes, ACL_MEM_MALLOC_NORMAL_ONLY));
  CHECK((uintptr_t)aligned % 32 == 0);
  CHECK_ACL(aclrtMallocCached(&cached, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  aclrtMallocAttribute attribute;
  memset(&attribute, 0, sizeof(attribute));
  attribute.attr = ACL_RT_MEM_ATTR_MODULE_ID;
  attribute.value.moduleId = 33;
  aclrtMallocConfig configuration = {&attribute, 1};
  CHECK_ACL(aclrtMallocWithCfg(&configured, kBytes, ACL_MEM_MALLOC_HUGE_FIRST, &configuration));
  CHECK_ACL(aclrtMallocHostWithCfg(&host, kBytes, &configuration));
  CHECK_ACL(aclrtMallocHost(&plain_host, kBytes));
  Use(aligned, stream);
  Use(cached, stream);
  Use(configured, stream);
  CHECK_ACL(aclrtMemFlush(cached, kBytes));
  CHECK_ACL(aclrtMemInvalidate(cached, kBytes));
  memset(host, 1, kBytes);
  CHECK_ACL(aclrtMemcpyAsync(aligned, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  CHECK_ACL(
      aclrtMemcpyAsync(plain_host, kBytes, aligned, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK(memcmp(host, plain_host, kBytes) == 0);
  void* none = (void*)1;
  CHECK(aclrtMalloc(&none, 0, ACL_MEM_MALLOC_HUGE_FIRST) != 0);
  CHECK_ACL(aclrtFreeWithDevSync(aligned));
  CHECK_ACL(aclrtFree(cached));
  CHECK_ACL(aclrtFree(configured));
  CHECK_ACL(aclrtFreeHostWithDevSync(host));
  CHECK_ACL(aclrtFreeHost(plain_host));
  return EndSession(stream);
}
