// libascend_hal.so: the driver. Programs count devices with it, and profilers ask for the rate of
// the device's clock, which the soft device does not have.
#include <cstdint>

#include "acl/acl.h"
#include "runtime/compat/export.h"

namespace {

constexpr int kNotSupported = 0xFFFE;  // DRV_ERROR_NOT_SUPPORT

}  // namespace

ACLTAPE_COMPAT int drvGetDevNum(uint32_t* count) {
  return aclrtGetDeviceCount(count) == ACL_SUCCESS ? 0 : kNotSupported;
}

ACLTAPE_COMPAT int halGetDeviceInfo(uint32_t, int32_t, int32_t, int64_t*) { return kNotSupported; }

ACLTAPE_COMPAT int halGetAPIVersion(int32_t* version) {
  if (version != nullptr) *version = 0;
  return 0;
}
