// Contents of memory, as --payload asks for them.
//
// Host memory is read at once. Device memory is copied after the call on the call's own stream,
// into pinned memory of the recorder's, and recorded when the copy has been done: the program's
// order stays as it is, and nothing waits but for room. Nothing is copied on a stream that is being
// captured.
#pragma once

#include <cstdint>

#include "recorder/acl/objects.h"
#include "recorder/wire/arena.h"

namespace acltape::acl_agent {

struct Thread;

bool WantsInputs(const Thread& thread);   // inputs, all
bool WantsOutputs(const Thread& thread);  // digest, all
bool WantsAnything(const Thread& thread);

// Keeps the bytes of host memory that a copy reads (before the call) or has written (after it).
void KeepHost(Thread& thread, uint64_t call_id, int32_t position, bool after, uint64_t address,
              uint64_t bytes);
// Keeps rows of `width` bytes, `pitch` apart, as one content.
void KeepHostPlane(Thread& thread, uint64_t call_id, int32_t position, bool after, uint64_t address,
                   uint64_t pitch, uint64_t width, uint64_t height);
// Keeps those of the device bytes [first, end) of a buffer that are read and that no recorded call
// wrote.
void KeepUnknown(Thread& thread, uint64_t call_id, uint64_t stream, uint64_t buffer_id,
                 uint64_t base, uint64_t first, uint64_t end);
// Under the policies digest and all, keeps what the call on `stream` has written: a copy of [first,
// end) of the buffer at `base` follows the call. `encoding` is the tensor as the call's signature
// has it, tag included; without one the range is told as bytes.
void KeepWritten(Thread& thread, uint64_t call_id, uint64_t stream, int32_t position,
                 uint64_t buffer_id, uint64_t base, uint64_t first, uint64_t end,
                 const std::byte* encoding, uint32_t encoding_bytes);
// Like KeepWritten, but under every policy, because a replay cannot compute random values again.
void KeepRandom(Thread& thread, uint64_t call_id, uint64_t stream, int32_t position,
                uint64_t buffer_id, uint64_t base, uint64_t first, uint64_t end,
                const std::byte* encoding, uint32_t encoding_bytes);

// A use of memory by the calls of a capture. They are noted because each execution of the graph
// uses the same memory.
enum class CapturedUse : uint8_t { kHostRead, kDeviceRead, kWrite };
void NoteCaptured(uint64_t model_id, uint64_t buffer_id, uint64_t base, uint64_t first,
                  uint64_t end, CapturedUse use);
void KeepBeforeExecution(Thread& thread, uint64_t call_id, uint64_t model_id, uint64_t stream);
void KeepAfterExecution(Thread& thread, uint64_t call_id, uint64_t model_id, uint64_t stream);
void ForgetModel(uint64_t model_id);

// Sends the contents of copies that have been done. With `all` it waits for every copy first.
void RecordFinishedCopies(Thread& thread, bool all);

void ForgetValueLocks();

}  // namespace acltape::acl_agent
