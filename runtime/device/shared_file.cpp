#include "runtime/device/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "runtime/device/device_heap.h"
#include "runtime/device/futex.h"
#include "runtime/device/standstill.h"

namespace acltape::device {
namespace {

constexpr uint64_t kSharedMagic = 0x646572616873614A;

// Parts of a packed name.
constexpr uint32_t kProcessBits = 22;
constexpr uint32_t kDescriptorBits = 20;
constexpr uint32_t kSerialBits = 22;

bool Fits(uint32_t value, uint32_t bits) { return value >> bits == 0; }
uint32_t Lowest(uint64_t value, uint32_t bits) {
  return static_cast<uint32_t>(value & ((uint64_t{1} << bits) - 1));
}

// Numbers of the files of this process. They begin at the time, so that those of an earlier process
// with the same number are others.
uint32_t NextSerial() {
  static std::atomic<uint32_t> next{static_cast<uint32_t>(NowNs() >> 10)};
  return Lowest(next.fetch_add(1), kSerialBits);
}

}  // namespace

// The first page of the file; the content follows.
struct SharedFile::Header {
  std::atomic<uint64_t> magic;
  uint64_t bytes;
  SharedName name;
  std::atomic<uint32_t> published;
  std::atomic<uint32_t> anyone;
  std::atomic<uint32_t> process_count;
  int32_t processes[kMostProcesses];
};

std::optional<uint64_t> SharedName::Packed() const {
  if (!Fits(process, kProcessBits) || !Fits(descriptor, kDescriptorBits)) return std::nullopt;
  return (uint64_t{process} << (kDescriptorBits + kSerialBits)) |
         (uint64_t{descriptor} << kSerialBits) | serial;
}

SharedName SharedName::FromPacked(uint64_t packed) {
  return {Lowest(packed >> (kDescriptorBits + kSerialBits), kProcessBits),
          Lowest(packed >> kSerialBits, kDescriptorBits), Lowest(packed, kSerialBits)};
}

SharedFile::SharedFile(int file, Header* header)
    : file_(file), header_(header), bytes_(header->bytes), name_(header->name) {}

std::unique_ptr<SharedFile> SharedFile::Create(size_t bytes) {
  static_assert(sizeof(Header) <= kPageBytes);
  const int file = memfd_create("acltape-shared", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* page = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(kPageBytes + bytes)) == 0) {
    page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (page == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  auto* header = static_cast<Header*>(page);
  header->bytes = bytes;
  header->name = {static_cast<uint32_t>(getpid()), static_cast<uint32_t>(file), NextSerial()};
  header->magic.store(kSharedMagic, std::memory_order_release);
  return std::unique_ptr<SharedFile>(new SharedFile(file, header));
}

std::unique_ptr<SharedFile> SharedFile::Open(const SharedName& name) {
  Standstill::MemoryIsShared();
  const std::string path =
      "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.descriptor);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return nullptr;
  // The descriptor may be another file by now, of any kind.
  const off_t size = lseek(file, 0, SEEK_END);
  void* page = MAP_FAILED;
  if (size > static_cast<off_t>(kPageBytes)) {
    page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (page != MAP_FAILED) {
    auto* header = static_cast<Header*>(page);
    if (header->magic.load(std::memory_order_acquire) == kSharedMagic && header->name == name &&
        header->bytes == static_cast<size_t>(size) - kPageBytes && header->published.load() != 0) {
      return std::unique_ptr<SharedFile>(new SharedFile(file, header));
    }
    munmap(page, kPageBytes);
  }
  close(file);
  return nullptr;
}

SharedFile::~SharedFile() {
  munmap(header_, kPageBytes);
  close(file_);
}

void SharedFile::Publish(bool anyone) {
  Standstill::MemoryIsShared();
  if (anyone) header_->anyone.store(1);
  header_->published.store(1);
}

void SharedFile::Withdraw() {
  header_->published.store(0);
  header_->anyone.store(0);
  header_->process_count.store(0);
}

bool SharedFile::published() const { return header_->published.load() != 0; }

bool SharedFile::Allow(const int32_t* processes, size_t count) {
  const uint32_t present = header_->process_count.load();
  if (count > kMostProcesses - present) return false;
  for (size_t i = 0; i < count; ++i) header_->processes[present + i] = processes[i];
  header_->process_count.store(present + static_cast<uint32_t>(count), std::memory_order_release);
  return true;
}

bool SharedFile::AdmitsUs() const {
  if (header_->anyone.load() != 0) return true;
  const int32_t us = getpid();
  const uint32_t count = header_->process_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    if (header_->processes[i] == us) return true;
  }
  return false;
}

char* SharedFile::Map(void* at, size_t offset, size_t bytes) const {
  const int flags = MAP_SHARED | (at != nullptr ? MAP_FIXED : 0);
  void* mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, file_,
                      static_cast<off_t>(kPageBytes + offset));
  return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
}

}  // namespace acltape::device
