// Questions about the product that the soft device stands for: its versions and abilities.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "runtime/device/call.h"
#include "runtime/device/device.h"

using namespace acltape::device;

namespace {

// A driver that fits to the toolkits that can be chosen.
constexpr Version kDriver = {"25", "5", "0"};

// 9.1.0 is 90100000, so that a newer version is a greater number.
int32_t NumberOf(const Version& version) {
  return std::atoi(version.major) * 10000000 + std::atoi(version.minor) * 100000 +
         std::atoi(version.release) * 1000;
}

const Version& VersionOf(const char* package) {
  return std::strcmp(package, "driver") == 0 ? kDriver : GetProfile().toolkit;
}

// Products by how their names begin, and the architecture of their cores. A program that was
// compiled for one product runs on all of its architecture.
struct Architecture {
  std::string_view product;
  int number;
};

constexpr Architecture kArchitectures[] = {
    {"Ascend910B", 2201}, {"Ascend910_93", 2201}, {"Ascend310P", 2002}, {"Ascend310B", 3002}};

// 0: no product that is known.
int ArchitectureOf(std::string_view name) {
  for (const Architecture& row : kArchitectures) {
    if (name.starts_with(row.product)) return row.number;
  }
  return 0;
}

template <size_t N>
void Write(char (&to)[N], const char* text) {
  std::snprintf(to, N, "%s", text);
}

constexpr aclCannAttr kAttributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16,
                                       ACL_CANN_ATTR_JIT_COMPILE};

struct Capability {
  aclDeviceInfo info;
  int64_t (*value)();
};

constexpr Capability kCapabilities[] = {
    {ACL_DEVICE_INFO_AI_CORE_NUM, []() -> int64_t { return GetProfile().cube_cores; }},
    {ACL_DEVICE_INFO_VECTOR_CORE_NUM, []() -> int64_t { return GetProfile().vector_cores; }},
    {ACL_DEVICE_INFO_L2_SIZE, [] { return static_cast<int64_t>(GetProfile().l2_bytes); }},
};

aclError CheckDevice(int64_t id, const char* call) {
  if (id <= INT32_MAX && DeviceAt(static_cast<int32_t>(id)) != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %lld; valid: 0 to %u", call,
              static_cast<long long>(id), GetProfile().devices - 1);
}

}  // namespace

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  ACLTAPE_CALL("aclsysGetCANNVersion");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(version, kCall, "version"));
  if (name < ACL_PKG_NAME_CANN || name > ACL_PKG_NAME_DRIVER) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no package %d", kCall,
                static_cast<int>(name));
  }
  const Version& own = name == ACL_PKG_NAME_DRIVER ? kDriver : GetProfile().toolkit;
  *version = {};
  std::snprintf(version->version, sizeof(version->version), "%s.%s.%s", own.major, own.minor,
                own.release);
  Write(version->majorVersion, own.major);
  Write(version->minorVersion, own.minor);
  Write(version->releaseVersion, own.release);
  return ACL_SUCCESS;
}

// Packages are named by the program ("runtime", "ops_math", "driver"); all but the driver have the
// toolkit's version. The buffer has to hold 128 bytes.
aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  ACLTAPE_CALL("aclsysGetVersionStr");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pkgName, kCall, "pkgName"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(versionStr, kCall, "versionStr"));
  const Version& own = VersionOf(pkgName);
  std::snprintf(versionStr, 128, "%s.%s.%s", own.major, own.minor, own.release);
  return ACL_SUCCESS;
}

aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  ACLTAPE_CALL("aclsysGetVersionNum");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pkgName, kCall, "pkgName"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(versionNum, kCall, "versionNum"));
  *versionNum = NumberOf(VersionOf(pkgName));
  return ACL_SUCCESS;
}

aclError aclrtCheckArchCompatibility(const char* socVersion, int32_t* canCompatible) {
  ACLTAPE_CALL("aclrtCheckArchCompatibility");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(socVersion, kCall, "socVersion"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(canCompatible, kCall, "canCompatible"));
  const std::string& own = GetProfile().soc_name;
  const int architecture = ArchitectureOf(socVersion);
  *canCompatible =
      own == socVersion || (architecture != 0 && architecture == ArchitectureOf(own)) ? 1 : 0;
  return ACL_SUCCESS;
}

// From toolkit 9.1.0 on a device of this product updates tasks of kernels itself, as the vendor's
// sample runtime_compatibility shows; its queues reach no other device.
aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
                                  int32_t* value) {
  ACLTAPE_CALL("aclrtGetDeviceCapability");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  ACLTAPE_RETURN_IF_FAILED(CheckDevice(deviceId, kCall));
  if (devFeatureType != ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV &&
      devFeatureType != ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no feature %d", kCall,
                static_cast<int>(devFeatureType));
  }
  const bool updates = NumberOf(GetProfile().toolkit) >= NumberOf({"9", "1", "0"});
  *value = devFeatureType == ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV && updates ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  ACLTAPE_CALL("aclGetCannAttributeList");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(cannAttrList, kCall, "cannAttrList"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(num, kCall, "num"));
  *cannAttrList = kAttributes;
  *num = std::size(kAttributes);
  return ACL_SUCCESS;
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  ACLTAPE_CALL("aclGetCannAttribute");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  for (aclCannAttr known : kAttributes) {
    if (known != cannAttr) continue;
    *value = 1;
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no attribute %d", kCall,
              static_cast<int>(cannAttr));
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  ACLTAPE_CALL("aclGetDeviceCapability");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  ACLTAPE_RETURN_IF_FAILED(CheckDevice(deviceId, kCall));
  for (const Capability& row : kCapabilities) {
    if (row.info != deviceInfo) continue;
    *value = row.value();
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no capability %d", kCall,
              static_cast<int>(deviceInfo));
}

// Every run gives the same identifiers, and each device has its own.
aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) {
  ACLTAPE_CALL("aclrtDeviceGetUuid");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(uuid, kCall, "uuid"));
  ACLTAPE_RETURN_IF_FAILED(CheckDevice(deviceId, kCall));
  static_assert(sizeof(uuid->bytes) == 16);
  std::memcpy(uuid->bytes, "acltape-soft", 12);
  std::memcpy(uuid->bytes + 12, &deviceId, sizeof(deviceId));
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo) {
  ACLTAPE_CALL("aclrtGetDeviceUtilizationRate");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(utilizationInfo, kCall, "utilizationInfo"));
  ACLTAPE_RETURN_IF_FAILED(CheckDevice(deviceId, kCall));
  // Cores that do not exist are not busy; memory is counted.
  aclrtUtilizationExtendInfo* extend = utilizationInfo->utilizationExtend;
  *utilizationInfo = {};
  utilizationInfo->utilizationExtend = extend;
  utilizationInfo->memoryUtilization =
      static_cast<int32_t>(DeviceAt(deviceId)->memory_used.load() * 100 / GetProfile().memory);
  return ACL_SUCCESS;
}
