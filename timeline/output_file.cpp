#include "timeline/output_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "storage/error.h"

namespace acltape::timeline {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;

}  // namespace

struct OutputFile::Target {
  Target(const std::string& path, const storage::OutputRules& rules) : file(path, rules) {}

  storage::NewFile file;
  std::FILE* plain = nullptr;  // one of the two is open
  gzFile packed = nullptr;
  std::string waiting;
  int64_t bytes = 0;

  [[noreturn]] void Fail(const char* doing) const {
    throw Error(
        ErrorKind::kDevice,
        fmt::format("cannot {} '{}' ({}); choose another place with -o.", doing, file.path(),
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

OutputFile::OutputFile(const std::string& path, const storage::OutputRules& rules)
    : target_(std::make_unique<Target>(path, rules)) {
  errno = 0;
  const char* partial = target_->file.partial().c_str();
  if (path.ends_with(".gz")) {
    target_->packed = gzopen(partial, "wb6");
  } else {
    target_->plain = std::fopen(partial, "wb");
  }
  if (target_->packed == nullptr && target_->plain == nullptr) target_->Fail("create");
}

OutputFile::~OutputFile() { target_->Close(); }

void OutputFile::Write(std::string_view bytes) {
  target_->waiting += bytes;
  target_->bytes += static_cast<int64_t>(bytes.size());
  if (target_->waiting.size() >= kFlushBytes) target_->Flush();
}

void OutputFile::Finish() {
  target_->Flush();
  if (!target_->Close()) target_->Fail("write");
  target_->file.Accept();
}

int64_t OutputFile::bytes() const { return target_->bytes; }

}  // namespace acltape::timeline
