#include "cli/record/per_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>

#include "cli/terminal/progress.h"
#include "meaning/options.h"
#include "storage/error.h"
#include "storage/file_claim.h"
#include "storage/reader.h"
#include "storage/split.h"

namespace acltape::cli {
namespace {

namespace fs = std::filesystem;

// "t.db" -> "t.WORD.db"
std::string WithWord(const std::string& output, const std::string& word) {
  const fs::path path(output);
  return (path.parent_path() / (path.stem().string() + "." + word + path.extension().string()))
      .string();
}

// True of "t.rank3.db" where the name begins with "t.rank" and ends with ".db".
bool IsRankFile(const std::string& name, const std::string& begin, const std::string& end) {
  if (!name.starts_with(begin) || !name.ends_with(end)) return false;
  if (name.size() <= begin.size() + end.size()) return false;
  const std::string rank = name.substr(begin.size(), name.size() - begin.size() - end.size());
  return rank.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::string RankFile(const std::string& output, int64_t rank) {
  return WithWord(output, rank < 0 ? "others" : fmt::format("rank{}", rank));
}

std::string MachineFile(const std::string& output) {
  char host[HOST_NAME_MAX + 1] = {};
  if (gethostname(host, HOST_NAME_MAX) != 0 || *host == '\0') return WithWord(output, "machine");
  std::string name = host;
  std::ranges::replace(name, '/', '_');
  return WithWord(output, name);
}

void RefuseTracesOfRanks(const std::string& output, bool overwrite) {
  if (overwrite) return;
  const fs::path path(output);
  const std::string begin = path.stem().string() + ".rank";
  const std::string end = path.extension().string();
  std::error_code ignored;
  const std::string others = fs::path(RankFile(output, -1)).filename().string();
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name != others && !IsRankFile(name, begin, end)) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{} exists already; give another name with -o, or replace the traces "
                            "of ranks with @force"_cli,
                            entry.path().string()));
  }
}

std::vector<std::string> SplitByRank(const std::string& machine_file, const std::string& output,
                                     bool overwrite) {
  std::vector<std::string> files;
  {
    const storage::Reader trace(machine_file);
    const std::vector<storage::RankProcesses> ranks = storage::ProcessesByRank(trace);
    if (ranks.empty() || ranks.front().rank < 0) return files;
    Progress progress("a trace for each rank");
    for (const storage::RankProcesses& one : ranks) {
      progress.Update(static_cast<int64_t>(files.size()), static_cast<int64_t>(ranks.size()));
      files.push_back(RankFile(output, one.rank));
      storage::CopyProcesses(trace, one, files.back(), overwrite);
    }
    progress.Clear();
  }
  storage::RemoveTraceFiles(machine_file);
  return files;
}

}  // namespace acltape::cli
