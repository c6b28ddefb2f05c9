/* Versions and attributes of the toolkit, which programs print first. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  int32_t major = 0, minor = -1, patch = -1, number = 0;
  CHECK_ACL(aclrtGetVersion(&major, &minor, &patch));
  CHECK(major >= 1 && minor >= 0 && patch >= 0);
  aclCANNPackageVersion package;
  memset(&package, 0, sizeof(package));
  CHECK_ACL(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &package));
  CHECK(atoi(package.majorVersion) >= 8);
  char name[] = "runtime";
  char text[ACL_PKG_VERSION_MAX_SIZE] = "";
  CHECK_ACL(aclsysGetVersionStr(name, text));
  CHECK_ACL(aclsysGetVersionNum(name, &number));
  CHECK(strlen(text) > 0 && number > 0);
  const aclCannAttr* attributes = NULL;
  size_t count = 0;
  CHECK_ACL(aclGetCannAttributeList(&attributes, &count));
  for (size_t i = 0; i < count; ++i) {
    int32_t value = -1;
    CHECK_ACL(aclGetCannAttribute(attributes[i], &value));
    CHECK(value == 0 || value == 1);
  }
  aclAppLog(ACL_INFO, __func__, __FILE__, __LINE__, "version %d.%d", major, minor);
  void* block = MallocDevice(64);
  CHECK_ACL(aclrtMemsetAsync(block, 64, 0, 64, stream));
  CheckFilled(block, 64, 0, stream);
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
