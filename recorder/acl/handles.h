// Streams, events and models by handle, with the ids that records hold in place of handles.
#pragma once

#include <cstdint>

#include "recorder/wire/records.h"

namespace acltape::acl_agent {

struct Thread;

// The id of a handle, 0 of none. One that was not seen before gets an id if `add`: a call that
// failed may have been given anything.
uint64_t IdOf(Thread& thread, wire::HandleKind kind, uint64_t handle, bool add = true);
// The id of the default stream of the thread's current device.
uint64_t DefaultStreamId(Thread& thread);
// Says that the open call created an object with this handle. A former object of the handle is
// gone.
uint64_t AddHandle(Thread& thread, wire::HandleKind kind, uint64_t handle, uint32_t flags);
// Says that the handle is another name of the default stream.
uint64_t AddDefaultStream(Thread& thread, uint64_t handle);
// Says that the capture which made the model has ended.
void EndCapture(Thread& thread, uint64_t model_id);
// Takes a handle out before its object is destroyed, as its address may be given out again at once.
// Returns its id, 0 when it was not known.
uint64_t TakeHandle(wire::HandleKind kind, uint64_t handle);
// Puts a handle back whose object could not be destroyed.
void PutHandle(wire::HandleKind kind, uint64_t handle, uint64_t id);
// Records that the object is gone, by the open call.
void EndHandle(Thread& thread, wire::HandleKind kind, uint64_t id);

// Captures that have begun and not ended, and streams that are bound to models, in the whole
// process.
int64_t ActiveCaptures();
void CountCapture(int change);
// The id of the model that `stream` is being captured into or bound to, 0: none. `stream` as the
// program gave it; asks the library.
uint64_t CaptureOf(Thread& thread, uint64_t stream);
// Task groups: work that is launched on a stream between the start and the end of an update is no
// work of the stream but a change of the group's model.
void AddGroup(uint64_t group, uint64_t model_id);
void BeginUpdate(uint64_t stream, uint64_t group);
void EndUpdate(uint64_t stream);
// The model that launches on `stream` change, 0: none.
uint64_t UpdatedModel(uint64_t stream);

// Like CaptureOf, but gives the handle of the model.
uint64_t ModelHandleOf(Thread& thread, uint64_t stream);

void ForgetHandleLocks();

}  // namespace acltape::acl_agent
