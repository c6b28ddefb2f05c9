// Initialisation (section 2 of the rules).
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/device/call.h"
#include "runtime/device/configuration.h"
#include "runtime/device/device.h"
#include "runtime/device/dump/dump.h"
#include "runtime/device/init_callbacks.h"

using namespace acltape::device;

namespace {

struct Initialisation {
  std::recursive_mutex mutex;  // callbacks may register others
  uint64_t count = 0;
  std::string configuration;  // argument of the first aclInit
  std::string file;           // the same as the program wrote it
};

Initialisation& GetInitialisation() {
  static Initialisation& initialisation = *new Initialisation;
  return initialisation;
}

// INIT-04: numbers may be written as strings.
int64_t NumberAt(const nlohmann::json& value, int64_t fallback) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_string()) return fallback;
  try {
    return std::stoll(value.get<std::string>());
  } catch (const std::exception&) {
    return fallback;
  }
}

aclError ApplyConfiguration(const std::string& text) {
  if (text.empty()) return ACL_SUCCESS;
  auto parsed = nlohmann::json::parse(text);
  DumpSettings dumps;
  ACLTAPE_RETURN_IF_FAILED(ReadDumpSettings(parsed, "aclInit", &dumps));
  if (parsed.contains("err_msg_mode") && NumberAt(parsed["err_msg_mode"], 0) == 1) {
    ShareMessagesInProcess(true);
  }
  const auto& section = parsed.value("defaultDevice", nlohmann::json::object());
  if (section.is_object() && section.contains("default_device")) {
    int64_t id = NumberAt(section["default_device"], -1);
    if (id < 0 || id > INT32_MAX || DeviceAt(static_cast<int32_t>(id)) == nullptr) {
      return Fail(ACL_ERROR_RT_INVALID_DEVICEID,
                  "aclInit: the configured default device %lld does not exist",
                  static_cast<long long>(id));
    }
    SetDefaultDevice(static_cast<int32_t>(id));
  }
  ConfigureDumps(dumps);
  return ACL_SUCCESS;
}

// The configuration ends with the initialisation it came with.
void EndConfiguration() {
  SetDefaultDevice(-1);
  ShareMessagesInProcess(false);
  EndDumps();
}

// Gives what a callback of the end gives; the process is finalised all the same.
aclError End() {
  const aclError code = CallFinalizeCallbacks();
  finalized.store(true);
  EndConfiguration();
  return code;
}

aclError AlreadyFinal(const char* call) {
  return Fail(ACL_ERROR_REPEAT_FINALIZE, "%s: aclInit was not called, or all was finalised before",
              call);
}

}  // namespace

bool acltape::device::IsInitialised(std::string* configuration) {
  Initialisation& state = GetInitialisation();
  const std::lock_guard lock(state.mutex);
  *configuration = state.file;
  return state.count > 0;
}

aclError aclInit(const char* configPath) {
  ACLTAPE_CALL("aclInit");
  std::string configuration, file;
  ACLTAPE_RETURN_IF_FAILED(ReadConfiguration(configPath, kCall, &configuration, &file));
  Initialisation& state = GetInitialisation();
  std::lock_guard lock(state.mutex);
  if (state.count == 0) {
    ACLTAPE_RETURN_IF_FAILED(ApplyConfiguration(configuration));
    const bool was_finalized = finalized.exchange(false);
    if (const aclError code = CallInitCallbacks(file); code != ACL_SUCCESS) {
      finalized.store(was_finalized);
      EndConfiguration();
      return code;
    }
    state.configuration = configuration;
    state.file = file;
    state.count = 1;
    return ACL_SUCCESS;
  }
  bool given = configPath != nullptr && *configPath != '\0';
  if (given && configuration != state.configuration) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclInit: the process is initialised with another configuration than %s",
                configPath);
  }
  ++state.count;
  return Fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit: the process is initialised already");
}

aclError aclFinalize(void) {
  ACLTAPE_CALL("aclFinalize");
  Initialisation& state = GetInitialisation();
  std::lock_guard lock(state.mutex);
  if (state.count == 0) return AlreadyFinal(kCall);
  state.count = GetProfile().finalize_counts ? state.count - 1 : 0;  // INIT-05, INIT-07
  return state.count == 0 ? End() : ACL_SUCCESS;
}

aclError aclFinalizeReference(uint64_t* refCount) {
  ACLTAPE_CALL("aclFinalizeReference");
  Initialisation& state = GetInitialisation();
  std::lock_guard lock(state.mutex);
  if (state.count == 0) return AlreadyFinal(kCall);
  const aclError code = --state.count == 0 ? End() : ACL_SUCCESS;
  if (refCount != nullptr) *refCount = state.count;
  return code;
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  ACLTAPE_CALL("aclrtGetVersion");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(majorVersion, kCall, "majorVersion"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(minorVersion, kCall, "minorVersion"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(patchVersion, kCall, "patchVersion"));
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
}
