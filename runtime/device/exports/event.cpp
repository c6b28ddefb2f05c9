// Events (section 6 of the rules).
#include "runtime/device/event.h"

#include <atomic>

#include "runtime/device/call.h"
#include "runtime/device/futex.h"
#include "runtime/device/ipc_cell.h"
#include "runtime/device/memory_pool.h"

using namespace acltape::device;

namespace {

constexpr uint32_t kLegacyFlag = 0x4;
constexpr uint32_t kCombinableFlags =
    ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | kLegacyFlag | ACL_EVENT_TIME_LINE;
// EVT-01.
constexpr uint32_t kPlainFlags =
    ACL_EVENT_CAPTURE_STREAM_PROGRESS | kLegacyFlag | ACL_EVENT_TIME_LINE;

std::atomic<uint32_t> wait_timeout_s{0};  // EVT-18, of the process

// Gives the event out.
aclError Register(aclrtEvent* event, std::unique_ptr<Event> created, bool number_now,
                  const char* call) {
  if (created->handle() == nullptr) {
    return Fail(ACL_ERROR_RT_NO_EVENT_RESOURCE, "%s: no handle left for an event", call);
  }
  if (number_now) ACLTAPE_RETURN_IF_FAILED(created->TakeNumber(call));
  Context& context = created->context();
  if (!context.Enter(context.events, created.get())) return ContextIsReleased(call);
  *event = created.release()->handle();
  return ACL_SUCCESS;
}

aclError Create(aclrtEvent* event, EventType type, uint32_t flags, bool number_now,
                const char* call) {
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  return Register(event, std::make_unique<Event>(*context, type, flags), number_now, call);
}

// Takes the cell in every case.
aclError CreateIpc(aclrtEvent* event, IpcCell* cell, const char* call) {
  if (cell == nullptr) {
    return Fail(ACL_ERROR_RT_NO_EVENT_RESOURCE, "%s: the system has no shared memory left", call);
  }
  Context* context = CurrentContext(call);
  if (context == nullptr) {
    cell->Release();
    return ACL_ERROR_RT_CONTEXT_NULL;
  }
  return Register(event, std::make_unique<Event>(*context, cell), false, call);
}

bool Combinable(uint32_t flags) { return flags != 0 && (flags & ~kCombinableFlags) == 0; }

aclError RefuseFlags(uint32_t flags, const char* call) {
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: 0x%x is not a valid combination of event flags",
              call, flags);
}

// EVT-22, and the calls that external events do not have.
aclError CheckHostCall(const Event& event, const char* call) {
  if (event.graph.load(std::memory_order_acquire) != nullptr) {
    return Fail(ACL_ERROR_RT_EVENT_CAPTURED,
                "%s: the event belongs to a capture, in which nothing has run; call it after the "
                "capture has ended",
                call);
  }
  if (event.type() == EventType::kExternal) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: external events do not have this call",
                call);
  }
  return ACL_SUCCESS;
}

// EVT-11: the deprecated queries know old events only.
aclError CheckOldEvent(const Event& event, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckHostCall(event, call));
  if (event.type() == EventType::kOld) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: use aclrtQueryEventStatus for this event",
              call);
}

bool NewestDone(const Event& event, bool if_never_recorded) {
  EventPoint* point = event.NewestPoint();
  if (point == nullptr) return if_never_recorded;
  bool done = point->done();
  point->Release();
  return done;
}

