// libruntime.so: the layer below libascendcl.so, which compilers of kernels call directly. Binaries
// and their functions can be registered, because adapters do so before they know whether they will
// run one; there is nothing that runs them.
#include <cstdint>
#include <cstdio>

#include "runtime/compat/export.h"
#include "runtime/kernel_launch.h"

namespace {

int Refuse(const char* call, const char* why) {
  char text[256];
  std::snprintf(text, sizeof(text), "%s: %s", call, why);
  SoftSetErrorMessage(text);
  return SoftSetLastError(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

char registered;  // handles point to it

}  // namespace

ACLTAPE_COMPAT int rtDevBinaryRegister(const void*, void** handle) {
  if (handle != nullptr) *handle = &registered;
  return 0;
}

ACLTAPE_COMPAT int rtDevBinaryUnRegister(void*) { return 0; }

ACLTAPE_COMPAT int rtFunctionRegister(void*, const void*, const char*, const void*, uint32_t) {
  return 0;
}

ACLTAPE_COMPAT int rtKernelLaunch(const void*, uint32_t, void*, uint32_t, void*, void*) {
  return Refuse("rtKernelLaunch",
                "the soft device cannot run kernels that were compiled for a device");
}

ACLTAPE_COMPAT int rtGetC2cCtrlAddr(uint64_t*, uint32_t*) {
  return Refuse("rtGetC2cCtrlAddr", "the soft device has no control memory between cores");
}
