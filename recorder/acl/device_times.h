// The times at which the device did the work of calls (acltape record --device-times).
//
// Right before and right after each call that puts work on a stream, the recorder records an event
// of its own on that stream. When the device has reached both, their times make a DeviceSpanRecord.
// The program waits for nothing: events are read where it has waited itself, and on the way.
//
// The meaning of the times. A stream works in order, so the first event is reached when the work
// before it has ended, and the second when the call's own work has. A stream that had nothing to do
// is ready at once, and the call's work can only begin when the host has launched it: then the span
// begins with the call, and launching is part of it. It is never too short.
//
// Events are never recorded on a stream that is being captured, that collects arguments of an
// update, or whose tasks belong to a built model: they would become part of the program's graph. So
// an executed graph has one span. Errors of the recorder's own calls are taken back from the
// program's thread and counted in the ledger (`device_time_missing`).
#pragma once

#include <cstdint>

#include "recorder/acl/thread.h"

namespace acltape::acl_agent {

// The work of one call, between its two events. Owned by device_times.cpp.
struct DeviceTask;

inline bool WantsDeviceTimes(const Thread& thread) { return thread.tape->arena->device_times != 0; }

// Records the first event on `stream`, as the program gave it. Null when the work of this call gets
// no times; EndDeviceTask takes that too.
DeviceTask* BeginDeviceTask(Thread& thread, uint64_t stream);
// Records the second event. `begin_tick`: when the call began. A call that did not succeed has no
// span.
void EndDeviceTask(Thread& thread, DeviceTask* task, uint64_t call_id, uint64_t begin_tick,
                   bool succeeded);

// Sends the times of what the device has done by now.
void RecordDeviceTimes(Thread& thread);
// The stream is gone, and with it what it had not done.
void EndStreamTimes(Thread& thread, uint64_t stream_id);
// Objects of a device are about to end: sends what is done, counts what is not, keeps no event.
void EndDeviceTimes(Thread& thread);

void ForgetDeviceTimeLocks();

}  // namespace acltape::acl_agent
