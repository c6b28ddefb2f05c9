#include "storage/reserved_room.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace acltape::storage {
namespace {

constexpr int64_t kLeastBytes = int64_t{64} << 10;
constexpr int64_t kPart = int64_t{1} << 20;         // part that is given back at a time
constexpr int64_t kLastWords = int64_t{512} << 10;  // for the ledger, when the rest was not enough

// A file of SQLite, followed in memory by the file of the layer below.
struct RoomFile {
  sqlite3_file base;
  ReservedRoom* room;
};

sqlite3_file* Below(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<RoomFile*>(file) + 1);
}
const sqlite3_io_methods* MethodsBelow(sqlite3_file* file) { return Below(file)->pMethods; }

bool IsFull(int code) {
  if ((code & 0xff) == SQLITE_FULL) return true;
  const bool write = code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE;
  return write && (errno == ENOSPC || errno == EDQUOT);
}

// Calls the layer below until it succeeds, fails otherwise, or no room is left.
template <typename Call>
int WithRoom(sqlite3_file* file, const Call& call) {
  for (;;) {
    const int code = call();
    if (!IsFull(code) || !reinterpret_cast<RoomFile*>(file)->room->GiveBack()) return code;
  }
}

int Close(sqlite3_file* file) { return MethodsBelow(file)->xClose(Below(file)); }
int Read(sqlite3_file* file, void* into, int bytes, sqlite3_int64 offset) {
  return MethodsBelow(file)->xRead(Below(file), into, bytes, offset);
}
int Write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  return WithRoom(file,
                  [=] { return MethodsBelow(file)->xWrite(Below(file), from, bytes, offset); });
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return MethodsBelow(file)->xTruncate(Below(file), size);
}
int Sync(sqlite3_file* file, int flags) { return MethodsBelow(file)->xSync(Below(file), flags); }
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return MethodsBelow(file)->xFileSize(Below(file), size);
}
int Lock(sqlite3_file* file, int level) { return MethodsBelow(file)->xLock(Below(file), level); }
int Unlock(sqlite3_file* file, int level) {
  return MethodsBelow(file)->xUnlock(Below(file), level);
}
int CheckReservedLock(sqlite3_file* file, int* held) {
  return MethodsBelow(file)->xCheckReservedLock(Below(file), held);
}
int FileControl(sqlite3_file* file, int request, void* argument) {
  return MethodsBelow(file)->xFileControl(Below(file), request, argument);
}
int SectorSize(sqlite3_file* file) { return MethodsBelow(file)->xSectorSize(Below(file)); }
int DeviceCharacteristics(sqlite3_file* file) {
  return MethodsBelow(file)->xDeviceCharacteristics(Below(file));
}
int ShmMap(sqlite3_file* file, int region, int bytes, int extend, void volatile** memory) {
  return WithRoom(file, [=] {
    return MethodsBelow(file)->xShmMap(Below(file), region, bytes, extend, memory);
  });
}
int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  return MethodsBelow(file)->xShmLock(Below(file), offset, count, flags);
}
void ShmBarrier(sqlite3_file* file) { MethodsBelow(file)->xShmBarrier(Below(file)); }
int ShmUnmap(sqlite3_file* file, int remove) {
  return MethodsBelow(file)->xShmUnmap(Below(file), remove);
}

// Version 2: without mapped reading, which would write around the layer.
constexpr sqlite3_io_methods kMethods = {2,
                                         Close,
                                         Read,
                                         Write,
                                         Truncate,
                                         Sync,
                                         FileSize,
                                         Lock,
                                         Unlock,
                                         CheckReservedLock,
                                         FileControl,
                                         SectorSize,
                                         DeviceCharacteristics,
                                         ShmMap,
                                         ShmLock,
                                         ShmBarrier,
                                         ShmUnmap,
                                         nullptr,
                                         nullptr};

// Null when SQLite has no memory to begin with.
sqlite3_vfs* Default() { return sqlite3_vfs_find(nullptr); }

int Open(sqlite3_vfs* layer, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  auto* own = reinterpret_cast<RoomFile*>(file);
  own->base.pMethods = nullptr;
  own->room = static_cast<ReservedRoom*>(layer->pAppData);
  const int code = Default()->xOpen(Default(), name, Below(file), flags, flags_out);
  // SQLite closes a file that has methods, even one that could not be opened.
  if (Below(file)->pMethods != nullptr) own->base.pMethods = &kMethods;
  return code;
}

}  // namespace

ReservedRoom::ReservedRoom(const std::string& path, int64_t bytes) {
  name_ = fmt::format("acltape-room-{}", static_cast<const void*>(this));
  const std::string name = path + ".reserve";
  if (Default() == nullptr) throw std::bad_alloc();
  layer_ = *Default();
  layer_.pNext = nullptr;
  layer_.szOsFile = static_cast<int>(sizeof(RoomFile)) + Default()->szOsFile;
  layer_.zName = name_.c_str();
  layer_.pAppData = this;
  layer_.xOpen = Open;
  if (sqlite3_vfs_register(&layer_, 0) != SQLITE_OK) throw std::bad_alloc();

  // From here on nothing is thrown, because the layer must be taken out again.
  file_ = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) return;
  unlink(name.c_str());
  struct statvfs disk;
  if (fstatvfs(file_, &disk) == 0) {
    bytes = std::min(bytes, static_cast<int64_t>(disk.f_bavail * disk.f_frsize / 2));
  }
  for (; bytes >= kLeastBytes && bytes_ == 0; bytes /= 2) {
    if (posix_fallocate(file_, 0, bytes) == 0) bytes_ = left_ = bytes;
    if (bytes_ == 0) static_cast<void>(!ftruncate(file_, 0));
  }
}

ReservedRoom::~ReservedRoom() {
  if (file_ >= 0) close(file_);
  sqlite3_vfs_unregister(&layer_);
}

bool ReservedRoom::GiveBack() {
  in_use_ = true;
  const int64_t last_words = std::min(kLastWords, bytes_ / 4);
  if (held_ || left_ <= last_words) return false;
  left_ = std::max(left_ > 2 * kPart ? left_ - kPart : left_ / 2, last_words);
  return ftruncate(file_, left_) == 0;
}

void ReservedRoom::GiveBackAll() {
  if (left_ > 0) static_cast<void>(!ftruncate(file_, 0));
  left_ = 0;
}

}  // namespace acltape::storage