aclError SynchronizeEvent(aclrtEvent handle, int64_t timeout_ns, const char* call) {
  Event* event = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(handle, call, &event));
  ACLTAPE_RETURN_IF_FAILED(CheckHostCall(*event, call));
  if (event->recorded_in_model.load()) {  // EVT-12
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the event was recorded in a stream that is bound to a model; synchronise the "
                "stream that executes the model",
                call);
  }
  int64_t deadline = timeout_ns < 0 ? 0 : NowNs() + timeout_ns;
  bool done = false;
  if (event->type() == EventType::kIpc) {
    done = event->ipc_cell()->Wait(deadline);
  } else {
    EventPoint* point = event->NewestPoint();
    if (point == nullptr) return ACL_SUCCESS;  // EVT-12
    done = point->Wait(deadline);
    point->Release();
  }
  if (!done && !Exiting()) {
    return Fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "%s: the record was not reached in time", call);
  }
  // In stop mode a failed task shows here too (STR-15).
  if (aclError refusal = event->context().Refusal(); refusal != ACL_SUCCESS) {
    return Fail(refusal, "%s: a task of the context failed", call);
  }
  TrimPools();
  return ACL_SUCCESS;
}

// EVT-14, EVT-15.
aclError RecordedTime(aclrtEvent handle, const char* call, int64_t* time_ns) {
  Event* event = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(handle, call, &event));
  ACLTAPE_RETURN_IF_FAILED(CheckHostCall(*event, call));
  if (event->type() == EventType::kIpc) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: events between processes have no times",
                call);
  }
  EventPoint* point = event->NewestPoint();
  if (point == nullptr) {
    return Fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s: the event was never recorded", call);
  }
  bool done = point->done();
  if (done) *time_ns = point->time_ns();
  point->Release();
  if (!event->has_time_line()) {
    return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
                "%s: the event was created without ACL_EVENT_TIME_LINE", call);
  }
  if (!done) {
    return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
                "%s: the record was not reached yet; synchronise first", call);
  }
  return ACL_SUCCESS;
}

// CAP-54.
aclError CheckIpcOutsideOfCapture(const Event& event, const Stream& stream, const char* call) {
  if (event.type() != EventType::kIpc || !stream.capturing()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "%s: stream %u is capturing, which events between processes cannot take part in",
              call, stream.id());
}

aclError WaitWithTimeout(aclrtStream stream, aclrtEvent event, uint32_t timeout_s,
                         const char* call) {
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, call, &found));
  Stream* on = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, call, &on));
  ACLTAPE_RETURN_IF_FAILED(CheckIpcOutsideOfCapture(*found, *on, call));
  return WaitEvent(*on, *found, int64_t{timeout_s} * kSecond);
}

}  // namespace

