#include "storage/plain_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace acltape::storage {
namespace {

// A pipe without a writer does not hold up this opening.
int Open(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

// Why the opened file is not read; empty if it can be.
std::string Refusal(int file, int64_t most) {
  struct stat status;
  if (fstat(file, &status) != 0) return fmt::format("cannot be read ({})", std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return "is a folder";
  if (!S_ISREG(status.st_mode)) return "is no plain file (a pipe, a socket or a device)";
  if (status.st_size > most) {
    return fmt::format("has {} bytes, and at most {} are read", status.st_size, most);
  }
  return "";
}

// The file up to `most` bytes. False if the system refuses.
bool ReadUpTo(int file, size_t most, std::string& text) {
  while (text.size() < most) {
    char piece[1 << 16];
    const ssize_t bytes = read(file, piece, std::min(sizeof(piece), most - text.size()));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return false;
    if (bytes == 0) break;
    text.append(piece, static_cast<size_t>(bytes));
  }
  return true;
}

}  // namespace

std::optional<std::string> ReadPlainFile(const std::string& path, std::string* why, int64_t most) {
  std::string ignored;
  std::string& reason = why != nullptr ? *why : ignored;
  const int file = Open(path);
  if (file < 0) {
    reason = fmt::format("cannot be read ({})", std::strerror(errno));
    return std::nullopt;
  }
  std::string text;
  reason = Refusal(file, most);
  if (reason.empty() && !ReadUpTo(file, static_cast<size_t>(most), text)) {
    reason = fmt::format("cannot be read ({})", std::strerror(errno));
  }
  close(file);
  if (!reason.empty()) return std::nullopt;
  return text;
}

std::string PlainHead(const std::string& path, size_t bytes) {
  const int file = Open(path);
  if (file < 0) return "";
  struct stat status;
  std::string text;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) ReadUpTo(file, bytes, text);
  close(file);
  return text;
}

}  // namespace acltape::storage
