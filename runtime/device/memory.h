// Memory: "device" memory is host memory that is tracked, so that the direction of a copy, pinned
// and pageable host memory, and bounds can be told (MEM-01 to MEM-11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/device/device.h"

namespace acltape::device {

enum class MemoryKind : uint8_t {
  kDevice,      // aclrtMalloc and relatives
  kPinned,      // aclrtMallocHost
  kRegistered,  // the program's own memory, registered with aclrtHostRegister
  kMapped,      // device memory mapped to a reserved address
};

struct MemoryBlock {
  char* begin;
  size_t bytes;      // usable
  size_t accounted;  // of the device's memory
  MemoryKind kind;
  int32_t device;  // -1 for host memory
};

// Allocates device memory, aligned to 64 bytes; null when the device or the host has no more.
void* AllocateDeviceMemory(Device& device, size_t bytes, size_t padding);
void* AllocatePinnedMemory(size_t bytes);

// Frees a block of this kind that begins at `address`; false when there is none.
bool FreeMemory(void* address, MemoryKind kind);

// False when the range overlaps a registered or pinned one.
bool RegisterHostMemory(void* address, size_t bytes);
bool UnregisterHostMemory(void* address);

// Tracks memory that was obtained in another way (mapped ranges); Untrack takes it back.
void TrackMemory(const MemoryBlock& block);
std::optional<MemoryBlock> UntrackMemory(void* address);

// The block that `address` lies in; none for pageable host memory.
std::optional<MemoryBlock> FindMemory(const void* address);

// True when `address` is host memory that is not pinned: an asynchronous copy cannot use it.
bool IsPageable(const std::optional<MemoryBlock>& block);
bool IsDevice(const std::optional<MemoryBlock>& block);

}  // namespace acltape::device
