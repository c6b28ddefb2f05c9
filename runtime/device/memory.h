// Memory: "device" memory is host memory that is tracked, so that the direction of a copy, pinned
// and pageable host memory, and bounds can be checked (MEM-01 to MEM-11).
//
// Note [Memory that is gone]
// A block that the program frees rests for a while before the host gets it back: nobody else has
// its addresses, so each use of them is known to be a mistake. The same holds for reserved
// addresses that nothing is mapped to. Calls refuse such addresses with 107000. Tasks look again
// when they run, because memory may be freed between a launch, or a capture, and the run; then they
// fail.
//
// Note [Guards]
// With the setting `poison` the bytes after each block hold a pattern. When a kernel or a host
// function has run, the patterns are checked: one that changed fails that task, with a message
// that names the block and the call that allocated it. A kernel of another stream that ran at the
// same time may be the one that wrote.
//
// Note [Past a block]
// A block of aclrtMalloc is rounded up to a multiple of 32 bytes and has 32 more: these are the
// block's (MEM-02). After them, up to the end of the page of 2 MiB, the product reads whatever
// lies there without a failure. So a task that reads there, where no other block lies, goes on, and
// it is a finding (findings.h). A read of another block's bytes fails, and so does each write. With
// the setting `blocks = exact` or `poison`, and in a build for AddressSanitizer, a block ends with
// the bytes that the program asked for.
//
// Note [Memory in stream order]
// Memory of a pool is allocated and freed in the order of a stream (memory_pool.h), so calls and
// tasks do not see the same blocks. A call sees a block from the call that allocated it to the call
// that frees it. A task sees it from the moment at which a stream reached the allocation to the one
// at which a stream reached the free. So work of another stream that nothing orders after the
// allocation, or before the free, is found when it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "acl/acl.h"
#include "runtime/device/device.h"
#include "runtime/device/shared_file.h"
#include "runtime/kernel_memory.h"

namespace acltape::device {

enum class MemoryKind : uint8_t {
  kDevice,      // aclrtMalloc and relatives
  kPinned,      // aclrtMallocHost
  kRegistered,  // the program's own memory, registered with aclrtHostRegister
  kMapped,      // device memory mapped to a reserved address
  kPooled,      // device memory of a pool
};

struct MemoryBlock {
  char* begin;
  size_t bytes;      // usable
  size_t accounted;  // bytes of device memory
  MemoryKind kind;
  int32_t device;                // -1 for host memory
  const char* call = "";         // the function that allocated it
  uint64_t number = 0;           // counts all allocations of the process; 0: the block has no guard
  bool leaving = false;          // a stream frees it when it gets there (POOL-06)
  SharedFile* shared = nullptr;  // its bytes, when other processes may use them; the block owns it
};

// Allocates device memory, aligned to 512 bytes; null when the device or the host has no more. Then
// `why` says what the host has, if it is the host. `call` is the name of the function that the
// program called, and lives as long as the process.
void* AllocateDeviceMemory(Device& device, size_t bytes, size_t padding, const char* call,
                           std::string* why = nullptr);
void* AllocatePinnedMemory(size_t bytes, const char* call, std::string* why);

// Frees a block of this kind that begins at `address`; false when there is none.
bool FreeMemory(void* address, MemoryKind kind);
// POOL-06: from now on no call finds the block of device memory that begins at `address`, and
// FreeLeaving frees it; false when there is none.
bool BeginLeaving(void* address);
void FreeLeaving(void* address);

// False when the range overlaps a registered one, or a pinned one in part. A range inside of pinned
// memory is registered until its block is freed.
bool RegisterHostMemory(void* address, size_t bytes);
bool UnregisterHostMemory(void* address);

// Tracks memory that was obtained in another way (mapped ranges); Untrack takes it back.
void TrackMemory(const MemoryBlock& block);
std::optional<MemoryBlock> UntrackMemory(void* address);

// The number of the next allocation of the process (Note [Guards]).
uint64_t CountAllocation();

// Memory of pools (Note [Memory in stream order]). All addresses of a pool, which have no memory
// until a block is there; null when the host has no more. Calls see what TrackMemory was given.
char* ReservePoolAddresses(size_t bytes);
// The addresses rest as those of freed blocks do.
void ReleasePoolAddresses(char* begin, size_t bytes);
// A stream has reached the allocation of a block that TrackMemory was given, or its free.
void BeginInStreamOrder(MemoryBlock block, uint64_t number);
void EndInStreamOrder(const MemoryBlock& block);

// A part of a block whose bytes other processes may use (IPC-01).
struct SharedPart {
  SharedName name;
  size_t offset = 0;
  size_t bytes = 0;
};

// Lets other processes use `bytes` bytes at `address`, which are a part of a block of device
// memory: its bytes move into a shared file, at the same addresses. With `anyone` no list of
// processes is looked at.
aclError ShareMemory(void* address, size_t bytes, bool anyone, const char* call, SharedPart* part);
// Does something to the shared file of this process with that name; false when no block in use has
// it. Under the lock of the table.
bool ForShared(const SharedName& name, const std::function<void(SharedFile&)>& action);

// Records address ranges of aclrtReserveMemAddress. Within one, only mapped memory can be used.
void NoteReserved(void* address, size_t bytes);
void ForgetReserved(void* address);

bool IsReserved(const void* address);

// The block in use that `address` lies in; none for pageable host memory, and none for memory that
// was freed.
std::optional<MemoryBlock> FindMemory(const void* address);

// True when `address` is host memory that is not pinned: an asynchronous copy cannot use it.
bool IsPageable(const std::optional<MemoryBlock>& block);
bool IsDevice(const std::optional<MemoryBlock>& block);

// kLook: a read of a tool, not of the program (SoftLookOn).
enum class MemoryAccess : uint8_t { kRead, kLook, kWrite };

// How the copies read that this thread submits.
MemoryAccess ReadsOfThisThread();

// Success when `bytes` bytes at `address` can be used. Else 107000 and a message: the memory was
// freed, lies past the end of its block, is reserved without being mapped, or the number is no
// address at all. Foreign host memory passes: only touching it tells it from junk.
aclError CheckMemory(const void* address, size_t bytes, const char* call, const char* name,
                     MemoryAccess access = MemoryAccess::kWrite);

// The same for a task that is about to run; it fails with `code`. Fast for memory that this thread
// has found good since the last time that anything was freed.
aclError CheckTaskMemory(const void* address, size_t bytes, aclError code, const char* task,
                         const char* name, MemoryAccess access = MemoryAccess::kWrite);
aclError CheckTaskMemory(const SoftMemoryUse* uses, size_t count, aclError code, const char* task);

// Success when no guard has changed (Note [Guards]). Else 507015 and a message that says that
// `task` wrote past the end of a block. Each overrun is reported once.
aclError CheckGuards(const char* task);

}  // namespace acltape::device
