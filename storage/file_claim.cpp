#include "storage/file_claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "storage/error.h"
#include "storage/new_file.h"
#include "storage/side_files.h"

namespace acltape::storage {
namespace {

[[noreturn]] void SayTaken(const std::string& path) {
  throw Error(ErrorKind::kDevice,
              fmt::format("'{}' is being recorded by another process; wait for it, or name another "
                          "file",
                          path));
}

// True when another process holds the file. A file system without such locks holds nothing.
bool IsHeld(int file) { return flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

}  // namespace

void RequireUnclaimed(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return;
  const bool held = IsHeld(file);
  close(file);
  if (held) SayTaken(path);
}

// Allocates nothing, because it cleans up after failures.
void RemoveTraceFiles(const std::string& path) noexcept {
  for (const char* suffix : {"", "-wal", "-shm", "-journal", kSpoolSuffix}) {
    char name[PATH_MAX];
    const int bytes = std::snprintf(name, sizeof(name), "%s%s", path.c_str(), suffix);
    if (bytes < static_cast<int>(sizeof(name))) unlink(name);
  }
}

FileClaim::FileClaim(const std::string& path, bool overwrite) {
  struct stat status;
  JudgeOutput(path, {.overwrite = overwrite, .is_trace = true});
  if (overwrite) {
    RequireUnclaimed(path);
    RemoveTraceFiles(path);
  }
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw Error(ErrorKind::kDevice,
                fmt::format("cannot create '{}' ({})", path, std::strerror(errno)));
  }
  // Another process can have removed it before it was held here.
  struct stat own;
  const bool held = IsHeld(file_);
  if (held || fstat(file_, &own) != 0 || stat(path.c_str(), &status) != 0 ||
      own.st_ino != status.st_ino || own.st_dev != status.st_dev) {
    close(file_);
    SayTaken(path);
  }
}

FileClaim::~FileClaim() { close(file_); }

}  // namespace acltape::storage
