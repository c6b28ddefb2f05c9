#include "recorder/collector/log_origin.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "recorder/wire/rank_variables.h"

namespace acltape::collector {
namespace {

std::string ProcessName(uint32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return name;
}

// Reads the rank from the environment that the process was started with. A process that sets it
// later tells it itself.
std::optional<int64_t> RankOf(uint32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid));
  std::map<std::string, std::string> environment;
  for (std::string variable; std::getline(file, variable, '\0');) {
    const size_t equals = variable.find('=');
    if (equals != std::string::npos) {
      environment.emplace(variable.substr(0, equals), variable.substr(equals + 1));
    }
  }
  for (const char* name : wire::kRankVariables) {
    const auto found = environment.find(name);
    if (found == environment.end()) continue;
    if (const std::optional<int64_t> rank = ParseRank(found->second)) return rank;
  }
  return {};
}

// The number of a thread in its innermost PID namespace, 0 when it is gone.
uint32_t OwnNumber(const std::filesystem::path& thread) {
  std::ifstream file(thread / "status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("NSpid:")) continue;
    return static_cast<uint32_t>(std::atoll(line.c_str() + line.find_last_of(" \t") + 1));
  }
  return 0;
}

}  // namespace

uint32_t ThreadByOwnNumber(uint32_t pid, uint32_t own_tid) {
  std::error_code gone;
  std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", pid), gone);
  for (; !gone && thread != std::filesystem::directory_iterator(); thread.increment(gone)) {
    if (OwnNumber(thread->path()) == own_tid) {
      return static_cast<uint32_t>(std::atoll(thread->path().filename().c_str()));
    }
  }
  return 0;
}

std::optional<int64_t> ParseRank(std::string_view text) {
  int64_t rank = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || rank < 0) return {};
  return rank;
}

LogOrigin OriginOf(uint32_t pid, uint32_t tid, uint32_t slot, uint32_t generation) {
  return {pid, tid, ProcessName(pid), RankOf(pid), slot, generation};
}

}  // namespace acltape::collector
