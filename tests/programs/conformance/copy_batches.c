/* Many small copies in one call. */
#include "acl/acl.h"
#include "session.h"

enum { kCopies = 5, kBytes = 48 };

int main(void) {
  aclrtStream stream = StartSession();
  unsigned char* host = (unsigned char*)MallocPinned(kCopies * kBytes);
  unsigned char* back = (unsigned char*)MallocPinned(kCopies * kBytes);
  for (int i = 0; i < kCopies * kBytes; ++i) host[i] = (unsigned char)(i * 3);
  void *to[kCopies], *from[kCopies], *blocks[kCopies];
  size_t sizes[kCopies], room[kCopies];
  for (int i = 0; i < kCopies; ++i) {
    blocks[i] = MallocDevice(kBytes);
    to[i] = blocks[i];
    from[i] = host + i * kBytes;
    sizes[i] = kBytes - (size_t)i;
    room[i] = kBytes;
  }
  aclrtMemcpyBatchAttr attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
  attributes.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  size_t first = 0, failed = 0;
  CHECK_ACL(aclrtMemcpyBatch(to, room, from, sizes, kCopies, &attributes, &first, 1, &failed));
  for (int i = 0; i < kCopies; ++i) {
    to[i] = back + i * kBytes;
    from[i] = blocks[i];
  }
  attributes.srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  attributes.dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
  memset(back, 0, kCopies * kBytes);
  CHECK_ACL(aclrtMemcpyBatchAsync(to, room, from, sizes, kCopies, &attributes, &first, 1, &failed,
                                  stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  for (int i = 0; i < kCopies; ++i)
    CHECK(memcmp(back + i * kBytes, host + i * kBytes, sizes[i]) == 0);
  memset(back, 0, kCopies * kBytes);
  CHECK_ACL(
      aclrtMemcpyBatchAsyncV2(to, room, from, sizes, kCopies, &attributes, &first, 1, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK(memcmp(back, host, kBytes) == 0);
  for (int i = 0; i < kCopies; ++i) CHECK_ACL(aclrtFree(blocks[i]));
  CHECK_ACL(aclrtFreeHost(host));
  CHECK_ACL(aclrtFreeHost(back));
  return EndSession(stream);
}
