// Initialisation (section 2 of the rules).
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "runtime/device/call.h"
#include "runtime/device/device.h"

using namespace acltape::device;

namespace {

struct Initialisation {
  std::mutex mutex;
  uint64_t count = 0;
  std::string configuration;  // of the first aclInit
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

// Reads the configuration's text; empty and "{}" mean the same.
aclError ReadConfiguration(const char* path, std::string* text) {
  text->clear();
  if (path == nullptr || *path == '\0') return ACL_SUCCESS;
  std::ifstream file(path);
  std::stringstream content;
  if (!file || !(content << file.rdbuf() || file.peek() == EOF)) {
    return Fail(ACL_ERROR_INVALID_FILE, "aclInit: the configuration file %s cannot be read", path);
  }
  auto parsed = nlohmann::json::parse(content.str(), nullptr, false);
  if (content.str().find_first_not_of(" \t\r\n") == std::string::npos) return ACL_SUCCESS;
  if (!parsed.is_object()) {
    return Fail(ACL_ERROR_PARSE_FILE, "aclInit: the configuration file %s is not a JSON object",
                path);
  }
  if (!parsed.empty()) *text = parsed.dump();
  return ACL_SUCCESS;
}

aclError ApplyConfiguration(const std::string& text) {
  if (text.empty()) return ACL_SUCCESS;
  auto parsed = nlohmann::json::parse(text);
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
  return ACL_SUCCESS;
}

// The configuration ends with the initialisation it came with.
void End() {
  finalized.store(true);
  SetDefaultDevice(-1);
  ShareMessagesInProcess(false);
}

aclError AlreadyFinal(const char* call) {
  return Fail(ACL_ERROR_REPEAT_FINALIZE, "%s: aclInit was not called, or all was finalised before",
              call);
}

}  // namespace

aclError aclInit(const char* configPath) {
  ACLTAPE_CALL("aclInit");
  std::string configuration;
  ACLTAPE_RETURN_IF_FAILED(ReadConfiguration(configPath, &configuration));
  Initialisation& state = GetInitialisation();
  std::lock_guard lock(state.mutex);
  if (state.count == 0) {
    ACLTAPE_RETURN_IF_FAILED(ApplyConfiguration(configuration));
    state.configuration = configuration;
    state.count = 1;
    finalized.store(false);
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
  if (state.count == 0) End();
  return ACL_SUCCESS;
}

aclError aclFinalizeReference(uint64_t* refCount) {
  ACLTAPE_CALL("aclFinalizeReference");
  Initialisation& state = GetInitialisation();
  std::lock_guard lock(state.mutex);
  if (state.count == 0) return AlreadyFinal(kCall);
  if (--state.count == 0) End();
  if (refCount != nullptr) *refCount = state.count;
  return ACL_SUCCESS;
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
