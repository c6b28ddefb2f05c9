#include "runtime/device/host_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

namespace acltape::device {
namespace {

// Kept for the system and for what the programs allocate besides.
constexpr uint64_t kLeastReserve = uint64_t{256} << 20;
constexpr uint64_t kReservedPart = 32;

// The number after a line's name, as in "MemAvailable:   24126136 kB".
std::optional<uint64_t> NumberOf(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const size_t digit = line.find_first_of("0123456789", name.size());
    if (digit == std::string::npos) return std::nullopt;
    uint64_t number = 0;
    std::from_chars(line.data() + digit, line.data() + line.size(), number);
    return number;
  }
  return std::nullopt;
}

std::optional<uint64_t> Kilobytes(const std::string& path, std::string_view name) {
  const auto number = NumberOf(path, name);
  return number ? std::optional(*number << 10) : std::nullopt;
}

// The files of a version of control groups.
struct Version {
  const char* mount;
  const char* limit;
  const char* used;
  const char* cache;  // pages of files that can go, in memory.stat
};
constexpr Version kVersions[] = {
    {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
     "total_inactive_file "},
    {"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file "},
};

// Gives what a group leaves. A version 2 group without a limit says "max", which is no number.
uint64_t LeftInGroup(const Version& version, const std::string& group) {
  const auto limit = NumberOf(group + version.limit, "");
  const auto used = NumberOf(group + version.used, "");
  if (!limit || !used) return UINT64_MAX;
  const uint64_t taken =
      *used - std::min(*used, NumberOf(group + "/memory.stat", version.cache).value_or(0));
  return *limit - std::min(*limit, taken);
}

// The path of the group of this process, as "/user.slice/..."; in a container the mount may begin
// with the group itself.
std::string GroupOf(const std::string& root, bool second) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t path = line.find(":/");
    if (path == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(0, path);
    if (second ? names == "0:" : names.ends_with(":memory")) return line.substr(path + 1);
  }
  return "";
}

// The least that a group leaves, of that of this process up to the root.
uint64_t LeftInGroups(const std::string& root) {
  uint64_t left = UINT64_MAX;
  for (const Version& version : kVersions) {
    const bool second = &version == &kVersions[1];
    std::string group = GroupOf(root, second);
    for (;;) {
      left = std::min(left, LeftInGroup(version, root + version.mount + group));
      if (group.empty()) break;
      group.resize(group.rfind('/'));
    }
  }
  return left;
}

}  // namespace

std::optional<uint64_t> AvailableHostMemory(const std::string& root) {
  const std::string path = root + "/proc/meminfo";
  const auto total = Kilobytes(path, "MemTotal:");
  const auto available = Kilobytes(path, "MemAvailable:");
  if (!total || !available) return std::nullopt;
  const uint64_t swap = Kilobytes(path, "SwapFree:").value_or(0);
  const uint64_t left = std::min(*available + swap, LeftInGroups(root));
  const uint64_t reserve = std::max(kLeastReserve, *total / kReservedPart);
  return left - std::min(left, reserve);
}

std::optional<HostProcess> FindHostProcess(uint64_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::ifstream file(folder + "/stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  // The name, in parentheses, may hold anything. The state follows, and 18 numbers before the time.
  const size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream words(text.substr(name_end + 2));
  std::string word;
  words >> word;
  if (word == "Z" || word == "X") return std::nullopt;
  for (int i = 0; i < 18; ++i) words >> word;
  HostProcess found;
  if (!(words >> found.started)) return std::nullopt;
  const std::string status = folder + "/status";
  const auto anonymous = Kilobytes(status, "RssAnon:");
  // Some kernels tell less.
  found.resident = anonymous ? *anonymous + Kilobytes(status, "RssShmem:").value_or(0)
                             : Kilobytes(status, "VmRSS:").value_or(0);
  return found;
}

}  // namespace acltape::device
