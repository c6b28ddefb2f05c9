#include "replayer/script/value_store.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "storage/error.h"

namespace acltape::replayer::script {
namespace {

std::string Folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

[[noreturn]] void Fail(const char* what) {
  throw Error(ErrorKind::kDevice, std::string("values of outputs cannot be ") + what +
                                      " a temporary file in " + Folder() + ": " +
                                      std::strerror(errno) +
                                      "; make room there, or set TMPDIR to another folder");
}

}  // namespace

ValueStore::~ValueStore() {
  if (file_ >= 0) close(file_);
}

void ValueStore::OpenFile() {
  std::string name = Folder() + "/acltape-values-XXXXXX";
  file_ = mkstemp(name.data());
  if (file_ < 0) Fail("written to");
  unlink(name.c_str());  // the system removes the file when the process ends
}

void ValueStore::Keep(const std::string& digest, const std::vector<uint8_t>& bytes) {
  const auto [place, created] = places_.try_emplace(digest);
  if (!created) return;
  const auto size = static_cast<int64_t>(bytes.size());
  if (in_memory_ + size <= memory_limit_) {
    place->second = {std::make_shared<const std::vector<uint8_t>>(bytes), 0, size};
    in_memory_ += size;
    return;
  }
  place->second = {nullptr, in_file_, size};
  try {
    if (file_ < 0) OpenFile();
    for (int64_t done = 0; done < size;) {
      const ssize_t written =
          pwrite(file_, bytes.data() + done, static_cast<size_t>(size - done), in_file_ + done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) Fail("written to");
      done += written;
    }
  } catch (...) {
    places_.erase(place);
    throw;
  }
  in_file_ += size;
}

Bytes ValueStore::Get(const std::string& digest) const {
  const auto found = places_.find(digest);
  if (found == places_.end()) return nullptr;
  const Place& place = found->second;
  if (place.bytes != nullptr) return place.bytes;
  auto bytes = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(place.size));
  for (int64_t done = 0; done < place.size;) {
    const ssize_t got = pread(file_, bytes->data() + done, static_cast<size_t>(place.size - done),
                              place.offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) Fail("read from");
    done += got;
  }
  return bytes;
}

}  // namespace acltape::replayer::script
