#include "storage/side_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "storage/error.h"

namespace acltape::storage {
namespace {

// SQLite puts its files beside the file itself, not beside a link to it.
std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real != nullptr ? std::string(real.get()) : path;
}

// The end of a journal that names a super-journal: its name, then the length of the name and a
// checksum of 4 bytes each, then 8 fixed bytes (https://sqlite.org/fileformat.html#super_journal).
bool NamesSuperJournal(const std::string& journal) {
  constexpr unsigned char kMagic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  const int file = open(journal.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return false;
  unsigned char end[16] = {};
  const off_t size = lseek(file, 0, SEEK_END);
  const bool read_end = size > static_cast<off_t>(sizeof(end)) &&
                        pread(file, end, sizeof(end), size - static_cast<off_t>(sizeof(end))) ==
                            static_cast<ssize_t>(sizeof(end));
  close(file);
  if (!read_end || std::memcmp(end + 8, kMagic, sizeof(kMagic)) != 0) return false;
  const uint32_t length =
      uint32_t{end[0]} << 24 | uint32_t{end[1]} << 16 | uint32_t{end[2]} << 8 | uint32_t{end[3]};
  return length != 0;
}

[[noreturn]] void Refuse(const std::string& trace, const std::string& side, const char* what) {
  throw Error(ErrorKind::kTrace,
              fmt::format("'{}' is not opened: '{}' beside it {}, and no acltape left it so; move "
                          "that file away, and the trace is read as it is without it",
                          trace, side, what));
}

}  // namespace

void JudgeSideFiles(const std::string& trace) {
  const std::string real = RealPath(trace);
  for (const char* suffix : kSqliteSuffixes) {
    const std::string side = real + suffix;
    struct stat status;
    if (lstat(side.c_str(), &status) != 0) continue;
    if (S_ISLNK(status.st_mode)) Refuse(trace, side, "is a link to another file");
    if (!S_ISREG(status.st_mode)) Refuse(trace, side, "is no plain file");
    if (status.st_nlink > 1) Refuse(trace, side, "is another file too (a hard link)");
  }
  const std::string journal = real + "-journal";
  if (NamesSuperJournal(journal)) {
    Refuse(trace, journal, "names another file, which SQLite would remove");
  }
}

}  // namespace acltape::storage
