/* aclInit with a configuration file, as programs with settings for dumps and logs have it. */
#include <unistd.h>

#include "acl/acl.h"
#include "session.h"

int main(void) {
  char path[] = "/tmp/acl_config_XXXXXX";
  const int file = mkstemp(path);
  CHECK(file >= 0);
  const char text[] = "{\"err_msg_mode\": \"0\", \"defaultDevice\": {\"default_device\": \"0\"}}";
  CHECK(write(file, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1);
  close(file);
  CHECK_ACL(aclInit(path));
  CHECK(aclInit("/no/such/file.json") != 0);
  CHECK_ACL(aclrtSetDevice(0));
  void* block = MallocDevice(64);
  CHECK_ACL(aclrtMemset(block, 64, 7, 64));
  unsigned char back[64];
  Download(back, block, 64, NULL);
  for (int i = 0; i < 64; ++i) CHECK(back[i] == 7);
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  CHECK(aclFinalize() == ACL_ERROR_REPEAT_FINALIZE);
  unlink(path);
  printf("ok\n");
  return 0;
}