aclError aclrtCreateEvent(aclrtEvent* event) {
  ACLTAPE_CALL("aclrtCreateEvent");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(event, kCall, "event"));
  return Create(event, EventType::kOld, kPlainFlags, false, kCall);
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  ACLTAPE_CALL("aclrtCreateEventWithFlag");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(event, kCall, "event"));
  if (flag == ACL_EVENT_EXTERNAL) return Create(event, EventType::kExternal, flag, true, kCall);
  if (!Combinable(flag) && flag != ACL_EVENT_DEVICE_USE_ONLY) return RefuseFlags(flag, kCall);
  return Create(event, EventType::kOld, flag, true, kCall);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  ACLTAPE_CALL("aclrtCreateEventExWithFlag");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(event, kCall, "event"));
  if (flag == ACL_EVENT_IPC) return CreateIpc(event, IpcCell::Create(), kCall);
  if (!Combinable(flag)) return RefuseFlags(flag, kCall);
  return Create(event, EventType::kEx, flag, false, kCall);
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  ACLTAPE_CALL("aclrtDestroyEvent");
  if (Exiting()) return ACL_SUCCESS;
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, kCall, &found));
  if (!Claim(*found->handle(), HandleKind::kEvent)) return BeingDestroyed(kCall, "event");
  {
    std::lock_guard lock(found->context().mutex);
    found->context().events.erase(found);
  }
  FreeClaimed(found, DeleteEvent);
  return ACL_SUCCESS;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  ACLTAPE_CALL("aclrtRecordEvent");
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, kCall, &found));
  Stream* on = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &on));
  ACLTAPE_RETURN_IF_FAILED(CheckIpcOutsideOfCapture(*found, *on, kCall));
  return RecordEvent(*found, *on);
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  ACLTAPE_CALL("aclrtStreamWaitEvent");
  return WaitWithTimeout(stream, event, wait_timeout_s.load(), kCall);
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  ACLTAPE_CALL("aclrtStreamWaitEventWithTimeout");
  if (timeout < 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: time-out %d s is negative", kCall, timeout);
  }
  return WaitWithTimeout(stream, event, static_cast<uint32_t>(timeout), kCall);
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  ACLTAPE_CALL("aclrtSetOpWaitTimeout");
  wait_timeout_s.store(timeout);
  return ACL_SUCCESS;
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  ACLTAPE_CALL("aclrtResetEvent");
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, kCall, &found));
  Stream* on = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &on));
  if (found->type() == EventType::kIpc) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: events between processes have no reset",
                kCall);
  }
  return ResetEvent(*found, *on);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  ACLTAPE_CALL("aclrtQueryEventStatus");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(status, kCall, "status"));
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckHostCall(*found, kCall));
  if (found->type() == EventType::kIpc) {
    *status = found->ipc_cell()->Reached() ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                                           : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return ACL_SUCCESS;
  }
  // EVT-09: what an event means that was never recorded depends on its type.
  *status = NewestDone(*found, found->type() == EventType::kEx)
                ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  ACLTAPE_CALL("aclrtQueryEvent");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(status, kCall, "status"));
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckOldEvent(*found, kCall));
  *status = NewestDone(*found, false) ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  ACLTAPE_CALL("aclrtQueryEventWaitStatus");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(status, kCall, "status"));
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckOldEvent(*found, kCall));
  *status = found->OutstandingWaits() == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE
                                           : ACL_EVENT_WAIT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  ACLTAPE_CALL("aclrtSynchronizeEvent");
  return SynchronizeEvent(event, -1, kCall);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  ACLTAPE_CALL("aclrtSynchronizeEventWithTimeout");
  ACLTAPE_RETURN_IF_FAILED(CheckTimeout(timeout, kCall));
  return SynchronizeEvent(event, TimeoutNs(timeout), kCall);
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  ACLTAPE_CALL("aclrtEventElapsedTime");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(ms, kCall, "ms"));
  int64_t start = 0;
  int64_t end = 0;
  ACLTAPE_RETURN_IF_FAILED(RecordedTime(startEvent, kCall, &start));
  ACLTAPE_RETURN_IF_FAILED(RecordedTime(endEvent, kCall, &end));
  *ms = static_cast<float>(static_cast<double>(end - start) / 1e6);
  return ACL_SUCCESS;
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  ACLTAPE_CALL("aclrtEventGetTimestamp");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(timestamp, kCall, "timestamp"));
  int64_t time_ns = 0;
  ACLTAPE_RETURN_IF_FAILED(RecordedTime(event, kCall, &time_ns));
  *timestamp = static_cast<uint64_t>(time_ns / 1000);
  return ACL_SUCCESS;
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  ACLTAPE_CALL("aclrtGetEventId");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(eventId, kCall, "eventId"));
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, kCall, &found));
  *eventId = found->id();
  return ACL_SUCCESS;
}

aclError aclrtGetEventAvailNum(uint32_t* eventCount) {
  ACLTAPE_CALL("aclrtGetEventAvailNum");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(eventCount, kCall, "eventCount"));
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *eventCount = context->device().event_numbers.Available();
  return ACL_SUCCESS;
}

aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle* handle) {
  ACLTAPE_CALL("aclrtIpcGetEventHandle");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, kCall, "handle"));
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, kCall, &found));
  if (found->type() != EventType::kIpc) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the event was not created with ACL_EVENT_IPC",
                kCall);
  }
  found->ipc_cell()->Export(handle);
  return ACL_SUCCESS;
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* event) {
  ACLTAPE_CALL("aclrtIpcOpenEventHandle");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(event, kCall, "event"));
  IpcCell* cell = IpcCell::Open(handle);
  if (cell == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the handle names no event of a living process; its creator must keep it until "
                "it is opened",
                kCall);
  }
  return CreateIpc(event, cell, kCall);
}
