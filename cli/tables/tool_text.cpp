#include "cli/tables/tool_text.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace acltape::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr char kSourceRoot[] = "SRCROOT";
constexpr char kMachineRoot[] = "MACHINE";

std::string UriPath(const std::string& path) {
  std::string uri;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        std::isalnum(byte) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return uri;
}

std::string FolderUri(const std::string& folder) {
  return "file://" + UriPath(folder) + (folder.ends_with('/') ? "" : "/");
}

// The path from the folder on; nothing if it does not lie below.
std::optional<std::string> Below(const std::string& folder, const fs::path& path) {
  if (folder.empty()) return std::nullopt;
  const fs::path relative = path.lexically_relative(folder);
  if (relative.empty() || *relative.begin() == "..") return std::nullopt;
  return relative.generic_string();
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path.empty() ? "." : path, error).lexically_normal();
  const std::string text = error ? path : absolute.generic_string();
  return text.size() > 1 && text.ends_with('/') ? text.substr(0, text.size() - 1) : text;
}

ordered_json LocationOf(const std::string& path, const char* base) {
  return {{"uri", UriPath(path)}, {"uriBaseId", base}};
}

}  // namespace

SourceRoot::SourceRoot(const std::string& folder, const storage::Reader& trace)
    : root_(Absolute(folder)), recorded_(trace.Meta("cwd")) {}

ordered_json SourceRoot::Location(const std::string& file) const {
  fs::path path(file);
  // Python names a script as it was named on its command line.
  if (path.is_relative() && !recorded_.empty()) path = fs::path(recorded_) / path;
  path = path.lexically_normal();
  if (path.is_relative()) return LocationOf(path.generic_string(), kSourceRoot);
  for (const std::string& folder : {root_, recorded_}) {
    if (const auto below = Below(folder, path)) return LocationOf(*below, kSourceRoot);
  }
  return LocationOf(path.generic_string().substr(1), kMachineRoot);
}

ordered_json SourceRoot::OwnLocation(const std::string& file) const {
  const std::string path = Absolute(file);
  if (const auto below = Below(root_, path)) return LocationOf(*below, kSourceRoot);
  return LocationOf(path.substr(1), kMachineRoot);
}

ordered_json SourceRoot::Bases() const {
  return {{kSourceRoot, {{"uri", FolderUri(root_)}}}, {kMachineRoot, {{"uri", FolderUri("/")}}}};
}

std::string XmlText(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\n':
        escaped += "&#10;";
        break;
      default:
        // XML has no place for other control characters.
        escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace acltape::cli
