/* Rows of a matrix with a pitch, to the device and back, with and without a stream. */
#include "acl/acl.h"
#include "session.h"

enum { kRows = 6, kWidth = 20, kPitch = 32, kHostPitch = 24 };

int main(void) {
  aclrtStream stream = StartSession();
  unsigned char* host = (unsigned char*)MallocPinned(kRows * kHostPitch);
  unsigned char* back = (unsigned char*)MallocPinned(kRows * kHostPitch);
  for (int i = 0; i < kRows * kHostPitch; ++i) host[i] = (unsigned char)i;
  memset(back, 255, kRows * kHostPitch);
  char* device = (char*)MallocDevice(kRows * kPitch);
  CHECK_ACL(aclrtMemset(device, kRows * kPitch, 0, kRows * kPitch));
  CHECK_ACL(
      aclrtMemcpy2d(device, kPitch, host, kHostPitch, kWidth, kRows, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_ACL(aclrtMemcpy2dAsync(back, kHostPitch, device, kPitch, kWidth, kRows,
                               ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kHostPitch; ++i) {
      const int index = row * kHostPitch + i;
      CHECK(back[index] == (i < kWidth ? host[index] : 255));
    }
  }
  /* The same rows, dense, from block to block. */
  char* dense = (char*)MallocDevice(kRows * kWidth);
  unsigned char rows[kRows * kWidth];
  CHECK_ACL(aclrtMemcpy2dAsync(dense, kWidth, device, kPitch, kWidth, kRows,
                               ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  Download(rows, dense, sizeof(rows), stream);
  for (int i = 0; i < kRows * kWidth; ++i)
    CHECK(rows[i] == host[i / kWidth * kHostPitch + i % kWidth]);
  CHECK_ACL(aclrtFree(dense));
  CHECK(aclrtMemcpy2d(device, kWidth - 1, host, kHostPitch, kWidth, kRows,
                      ACL_MEMCPY_HOST_TO_DEVICE) != 0);
  CHECK_ACL(aclrtFreeHost(host));
  CHECK_ACL(aclrtFreeHost(back));
  CHECK_ACL(aclrtFree(device));
  return EndSession(stream);
}
