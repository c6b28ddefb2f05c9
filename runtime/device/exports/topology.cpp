// Numbers of devices and how devices are connected (DEV-18), kinds of memory and its use (MEM-15),
// settings without an effect here (DEV-19).
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/device/call.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

constexpr size_t kBusIdBytes = 13;  // "0000:c1:00.0" and its end

aclError CheckNumber(int64_t id, const char* call) {
  if (id <= INT32_MAX && DeviceAt(static_cast<int32_t>(id)) != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %lld; valid: 0 to %u", call,
              static_cast<long long>(id), GetProfile().devices - 1);
}

// The driver's number and the machine's are the same here.
uint32_t SystemNumber(uint32_t device) {
  const Profile& profile = GetProfile();
  return profile.visible.empty() ? device : profile.visible[device];
}

// The numbers that the program and the system have for a device.
aclError ToSystem(int32_t from, int32_t* to, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(to, call, "the output"));
  ACLTAPE_RETURN_IF_FAILED(CheckNumber(from, call));
  *to = static_cast<int32_t>(SystemNumber(static_cast<uint32_t>(from)));
  return ACL_SUCCESS;
}
aclError ToProgram(int32_t from, int32_t* to, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(to, call, "the output"));
  for (uint32_t device = 0; device < GetProfile().devices; ++device) {
    if (static_cast<int32_t>(SystemNumber(device)) != from) continue;
    *to = static_cast<int32_t>(device);
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: the program sees no device with the number %d",
              call, from);
}
// The driver's number and the machine's.
aclError SameNumber(int32_t from, int32_t* to, const char* call) {
  return ToProgram(from, to, call) == ACL_SUCCESS ? (*to = from, ACL_SUCCESS)
                                                  : ACL_ERROR_RT_INVALID_DEVICEID;
}

// Each device is the only one on its bus.
void BusIdOf(int32_t device, char* text) {
  const uint32_t number = SystemNumber(static_cast<uint32_t>(device));
  std::snprintf(text, kBusIdBytes, "0000:%02x:00.0", (number + 1) & 0xFF);
}

}  // namespace

aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t* const logicDevId) {
  ACLTAPE_CALL("aclrtGetLogicDevIdByPhyDevId");
  return SameNumber(phyDevId, logicDevId, kCall);
}
aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t* const phyDevId) {
  ACLTAPE_CALL("aclrtGetPhyDevIdByLogicDevId");
  return SameNumber(logicDevId, phyDevId, kCall);
}
aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId) {
  ACLTAPE_CALL("aclrtGetLogicDevIdByUserDevId");
  return ToSystem(userDevid, logicDevId, kCall);
}
aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t* const userDevid) {
  ACLTAPE_CALL("aclrtGetUserDevIdByLogicDevId");
  return ToProgram(logicDevId, userDevid, kCall);
}
aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t* const userDevId) {
  ACLTAPE_CALL("aclrtGetUserDevIdByPhyDevId");
  return ToProgram(phyDevId, userDevId, kCall);
}
aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t* const phyDevId) {
  ACLTAPE_CALL("aclrtGetPhyDevIdByUserDevId");
  return ToSystem(userDevId, phyDevId, kCall);
}

aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char* pciBusId, int32_t len) {
  ACLTAPE_CALL("aclrtDeviceGetPCIBusId");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pciBusId, kCall, "pciBusId"));
  ACLTAPE_RETURN_IF_FAILED(CheckNumber(deviceId, kCall));
  if (len < static_cast<int32_t>(kBusIdBytes)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %d bytes are too few; it needs %zu", kCall, len,
                kBusIdBytes);
  }
  BusIdOf(deviceId, pciBusId);
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetByPCIBusId(const char* pciBusId, int32_t* deviceId) {
  ACLTAPE_CALL("aclrtDeviceGetByPCIBusId");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pciBusId, kCall, "pciBusId"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(deviceId, kCall, "deviceId"));
  for (uint32_t id = 0; id < GetProfile().devices; ++id) {
    char own[kBusIdBytes];
    BusIdOf(static_cast<int32_t>(id), own);
    if (std::strcmp(own, pciBusId) != 0) continue;
    *deviceId = static_cast<int32_t>(id);
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device at %s", kCall, pciBusId);
}

// All devices of a server are connected by the coherent link.
aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t* value) {
  ACLTAPE_CALL("aclrtGetDevicesTopo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  ACLTAPE_RETURN_IF_FAILED(CheckNumber(deviceId, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckNumber(otherDeviceId, kCall));
  *value = deviceId == otherDeviceId ? ACL_RT_DEVS_TOPOLOGY_SIO : ACL_RT_DEVS_TOPOLOGY_HCCS;
  return ACL_SUCCESS;
}

// There is one scheduler of tasks, which serves for both.
aclError aclrtSetTsDevice(aclrtTsId tsId) {
  ACLTAPE_CALL("aclrtSetTsDevice");
  if (tsId == ACL_TS_ID_AICORE || tsId == ACL_TS_ID_AIVECTOR) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no scheduler %u", kCall,
              static_cast<uint32_t>(tsId));
}

// The greatest time-out, 254 intervals, is the documented 1091 seconds.
aclError aclrtGetOpTimeOutInterval(uint64_t* interval) {
  ACLTAPE_CALL("aclrtGetOpTimeOutInterval");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(interval, kCall, "interval"));
  *interval = 4294967;  // microseconds
  return ACL_SUCCESS;
}

aclError aclrtCheckMemType(void** addrList, uint32_t size, uint32_t memType, uint32_t* checkResult,
                           uint32_t reserve) {
  ACLTAPE_CALL("aclrtCheckMemType");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(addrList, kCall, "addrList"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(checkResult, kCall, "checkResult"));
  constexpr uint32_t kKnown = ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD;
  if (size == 0 || memType == 0 || (memType & ~kKnown) != 0 || reserve != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the size is 0, memory type 0x%x does not exist, or reserve is not 0", kCall,
                memType);
  }
  *checkResult = 1;
  for (uint32_t i = 0; i < size; ++i) {
    const auto block = FindMemory(addrList[i]);
    uint32_t type = 0;
    if (IsReserved(addrList[i])) {
      type = ACL_RT_MEM_TYPE_RSVD;
    } else if (IsDevice(block)) {
      type = ACL_RT_MEM_TYPE_DEV;
    }
    if ((type & memType) == 0) *checkResult = 0;
  }
  return ACL_SUCCESS;
}

// The program itself is the only user of the device's memory.
aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo, size_t inputNum,
                              size_t* outputNum) {
  ACLTAPE_CALL("aclrtGetMemUsageInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(memUsageInfo, kCall, "memUsageInfo"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(outputNum, kCall, "outputNum"));
  ACLTAPE_RETURN_IF_FAILED(CheckNumber(deviceId, kCall));
  if (inputNum == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: inputNum is 0", kCall);
  const Device& device = *DeviceAt(deviceId);
  *memUsageInfo = {};
  std::snprintf(memUsageInfo->name, sizeof(memUsageInfo->name), "APP");
  memUsageInfo->curMemSize = device.memory_used.load();
  memUsageInfo->memPeakSize = std::max(device.memory_peak.load(), memUsageInfo->curMemSize);
  *outputNum = 1;
  return ACL_SUCCESS;
}
