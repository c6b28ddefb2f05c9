/* Access between devices: a device is not its own peer. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  uint32_t count = 0;
  CHECK_ACL(aclrtGetDeviceCount(&count));
  int32_t can = -1, status = -1;
  CHECK(aclrtDeviceCanAccessPeer(&can, 0, 0) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtDeviceEnablePeerAccess(0, 0) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtDeviceDisablePeerAccess(0) == ACL_ERROR_INVALID_PARAM);
  if (count > 1) {
    CHECK_ACL(aclrtDeviceCanAccessPeer(&can, 0, 1));
    CHECK_ACL(aclrtDevicePeerAccessStatus(0, 1, &status));
    CHECK(status == 0);
  } else {
    CHECK(aclrtDevicePeerAccessStatus(0, 1, &status) != 0);
  }
  /* Copies within a device need no access. */
  const float numbers[3] = {1, 2, 3};
  void* from = UploadFloats(numbers, 3);
  void* to = MallocDevice(sizeof(numbers));
  CHECK_ACL(aclrtMemcpyAsync(to, sizeof(numbers), from, sizeof(numbers),
                             ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  float back[3];
  DownloadFloats(back, to, 3, stream);
  CHECK(back[0] == 1 && back[1] == 2 && back[2] == 3);
  CHECK_ACL(aclrtFree(from));
  CHECK_ACL(aclrtFree(to));
  return EndSession(stream);
}
