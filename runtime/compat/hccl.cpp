// libhccl.so: communication between devices. The setting that programs make before each operator is
// accepted; groups of devices are not offered.
#include <cstdint>

#include "runtime/compat/export.h"

// The value is a union of four bytes, passed as an integer.
ACLTAPE_COMPAT int HcclSetConfig(int, int32_t) { return 0; }
