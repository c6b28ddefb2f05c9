#include "runtime/device/dump/dump_settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/device/error.h"

namespace acltape::device {
namespace {

using nlohmann::json;

// Ways to dump the operator that failed. They are accepted, and their path is reported. Nothing is
// written, because the failure's message says what such a dump is for.
struct ExceptionDump {
  const char* scene;
  acldumpType kind;
};

constexpr ExceptionDump kExceptionDumps[] = {
    {"lite_exception", AIC_ERR_BRIEF_DUMP},
    {"aic_err_brief_dump", AIC_ERR_BRIEF_DUMP},
    {"aic_err_norm_dump", AIC_ERR_NORM_DUMP},
    {"aic_err_detail_dump", AIC_ERR_DETAIL_DUMP},
};

aclError WrongDump(const char* call, const std::string& what) {
  return Fail(ACL_ERROR_INVALID_DUMP_CONFIG, "%s: the configuration of dumps: %s", call,
              what.c_str());
}

// The text of a member, or `usual`; false when the member is something else.
bool TextOf(const json& dump, const char* key, const char* usual, std::string* text) {
  *text = usual;
  if (!dump.contains(key)) return true;
  if (!dump[key].is_string()) return false;
  *text = dump[key].get<std::string>();
  return true;
}

// A text out of a few.
aclError Choice(const json& dump, const char* key, std::initializer_list<const char*> choices,
                const char* call, std::string* chosen) {
  std::string all;
  for (const char* choice : choices) all += (all.empty() ? "" : ", ") + std::string(choice);
  if (TextOf(dump, key, *choices.begin(), chosen)) {
    for (const char* choice : choices) {
      if (*chosen == choice) return ACL_SUCCESS;
    }
  }
  return WrongDump(call, std::string(key) + " is none of " + all);
}

void AddTexts(const json& list, const char* key, std::vector<std::string>* to) {
  if (!list.is_object() || !list.contains(key) || !list[key].is_array()) return;
  for (const json& text : list[key]) {
    if (text.is_string()) to->push_back(text.get<std::string>());
  }
}

bool IsFolder(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         access(path.c_str(), W_OK) == 0;
}

aclError CheckFolder(const DumpSettings& settings, const char* call) {
  if (IsFolder(settings.path)) return ACL_SUCCESS;
  return WrongDump(call, "dump_path \"" + settings.path + "\" is no folder that can be written to");
}

// Chooses the folder for a failed operator: the environment stands above the configuration.
std::string ExceptionPath(const std::string& path) {
  for (const char* name : {"NPU_COLLECT_PATH", "ASCEND_WORK_PATH"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return path.empty() ? "." : path;
}

// True when the scene is one of a failed operator.
bool ReadException(const std::string& scene, DumpSettings* settings) {
  for (const ExceptionDump& row : kExceptionDumps) {
    if (scene != row.scene) continue;
    settings->path = ExceptionPath(settings->path);
    settings->kinds.push_back(row.kind);
    return true;
  }
  return false;
}

aclError ReadTensorDump(const json& dump, const char* call, DumpSettings* settings) {
  std::string mode, level, kind, on;
  if (const aclError code = Choice(dump, "dump_mode", {"output", "input", "all"}, call, &mode)) {
    return code;
  }
  if (const aclError code = Choice(dump, "dump_level", {"all", "op", "kernel"}, call, &level)) {
    return code;
  }
  if (const aclError code = Choice(dump, "dump_data", {"tensor", "stats"}, call, &kind)) {
    return code;
  }
  if (const aclError code = Choice(dump, "dump_op_switch", {"off", "on"}, call, &on)) return code;
  const json list = dump.value("dump_list", json::array());
  if (!list.is_array()) return WrongDump(call, "dump_list is no array");
  for (const json& entry : list) AddTexts(entry, "layer", &settings->wanted);
  if (const aclError code = CheckFolder(*settings, call)) return code;
  settings->tensors = on == "on";
  settings->inputs = mode != "output";
  settings->outputs = mode != "input";
  settings->statistics = kind == "stats";
  AddTexts(dump, "dump_stats", &settings->statistic_names);
  settings->kinds.push_back(DATA_DUMP);
  return ACL_SUCCESS;
}

}  // namespace

bool DumpSettings::Wants(const std::string& type, const std::string& name) const {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), type) != wanted.end() ||
         std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

bool DumpSettings::UsesModelDump() const {
  return std::any_of(kinds.begin(), kinds.end(),
                     [](acldumpType kind) { return kind == DATA_DUMP || kind == OVERFLOW_DUMP; });
}

aclError ReadDumpSettings(const json& configuration, const char* call, DumpSettings* settings) {
  *settings = {};
  if (!configuration.contains("dump")) return ACL_SUCCESS;
  const json& dump = configuration["dump"];
  if (!dump.is_object()) return WrongDump(call, "it is no object");
  std::string scene, debug;
  if (!TextOf(dump, "dump_path", "", &settings->path))
    return WrongDump(call, "dump_path is no text");
  if (!TextOf(dump, "dump_scene", "", &scene)) return WrongDump(call, "dump_scene is no text");
  if (const aclError code = Choice(dump, "dump_debug", {"off", "on"}, call, &debug)) return code;
  const bool lists = dump.contains("dump_list") || dump.contains("dump_op_switch");
  if (ReadException(scene, settings)) {
    return lists ? WrongDump(call, "dump_scene " + scene + " does not stand beside dump_list")
                 : ACL_SUCCESS;
  }
  if (!scene.empty() && scene != "watcher") {
    return WrongDump(call, "there is no dump_scene " + scene);
  }
  if (debug == "on") {
    if (lists) return WrongDump(call, "dump_debug does not stand beside dump_list");
    settings->kinds.push_back(OVERFLOW_DUMP);
    return CheckFolder(*settings, call);
  }
  return lists ? ReadTensorDump(dump, call, settings) : ACL_SUCCESS;
}

std::string TypeOfOperator(const char* op) {
  return std::strncmp(op, "aclnn", 5) == 0 ? op + 5 : op;
}

}  // namespace acltape::device
