#include "timeline/output_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "meaning/options.h"
#include "storage/error.h"

namespace acltape::timeline {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;

}  // namespace

struct OutputFile::Target {
  std::string path;
  std::string part;
  std::FILE* plain = nullptr;  // one of the two is open
  gzFile packed = nullptr;
  std::string waiting;
  int64_t bytes = 0;

  [[noreturn]] void Fail(const char* doing) const {
    throw Error(ErrorKind::kDevice,
                fmt::format("cannot {} '{}' ({}); choose another place with -o.", doing, path,
                            errno == 0 ? "the compressor failed" : std::strerror(errno)));
  }
  void Flush() {
    errno = 0;
    const bool written =
        packed != nullptr ? waiting.empty() || gzwrite(packed, waiting.data(),
                                                       static_cast<unsigned>(waiting.size())) > 0
                          : std::fwrite(waiting.data(), 1, waiting.size(), plain) == waiting.size();
    if (!written) Fail("write");
    waiting.clear();
  }
  // False when bytes that were buffered could not be written.
  bool Close() {
    errno = 0;
    const bool closed = (packed == nullptr || gzclose(packed) == Z_OK) &&
                        (plain == nullptr || std::fclose(plain) == 0);
    packed = nullptr;
    plain = nullptr;
    return closed;
  }
};

OutputFile::OutputFile(const std::string& path, bool overwrite)
    : target_(std::make_unique<Target>()) {
  std::error_code ignored;
  target_->path = path;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorKind::kUsage, fmt::format("'{}' is a folder; name a file with -o.", path));
  }
  if (!overwrite && std::filesystem::exists(path, ignored)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' exists; name another file with -o or add @force."_cli, path));
  }
  // A device or a pipe cannot be replaced by a file: it is written as it stands.
  const bool special =
      std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
  target_->part = special ? path : path + ".part";
  errno = 0;
  if (path.ends_with(".gz")) {
    target_->packed = gzopen(target_->part.c_str(), "wb6");
  } else {
    target_->plain = std::fopen(target_->part.c_str(), "wb");
  }
  if (target_->packed == nullptr && target_->plain == nullptr) target_->Fail("create");
}

OutputFile::~OutputFile() {
  if (target_->plain == nullptr && target_->packed == nullptr) return;
  target_->Close();
  std::error_code ignored;
  if (target_->part != target_->path) std::filesystem::remove(target_->part, ignored);
}

void OutputFile::Write(std::string_view bytes) {
  target_->waiting += bytes;
  target_->bytes += static_cast<int64_t>(bytes.size());
  if (target_->waiting.size() >= kFlushBytes) target_->Flush();
}

void OutputFile::Finish() {
  target_->Flush();
  std::error_code error;
  const bool closed = target_->Close();
  if (closed && target_->part != target_->path) {
    std::filesystem::rename(target_->part, target_->path, error);
  }
  if (closed && !error) return;
  if (error) errno = error.value();
  const int reason = errno;
  if (target_->part != target_->path) std::filesystem::remove(target_->part, error);
  errno = reason;
  target_->Fail("write");
}

int64_t OutputFile::bytes() const { return target_->bytes; }

}  // namespace acltape::timeline
