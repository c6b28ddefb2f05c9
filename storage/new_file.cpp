#include "storage/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "meaning/options.h"
#include "storage/error.h"
#include "storage/process_identity.h"
#include "storage/side_files.h"

namespace acltape::storage {
namespace {

constexpr std::string_view kPartialEnd = ".partial";
constexpr std::string_view kForce = "use @force to overwrite it"_cli;

std::array<std::string, 4> SideNames(const std::string& trace) {
  return {trace + kSqliteSuffixes[0], trace + kSqliteSuffixes[1], trace + kSqliteSuffixes[2],
          trace + kSpoolSuffix};
}

// The place of a file that may not exist: its folder without links, and its own name.
std::string PlaceOf(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path whole(path);
  const std::filesystem::path folder = std::filesystem::weakly_canonical(
      std::filesystem::absolute(whole, ignored).parent_path(), ignored);
  return (folder / whole.filename()).string();
}

bool IsSameFile(const std::string& one, const std::string& other) {
  struct stat a;
  struct stat b;
  return stat(one.c_str(), &a) == 0 && stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

[[noreturn]] void RefuseUse(std::string sentence) {
  throw Error(ErrorKind::kUsage, std::move(sentence));
}

void RefuseTrace(const std::string& path, const std::string& trace) {
  if (trace.empty()) return;
  if (IsSameFile(path, trace)) {
    RefuseUse(fmt::format("'{}' is the trace itself; name another file", path));
  }
  for (const std::string& side : SideNames(trace)) {
    if (IsSameFile(path, side) || PlaceOf(path) == PlaceOf(side)) {
      RefuseUse(fmt::format("'{}' belongs to the trace '{}'; name another file", path, trace));
    }
  }
}

// False: there is nothing at the path.
bool IsPlainFile(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) RefuseUse(fmt::format("'{}' is a folder; name a file", path));
  if (S_ISLNK(status.st_mode)) {
    RefuseUse(
        fmt::format("'{}' is a link, and nothing is written through links; name the file "
                    "itself, or remove the link",
                    path));
  }
  if (!S_ISREG(status.st_mode)) {
    RefuseUse(fmt::format("'{}' is not a regular file; name another file", path));
  }
  return true;
}

// The files that would come to belong to a new trace of this name.
void JudgeSidesOfOutput(const std::string& path, bool overwrite) {
  for (const std::string& side : SideNames(path)) {
    if (!IsPlainFile(side) || overwrite) continue;
    RefuseUse(
        fmt::format("'{}' lies where a file of the new trace '{}' would, and is another's; "
                    "move it away, or {}",
                    side, path, kForce));
  }
}

// True if no process has this number, as this process sees it. A zombie runs no more code. What
// other users run may be hidden in /proc, but kill() tells it.
bool IsGone(int64_t pid) {
  if (kill(static_cast<pid_t>(pid), 0) != 0) return errno == ESRCH;
  return ProcessStartTime(pid) == 0;
}

// The process that wrote NAME.PID.partial or NAME.PID-NUMBER.partial; 0 for any other name.
int64_t WriterOf(std::string_view file, std::string_view name) {
  if (!file.starts_with(name)) return 0;
  file.remove_prefix(name.size());
  if (!file.starts_with('.') || !file.ends_with(kPartialEnd)) return 0;
  const std::string_view numbers = file.substr(1, file.size() - 1 - kPartialEnd.size());
  const size_t dash = numbers.find('-');
  const std::string_view parts[] = {numbers.substr(0, dash),
                                    dash == numbers.npos ? "0" : numbers.substr(dash + 1)};
  int64_t values[] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    const char* end = parts[i].data() + parts[i].size();
    const auto read = std::from_chars(parts[i].data(), end, values[i]);
    if (read.ec != std::errc() || read.ptr != end || values[i] < 0) return 0;
  }
  return values[0] <= std::numeric_limits<pid_t>::max() ? values[0] : 0;
}

bool IsPlainFileOfThisUser(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

// Removes a partial file that nobody writes, and what SQLite left beside it. Its writer holds a
// lock on it, also where that process has no number here: in another container or on another
// machine.
void RemoveUnheld(const std::string& partial) {
  const int file = open(partial.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  struct stat status;
  if (fstat(file, &status) == 0 && IsPlainFileOfThisUser(status) &&
      flock(file, LOCK_EX | LOCK_NB) == 0 && unlink(partial.c_str()) == 0) {
    for (const char* suffix : kSqliteSuffixes) {
      const std::string side = partial + suffix;
      if (lstat(side.c_str(), &status) == 0 && IsPlainFileOfThisUser(status)) unlink(side.c_str());
    }
  }
  close(file);
}

// Removes what is left of outputs of this name whose writers were killed.
void RemoveLeftOver(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::filesystem::path folder = whole.has_parent_path() ? whole.parent_path() : ".";
  std::error_code ignored;
  std::vector<std::string> left;
  for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    const std::string file = at->path().filename().string();
    const int64_t writer = WriterOf(file, whole.filename().string());
    if (writer > 0 && (writer == getpid() || IsGone(writer))) left.push_back(at->path().string());
  }
  for (const std::string& partial : left) RemoveUnheld(partial);
}

}  // namespace

void RefuseWhatIsRead(const std::string& path, const std::string& trace,
                      const std::vector<std::string>& reads) {
  RefuseTrace(path, trace);
  for (const std::string& read : reads) {
    if (!IsSameFile(path, read)) continue;
    RefuseUse(fmt::format("'{}' is a file that this command reads; name another file", path));
  }
}

void RequirePlainFile(const std::string& path, const std::string& trace) {
  RefuseTrace(path, trace);
  IsPlainFile(path);
}

void JudgeOutput(const std::string& path, const OutputRules& rules) {
  RefuseWhatIsRead(path, rules.trace, rules.reads);
  const bool exists = IsPlainFile(path);
  if (exists && !rules.overwrite && !(rules.is_own && rules.is_own(path))) {
    RefuseUse(
        fmt::format("'{}' exists already; {}", path, rules.remedy.empty() ? kForce : rules.remedy));
  }
  if (rules.is_trace) JudgeSidesOfOutput(path, rules.overwrite);
}

NewFile::NewFile(std::string path, OutputRules rules)
    : path_(std::move(path)), rules_(std::move(rules)) {
  JudgeOutput(path_, rules_);
  RemoveLeftOver(path_);
  constexpr int kMostTries = 100;
  for (int number = 0; file_ < 0 && number < kMostTries; ++number) {
    partial_ = fmt::format("{}.{}{}{}", path_, getpid(),
                           number == 0 ? std::string() : fmt::format("-{}", number), kPartialEnd);
    file_ = open(partial_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file_ < 0 && errno != EEXIST) break;
  }
  if (file_ < 0) {
    throw Error(ErrorKind::kDevice, fmt::format("'{}' cannot be written ({}); choose another place",
                                                path_, std::strerror(errno)));
  }
  struct stat before;
  if (lstat(path_.c_str(), &before) == 0) {
    static_cast<void>(fchmod(file_, before.st_mode & 0777) == 0);
  }
  static_cast<void>(flock(file_, LOCK_EX | LOCK_NB) == 0);
}

NewFile::~NewFile() {
  if (!partial_.empty()) unlink(partial_.c_str());
  close(file_);
}

void NewFile::Accept() {
  // A file that got the name while this one was written is judged too.
  JudgeOutput(path_, rules_);
  int done = -1;
  errno = EINVAL;
  struct stat status;
  const bool replaces = lstat(path_.c_str(), &status) == 0;
  if (!replaces) {
    done = renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  }
  // A file system that knows no RENAME_NOREPLACE says EINVAL.
  if (done != 0 && (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP)) {
    done = rename(partial_.c_str(), path_.c_str());
  }
  if (done != 0) {
    throw Error(errno == EEXIST ? ErrorKind::kUsage : ErrorKind::kDevice,
                fmt::format("'{}' cannot be written ({}); choose another place", path_,
                            std::strerror(errno)));
  }
  partial_.clear();
}

void WriteNewFile(const std::string& path, std::string_view text, const OutputRules& rules) {
  NewFile file(path, rules);
  std::FILE* out = std::fopen(file.partial().c_str(), "wb");
  bool written = out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  int reason = errno;
  if (out != nullptr && std::fclose(out) != 0 && written) {
    written = false;
    reason = errno;
  }
  if (!written) {
    throw Error(ErrorKind::kDevice, fmt::format("'{}' cannot be written ({}); choose another place",
                                                path, std::strerror(reason)));
  }
  file.Accept();
}

}  // namespace acltape::storage
