// One device, opened through the public ACL interface: the library, device 0, one non-default
// stream, and memory with an owner. The replayer does everything on a device through this class.
//
// Every failing call becomes a CallFailed, an Error of kind kDevice that names the call, its code
// and the device's own message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "acl/loader/library.h"
#include "replayer/device/device_work.h"
#include "storage/error.h"
#include "storage/reader.h"

namespace acltape::replayer {

class Device;

// Device memory or pinned host memory. The destructor frees it after the stream has drained.
class Block {
 public:
  enum class Kind { kDevice, kPinned };
  Block() = default;
  Block(Device& device, Kind kind, size_t bytes);
  ~Block();
  Block(Block&& other) noexcept { *this = std::move(other); }
  Block& operator=(Block&& other) noexcept;

  uint8_t* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Gives all bytes this value. The host waits for it, but for no earlier work.
  void Fill(int value) const;

 private:
  Device* device_ = nullptr;
  Kind kind_ = Kind::kDevice;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

// An event. With kTimedEvent it has a time stamp.
class Event {
 public:
  // `maker` is as in DeviceWork::CreateEvent.
  explicit Event(const Device& device, uint32_t flags = kTimedEvent, std::string_view maker = "");
  void Record() const;  // on the device's own stream
  void Record(aclrtStream stream) const;
  // Makes `stream` wait for the latest record: work that is issued to it from now on runs after
  // that record.
  void MakeWait(aclrtStream stream) const;
  // Returns the time between two events. The device must have reached both.
  double NanosecondsSince(const Event& earlier) const;
  void Wait() const;
  aclrtEvent get() const { return event_.get(); }
  void Release() { event_.Release(); }  // it is destroyed already

 private:
  const Device* device_;
  OwnedEvent event_;
};

class Device {
 public:
  // `library` is a folder, a file, or empty for the soft device. With `saturates` results that no
  // number can hold become the greatest one on its streams (aclrtSetDeviceSatMode).
  explicit Device(const std::string& library, bool saturates = false);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const acl::Library& library() const { return *library_; }
  const acl::Api& api() const { return library_->api(); }
  const DeviceWork& work() const { return work_; }
  // The main stream. All work runs on it unless it is put on a side stream.
  aclrtStream stream() const { return stream_.get(); }
  // Returns a side stream by number. It is created at the first use.
  aclrtStream SideStream(size_t index);
  std::string description() const;

  // Throws CallFailed unless `code` is 0. `call` names the interface function.
  void Check(int code, const char* call) const;

  // Asynchronous copies on the stream. Host memory must be pinned.
  void Upload(void* device, const void* pinned, size_t bytes) const {
    Upload(device, pinned, bytes, stream());
  }
  void Upload(void* device, const void* pinned, size_t bytes, aclrtStream stream) const;
  void Download(void* pinned, const void* device, size_t bytes) const;
  void Copy(void* to, const void* from, size_t bytes) const { Copy(to, from, bytes, stream()); }
  void Copy(void* to, const void* from, size_t bytes, aclrtStream stream) const;
  // Waits for the stream.
  void Synchronize() const { work_.WaitForStream(stream()).Check(); }

 private:
  std::unique_ptr<acl::Library> library_;
  DeviceWork work_;
  OwnedStream stream_;
  std::vector<OwnedStream> side_streams_;
};

// Returns the number of threads that the trace names in its table meta, as text; empty when it
// names none. `key` is torch_threads or blas_threads. Throws Error kTrace when that is no number
// from 1 to kMostRecordedThreads, because so many threads are started.
constexpr int64_t kMostRecordedThreads = 1024;
std::string RecordedThreads(const storage::Reader& trace, const std::string& key);

// Returns the version of the soft device's generator of random numbers that the program was
// recorded with, as text. The row soft_device of the table meta names it; a trace without it is
// older than the second version, so it is "1". Throws Error kTrace when the row is none of a soft
// device.
std::string RecordedGenerator(const storage::Reader& trace);

// True if the recorded program chose that results saturate. The streams of a replay then all do,
// also those that the program had created before.
bool RecordedSaturation(const storage::Reader& trace);

// A replay has memory of its own, where nothing lies past a block. So the soft device refuses to
// read there (rule MEM-13), whatever it did for the program.
inline constexpr const char* kBlocks = "ACLTAPE_SOFT_BLOCKS";
inline constexpr const char* kExactBlocks = "exact";

// Gives a device that computes on the CPU as many threads as the recorded process had, so that sums
// are split in the same way, and the generator that it was recorded with, so that random operators
// draw the same numbers. Its blocks are exact. Variables that the user has set stay. Must be called
// before the first Device of the process.
void AdoptRecordedSettings(const storage::Reader& trace);

}  // namespace acltape::replayer
