#include "storage/set_aside.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "storage/error.h"
#include "storage/file_claim.h"
#include "storage/new_file.h"
#include "storage/side_files.h"

namespace acltape::storage {
namespace {

bool IsThere(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

std::string FreePlace(const std::string& path) {
  std::string place = path + ".replaced";
  for (int number = 2; IsThere(place); ++number)
    place = fmt::format("{}.replaced.{}", path, number);
  return place;
}

}  // namespace

SetAside::SetAside(const std::string& path, bool overwrite, const std::vector<std::string>& reads) {
  JudgeOutput(path, {.overwrite = overwrite, .reads = reads, .is_trace = true});
  if (!overwrite) return;
  RequireUnclaimed(path);
  place_ = FreePlace(path);
  std::vector<std::string> suffixes = {"", kSpoolSuffix};
  suffixes.insert(suffixes.end(), kSqliteSuffixes.begin(), kSqliteSuffixes.end());
  for (const std::string& suffix : suffixes) {
    if (!IsThere(path + suffix)) continue;
    if (rename((path + suffix).c_str(), (place_ + suffix).c_str()) != 0) {
      const int reason = errno;
      MoveBack();
      throw Error(ErrorKind::kDevice, fmt::format("'{}' cannot be replaced ({})", path + suffix,
                                                  std::strerror(reason)));
    }
    moved_.emplace_back(path + suffix, place_ + suffix);
  }
}

SetAside::~SetAside() { MoveBack(); }

void SetAside::MoveBack() noexcept {
  for (const auto& [from, to] : moved_) {
    // A file that came to have the name stays; what was there before then lies beside it.
    static_cast<void>(renameat2(AT_FDCWD, to.c_str(), AT_FDCWD, from.c_str(), RENAME_NOREPLACE) ==
                          0 ||
                      IsThere(from) || rename(to.c_str(), from.c_str()) == 0);
  }
  moved_.clear();
}

void SetAside::Drop() noexcept {
  for (const auto& [from, to] : moved_) unlink(to.c_str());
  moved_.clear();
}

}  // namespace acltape::storage
