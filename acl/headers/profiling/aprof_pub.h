// The functions by which programs report to the vendor's profiler themselves (libprofapi.so). The
// soft device takes the reports and keeps none.
#ifndef PROFILING_APROF_PUB_H
#define PROFILING_APROF_PUB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MSPROF_REPORT_DATA_MAGIC_NUM 0x5A5AU
#define MSPROF_REPORT_ACL_LEVEL 20000U
#define MSPROF_REPORT_MODEL_LEVEL 15000U
#define MSPROF_REPORT_NODE_LEVEL 10000U

struct MsprofApi {
  uint16_t magicNumber;
  uint16_t level;
  uint32_t type;
  uint32_t threadId;
  uint32_t reserve;
  uint64_t beginTime;
  uint64_t endTime;
  uint64_t itemId;
};

int32_t MsprofReportApi(uint32_t agingFlag, const struct MsprofApi* api);
uint64_t MsprofSysCycleTime(void);
uint64_t MsprofGetHashId(const char* hashInfo, size_t length);
// Say which device an offline model runs on. There are no offline models, so nothing asks for it.
int32_t MsprofSetDeviceIdByGeModelIdx(const uint32_t geModelIdx, const uint32_t deviceId);
int32_t MsprofUnsetDeviceIdByGeModelIdx(const uint32_t geModelIdx, const uint32_t deviceId);

#ifdef __cplusplus
}
#endif

#endif
