// Memory by which processes of one machine share bytes (IPC-01 to IPC-07). It is a file without a
// name. Other processes open it by the number of its process and of its descriptor, as long as that
// process lives and has it. Nothing is left behind when a process is killed: the bytes live until
// the last process that maps them has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace acltape::device {

// The content of a key or a shareable handle: which file of which process. The serial number tells
// a file from a later one with the same descriptor.
struct SharedName {
  uint32_t process = 0;
  uint32_t descriptor = 0;
  uint32_t serial = 0;

  bool operator==(const SharedName&) const = default;

  // All of it in one number; none when a part is too large for that.
  std::optional<uint64_t> Packed() const;
  static SharedName FromPacked(uint64_t packed);
};

class SharedFile {
 public:
  // Most processes that a file can be opened to by name.
  static constexpr size_t kMostProcesses = 512;

  // A file of this process with `bytes` bytes of content, all 0; null when the system has no
  // memory for it. Nobody can open it before Publish.
  static std::unique_ptr<SharedFile> Create(size_t bytes);
  // The published file of this name; null when there is none any more.
  static std::unique_ptr<SharedFile> Open(const SharedName& name);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  // Lets processes open the file: those of Allow, or with `anyone` every process.
  void Publish(bool anyone);
  void Withdraw();
  bool published() const;
  // False when there is no room for so many.
  bool Allow(const int32_t* processes, size_t count);
  // True when this process may use what it has opened.
  bool AdmitsUs() const;

  // Maps a part of the content, which begins at a multiple of a page. With `at` it takes the place
  // of what is mapped there. Null when the host cannot.
  char* Map(void* at, size_t offset, size_t bytes) const;
  size_t bytes() const { return bytes_; }
  const SharedName& name() const { return name_; }

 private:
  struct Header;
  SharedFile(int file, Header* header);

  const int file_;
  Header* const header_;
  size_t bytes_;
  SharedName name_;
};

}  // namespace acltape::device
