// Copies of device memory that are on their way.
//
// Each copy follows the call whose effect it shows, on that call's stream, into pinned memory of
// the recorder's. An event after it says when it has been done. Their contents are recorded in the
// order in which the copies were made. The pinned memory is bounded: when it is full, the oldest
// copy is waited for.
#pragma once

#include <cstdint>

#include "recorder/acl/tensor_bytes.h"

namespace acltape::acl_agent {

struct Thread;

// Starts a copy of content.bytes bytes at `address` after the work of `stream`.
void CopyAfterWork(Thread& thread, const Content& content, uint64_t address, uint64_t stream);

// Waits for the copies that were made for a call. For a call whose work is on no stream of the
// program's: the copies are on the default stream then, which later work does not wait for.
void WaitForCopiesOf(Thread& thread, uint64_t call_id);

// Sends a content and its snapshot; `data` is packed. Defined in values.cpp.
void RecordContent(Thread& thread, const Content& content, const void* data);

void ForgetPendingLocks();

}  // namespace acltape::acl_agent
