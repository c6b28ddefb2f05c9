// libmsprofiler.so: settings of the vendor's profiler. They are accepted; a framework's profiler
// then writes what it saw on the host.
#include <cstddef>

#include "runtime/compat/export.h"

ACLTAPE_COMPAT int aclprofWarmup(const void*) { return 0; }

ACLTAPE_COMPAT int aclprofRegisterDeviceCallback(void) { return 0; }

// No aclprofGetSupportedFeatures: a program that does not find it asks for no features.
