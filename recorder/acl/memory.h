// The memory blocks that the program has allocated through the interface, by address; and which of
// their bytes hold contents that the recording explains.
#pragma once

#include <cstddef>
#include <cstdint>

namespace acltape::acl_agent {

struct Thread;

struct Block {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t buffer_id = 0;
  uint32_t device = 0;  // as in wire::BufferBirthRecord: 0 pinned host memory, n + 1 device n
};

// Any thread. The block that holds `address`; one past the end does not count.
bool FindBlock(uint64_t address, Block* block);

// The devices on which the program has memory, as bits: bit n is device n. Later ones than device
// 63 are left out.
uint64_t DevicesWithMemory();

// Adds a block and records its birth in the open call. The birth of a block of a muted call is
// recorded when RecordFirstUse asks for it. A block that was there at one of its addresses is gone:
// its end was not seen.
void AddBlock(Thread& thread, uint64_t begin, uint64_t bytes, uint32_t device);
// A call of an open recording names the bytes of a block up to `end`, which is past those that
// the program asked for. A device has 32 bytes more, and reads on to the end of a page of 2 MiB
// where no other block lies (rule MEM-13). Such bytes become the block's, in the trace too.
void StretchBlock(Thread& thread, uint64_t end, Block* block);
// Takes a block out, before it is freed: its address may be given out again at once.
bool TakeBlock(uint64_t begin, Block* block);
// Puts a block back that could not be freed.
void PutBlock(const Block& block);
// Records the end of a taken block.
void RecordDeath(Thread& thread, const Block& block);
// A record is about to name the buffer: records its birth unless that was done.
void RecordFirstUse(Thread& thread, uint64_t buffer_id);

// Marks bytes [begin, end) of a buffer as known: a recorded call wrote them, or they have been
// kept.
void MarkKnown(uint64_t buffer_id, uint64_t begin, uint64_t end);
// From now on nothing of the block at `address` is known, because other processes write to it.
void MarkShared(uint64_t address);
// True when every byte of [begin, end) is marked as known. An empty range is known.
bool IsKnown(uint64_t buffer_id, uint64_t begin, uint64_t end);
// A number that changes when blocks come or go and when bytes stop being known. While it is the
// same, what is known stays known.
uint64_t MemoryGeneration();
// A window opens: what was written while recording was closed is not known. Windows are numbered
// upwards; a thread that comes later to the same one changes nothing.
void ForgetContents(uint32_t window);

void ForgetMemoryLocks();

}  // namespace acltape::acl_agent
