// libprofapi.so: where libraries report what they do to the vendor's profiler. Nobody listens.
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/hash.h"
#include "runtime/compat/export.h"

ACLTAPE_COMPAT int32_t MsprofRegisterCallback(uint32_t, void*) { return 0; }
ACLTAPE_COMPAT int32_t MsprofReportApi(uint32_t, const void*) { return 0; }
ACLTAPE_COMPAT int32_t MsprofReportEvent(uint32_t, const void*) { return 0; }
ACLTAPE_COMPAT int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t) { return 0; }
ACLTAPE_COMPAT int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) { return 0; }

// FNV-1a: equal texts have equal numbers in every process.
ACLTAPE_COMPAT uint64_t MsprofGetHashId(const char* text, size_t length) {
  acltape::base::Fnv1a hash;
  for (size_t i = 0; text != nullptr && i < length; ++i) {
    hash.Add(static_cast<unsigned char>(text[i]));
  }
  return hash.hash();
}

ACLTAPE_COMPAT uint64_t MsprofStr2Id(const char* text, size_t length) {
  return MsprofGetHashId(text, length);
}

ACLTAPE_COMPAT uint64_t MsprofSysCycleTime(void) {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

ACLTAPE_COMPAT int32_t MsprofSetDeviceIdByGeModelIdx(uint32_t, uint32_t) { return 0; }
ACLTAPE_COMPAT int32_t MsprofUnsetDeviceIdByGeModelIdx(uint32_t, uint32_t) { return 0; }
