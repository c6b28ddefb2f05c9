#include "runtime/device/configuration.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/device/error.h"

namespace acltape::device {

aclError ReadConfiguration(const char* path, const char* call, std::string* text,
                           std::string* raw) {
  text->clear();
  if (raw != nullptr) raw->clear();
  if (path == nullptr || *path == '\0') return ACL_SUCCESS;
  std::ifstream file(path);
  std::stringstream content;
  if (!file || !(content << file.rdbuf() || file.peek() == EOF)) {
    return Fail(ACL_ERROR_INVALID_FILE, "%s: the configuration file %s cannot be read", call, path);
  }
  if (raw != nullptr) *raw = content.str();
  auto parsed = nlohmann::json::parse(content.str(), nullptr, false);
  if (content.str().find_first_not_of(" \t\r\n") == std::string::npos) return ACL_SUCCESS;
  if (!parsed.is_object()) {
    return Fail(ACL_ERROR_PARSE_FILE, "%s: the configuration file %s is not a JSON object", call,
                path);
  }
  if (!parsed.empty()) *text = parsed.dump();
  return ACL_SUCCESS;
}

}  // namespace acltape::device
