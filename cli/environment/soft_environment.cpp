#include "cli/environment/soft_environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "cli/environment/adapter_names.h"
#include "cli/environment/installation.h"
#include "cli/environment/interpreter.h"
#include "storage/error.h"
#include "storage/plain_file.h"

namespace acltape::cli {

namespace fs = std::filesystem;

namespace {

// The folders that have to be on the library path before the toolkit, for programs of this
// interpreter.
std::vector<fs::path> FoldersFor(const fs::path& interpreter) {
  if (interpreter.empty()) return {};
  const InstalledPackages packages = AskInterpreter(interpreter);
  const AdapterNames names = ReadAdapterNames(packages, ToolkitFolder() / "lib64");
  if (!HasLeftovers(names)) return {};
  return {LeftoversFolder(names)};
}

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// A setting of the soft device (runtime/device/profile.cpp): that of the environment, else that of
// a profile file, else empty. The device itself reports what it cannot understand.
std::string Setting(const char* variable, std::string_view key) {
  const char* given = std::getenv(variable);
  if (given != nullptr && *given != '\0') return given;
  std::string setting;
  const char* profile = std::getenv("ACLTAPE_SOFT_PROFILE");
  if (profile == nullptr) return setting;
  std::istringstream file(storage::ReadPlainFile(profile).value_or(""));
  for (std::string line; std::getline(file, line);) {
    const size_t sign = line.find('=');
    if (sign == std::string::npos || Trimmed(line).starts_with('#')) continue;
    const std::string_view text = line;
    if (Trimmed(text.substr(0, sign)) == key) setting = Trimmed(text.substr(sign + 1));
  }
  return setting;
}

// As many devices as a server has, so that a program of several ranks runs without a setting.
std::string Devices() {
  const std::string setting = Setting("ACLTAPE_SOFT_DEVICES", "devices");
  return setting.empty() ? "8" : setting;
}

// `path` before what the environment has in the variable.
std::string InFrontOf(const char* variable, const std::string& path) {
  const char* before = std::getenv(variable);
  return before != nullptr && *before != '\0' ? path + ":" + before : path;
}

// The folder of the libraries of newer products, if they are wanted; else empty.
fs::path NewerLibraries() {
  const char* profile = std::getenv("ACLTAPE_SOFT_PROFILE");
  const bool newer = profile != nullptr && std::string(profile) == "newer";
  return newer ? ToolkitFolder() / "lib64" / "newer" : fs::path();
}

std::string LibraryPath(const std::vector<fs::path>& folders) {
  std::string path;
  for (const fs::path& folder : folders) path += folder.string() + ":";
  const fs::path libraries = ToolkitFolder() / "lib64";
  const fs::path newer = NewerLibraries();
  if (!newer.empty()) path += newer.string() + ":";
  if (Setting("ACLTAPE_SOFT_EXPORTS", "exports") == "kernels")
    path += (libraries / "kernels:").string();
  return InFrontOf("LD_LIBRARY_PATH", path + libraries.string());
}

// Gives the libraries that a program preloads, with that of the device as the last one. A preloaded
// library that replaces a function asks for the next one of that name (RTLD_NEXT), and in a program
// that opens libascendcl.so later this one is in no scope where that looks. Empty when nothing is
// preloaded.
std::string Preloaded() {
  const char* before = std::getenv("LD_PRELOAD");
  const std::string text = before != nullptr ? before : "";
  if (text.find_first_not_of(" :") == std::string::npos) return "";
  if (text.find("/libascendcl.so") != std::string::npos) return "";
  const fs::path newer = NewerLibraries();
  const fs::path folder = newer.empty() ? ToolkitFolder() / "lib64" : newer;
  return text + ":" + (folder / "libascendcl.so").string();
}

}  // namespace

fs::path ToolkitFolder() { return LibraryDirectory().parent_path() / "sdk"; }

std::vector<std::pair<std::string, std::string>> SoftEnvironment(const fs::path& interpreter) {
  const fs::path toolkit = ToolkitFolder();
  if (!fs::exists(toolkit / "lib64" / "libascendcl.so")) {
    throw Error(ErrorKind::kDevice,
                fmt::format("the soft device is not in {}; build it, `acltape doctor` says how.",
                            (toolkit / "lib64").string()));
  }
  std::vector<std::pair<std::string, std::string>> settings = {
      {"ACLTAPE_SOFT_DEVICES", Devices()},
      {"ASCEND_HOME_PATH", toolkit.string()},
      {"ASCEND_TOOLKIT_HOME", toolkit.string()},
      {"ASCEND_OPP_PATH", (toolkit / "opp").string()},
      {"PATH", InFrontOf("PATH", (toolkit / "bin").string())},
      {"LD_LIBRARY_PATH", LibraryPath(FoldersFor(interpreter))},
      {"PYTHONPATH", InFrontOf("PYTHONPATH", (toolkit / "python" / "site-packages").string())}};
  if (std::string preloaded = Preloaded(); !preloaded.empty()) {
    settings.emplace_back("LD_PRELOAD", std::move(preloaded));
  }
  return settings;
}

}  // namespace acltape::cli
