#include "runtime/device/event.h"

#include <utility>

#include "runtime/device/error.h"
#include "runtime/device/futex.h"
#include "runtime/device/ipc_cell.h"
#include "runtime/device/standstill.h"

namespace acltape::device {
namespace {

std::atomic<uint32_t> newest_event_id{0};

struct RecordPayload {
  EventPoint* point;
};

aclError RunRecord(void* argument) {
  static_cast<RecordPayload*>(argument)->point->Complete();
  return ACL_SUCCESS;
}

void DropRecord(void* argument) {
  // A record that was dropped must still let its waiters pass.
  EventPoint* point = static_cast<RecordPayload*>(argument)->point;
  point->Complete();
  point->Release();
}

struct WaitPayload {
  EventPoint* point;
  WaitCount* waits;  // null for Ex events
  int64_t timeout_ns;
};

aclError RunWait(void* argument) {
  auto* wait = static_cast<WaitPayload*>(argument);
  int64_t deadline = wait->timeout_ns == 0 ? 0 : NowNs() + wait->timeout_ns;
  return wait->point->Wait(deadline) ? ACL_SUCCESS : ACL_ERROR_RT_WAIT_TIMEOUT;
}

void DropWait(void* argument) {
  auto* wait = static_cast<WaitPayload*>(argument);
  wait->point->Release();
  if (wait->waits != nullptr) {
    wait->waits->outstanding.fetch_sub(1);
    wait->waits->Release();
  }
}

struct ResetPayload {
  HostView* view;
  EventPoint* point;
};

aclError RunReset(void* argument) {
  auto* reset = static_cast<ResetPayload*>(argument);
  reset->view->Clear(reset->point);
  return ACL_SUCCESS;
}

void DropReset(void* argument) {
  auto* reset = static_cast<ResetPayload*>(argument);
  reset->point->Release();
  reset->view->Release();
}

struct LivePayload {
  LiveFlag* live;
  int64_t timeout_ns;
};

aclError RunLiveRecord(void* argument) {
  static_cast<LivePayload*>(argument)->live->set.store(1, std::memory_order_release);
  return ACL_SUCCESS;
}

aclError RunLiveReset(void* argument) {
  static_cast<LivePayload*>(argument)->live->set.store(0, std::memory_order_release);
  return ACL_SUCCESS;
}

bool LiveReady(void* argument) {
  return static_cast<LivePayload*>(argument)->live->set.load(std::memory_order_acquire) != 0;
}

aclError RunLiveWait(void* argument) {
  auto* wait = static_cast<LivePayload*>(argument);
  int64_t deadline = wait->timeout_ns == 0 ? 0 : NowNs() + wait->timeout_ns;
  return PollUntil(LiveReady, argument, deadline) ? ACL_SUCCESS : ACL_ERROR_RT_WAIT_TIMEOUT;
}

void DropLive(void* argument) { static_cast<LivePayload*>(argument)->live->Release(); }

Task LiveTask(TaskKind kind, const char* name, LiveFlag* live, int64_t timeout_ns, uint32_t id,
              aclError (*run)(void*)) {
  live->Retain();
  Task task = MakeTask(kind, name, LivePayload{live, timeout_ns}, run);
  task.drop = DropLive;
  task.object_id = id;
  return task;
}

}  // namespace

void EventPoint::Complete() {
  if (done()) return;
  time_ns_ = NowNs();
  done_.store(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) FutexWakeAll(done_);
}

bool EventPoint::Wait(int64_t deadline_ns) {
  if (SpinUntil([this] { return done(); })) return true;
  const Runner::Blocked blocked(Runner::Current());
  const Standstill::Wait wait(deadline_ns == 0 && Runner::Current() != nullptr);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (!done()) {
    Runner* runner = Runner::Current();
    if ((runner != nullptr && runner->Interrupted()) || Exiting()) break;
    int64_t slice = 10000000;
    if (deadline_ns != 0) {
      int64_t left = deadline_ns - NowNs();
      if (left <= 0) break;
      slice = left < slice ? left : slice;
    }
    FutexWait(done_, 0, slice);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return done();
}

void HostView::Set(EventPoint* newest) {
  std::lock_guard lock(mutex);
  if (newest != nullptr) newest->Retain();
  if (point != nullptr) point->Release();
  point = newest;
}

void HostView::Clear(const EventPoint* reset) {
  std::lock_guard lock(mutex);
  if (point != reset) return;
  if (point != nullptr) point->Release();
  point = nullptr;
}

Event::Event(Context& context, EventType type, uint32_t flags)
    : context_(context),
      handle_(AllocateHandle(HandleKind::kEvent, this)),
      type_(type),
      flags_(flags),
      id_(newest_event_id.fetch_add(1)) {
  if (type == EventType::kExternal) live_ = new LiveFlag;
  if (type == EventType::kOld) {
    waits_ = new WaitCount;
    host_view_ = new HostView;
  }
}

Event::Event(Context& context, IpcCell* cell) : Event(context, EventType::kIpc, ACL_EVENT_IPC) {
  ipc_cell_ = cell;
}

Event::~Event() {
  if (handle_ != nullptr) WipeHandle(handle_);
  if (newest_ != nullptr) newest_->Release();
  if (live_ != nullptr) live_->Release();
  if (waits_ != nullptr) waits_->Release();
  if (host_view_ != nullptr) host_view_->Release();
  if (ipc_cell_ != nullptr) ipc_cell_->Release();
  if (owns_number_) context_.device().event_numbers.Release(id_);
}

aclError Event::TakeNumber(const char* call) {
  bool ex = type_ == EventType::kEx || type_ == EventType::kIpc;
  bool counted = !ex || GetProfile().ex_events_counted;  // EVT-17
  if (!counted || owns_number_) return ACL_SUCCESS;
  std::optional<uint32_t> number = context_.device().event_numbers.Take();
  if (!number) {
    return Fail(ACL_ERROR_RT_NO_EVENT_RESOURCE, "%s: all %u events of device %d are in use", call,
                GetProfile().events, context_.device().id);
  }
  id_ = *number;
  owns_number_ = true;
  return ACL_SUCCESS;
}

aclError Event::Record(Stream& stream) {
  if (type_ == EventType::kExternal) return stream.Submit(ExternalRecordTask());
  if (type_ == EventType::kIpc) return stream.Submit(ipc_cell_->RecordTask());
  auto* point = new EventPoint;
  std::lock_guard lock(mutex_);
  if (aclError code = TakeNumber("aclrtRecordEvent"); code != ACL_SUCCESS) {
    point->Release();
    return code;
  }
  if (newest_ != nullptr && !newest_is_recorded_) {
    point->Release();  // waits that came first wait for this record
    point = newest_;
  } else {
    if (newest_ != nullptr) newest_->Release();
    newest_ = point;
  }
  newest_is_recorded_ = true;
  if (StreamOrder::Wanted()) [[unlikely]]
    point->told = stream.order.At(stream.Position());
  if (host_view_ != nullptr) host_view_->Set(point);
  point->Retain();
  Task task = MakeTask(TaskKind::kEventRecord, "EVENT_RECORD", RecordPayload{point}, RunRecord);
  task.drop = DropRecord;
  return stream.Submit(std::move(task));
}

aclError Event::Wait(Stream& stream, int64_t timeout_ns) {
  if (type_ == EventType::kExternal) return stream.Submit(ExternalWaitTask(timeout_ns));
  if (type_ == EventType::kIpc) return stream.Submit(ipc_cell_->WaitTask(timeout_ns));
  Task task;
  std::shared_ptr<const StreamOrder::Known> told;
  {
    std::lock_guard lock(mutex_);
    if (newest_ == nullptr) {
      if (type_ == EventType::kEx) return ACL_SUCCESS;
      newest_ = new EventPoint;
      newest_is_recorded_ = false;
    }
    newest_->Retain();
    told = newest_->told;
    if (waits_ != nullptr) {
      waits_->Retain();
      waits_->outstanding.fetch_add(1);
    }
    task = MakeTask(TaskKind::kEventWait, "EVENT_WAIT", WaitPayload{newest_, waits_, timeout_ns},
                    RunWait);
    task.drop = DropWait;
  }
  const aclError code = stream.Submit(std::move(task));
  // A wait that may give up orders nothing.
  if (code == ACL_SUCCESS && told != nullptr && timeout_ns == 0) stream.order.Learn(*told);
  return code;
}

aclError Event::Reset(Stream& stream) {
  if (type_ == EventType::kExternal) return stream.Submit(ExternalResetTask());
  std::lock_guard lock(mutex_);
  if (newest_ == nullptr || !newest_is_recorded_) return ACL_SUCCESS;
  // Waits that are called from now on wait for the next record; host calls see the reset when its
  // task has run.
  EventPoint* reset = std::exchange(newest_, nullptr);
  newest_is_recorded_ = false;
  host_view_->Retain();
  Task task =
      MakeTask(TaskKind::kEventReset, "EVENT_RESET", ResetPayload{host_view_, reset}, RunReset);
  task.drop = DropReset;
  return stream.Submit(std::move(task));
}

EventPoint* Event::NewestPoint() const {
  if (host_view_ != nullptr) {
    std::lock_guard lock(host_view_->mutex);
    if (host_view_->point != nullptr) host_view_->point->Retain();
    return host_view_->point;
  }
  std::lock_guard lock(mutex_);
  if (newest_ == nullptr || !newest_is_recorded_) return nullptr;
  newest_->Retain();
  return newest_;
}

aclError Event::Fix(std::atomic<uint32_t>& fixed, uint32_t flag, const char* call) {
  uint32_t unset = kUnset;
  if (fixed.compare_exchange_strong(unset, flag) || unset == flag) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: flag %u is not the flag %u of the event's first such call, which stays", call,
              flag, unset);
}

EventPoint* Event::Publish(EventPoint* point) {
  std::lock_guard lock(mutex_);
  EventPoint* former = newest_is_recorded_ ? newest_ : nullptr;
  point->Retain();
  newest_ = point;
  newest_is_recorded_ = true;
  return former;
}

void Event::Retract(EventPoint* point, EventPoint* former) {
  std::lock_guard lock(mutex_);
  if (newest_ != point) return;
  newest_->Release();
  newest_ = former;
  if (former != nullptr) former->Retain();
  newest_is_recorded_ = former != nullptr;
}

LiveFlag* Event::Live() {
  std::lock_guard lock(mutex_);
  if (live_ == nullptr) live_ = new LiveFlag;
  return live_;
}

Task Event::ExternalRecordTask() {
  return LiveTask(TaskKind::kEventRecord, "EVENT_RECORD", Live(), 0, id_, RunLiveRecord);
}

Task Event::ExternalWaitTask(int64_t timeout_ns) {
  Task task = LiveTask(TaskKind::kEventWait, "EVENT_WAIT", Live(), timeout_ns, id_, RunLiveWait);
  task.ready = LiveReady;
  return task;
}

Task Event::ExternalResetTask() {
  return LiveTask(TaskKind::kEventReset, "EVENT_RESET", Live(), 0, id_, RunLiveReset);
}

aclError FindEvent(aclrtEvent handle, const char* call, Event** event) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, "%s: the event is NULL", call);
  *event = ObjectOf<Event>(handle, HandleKind::kEvent);
  if (*event == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a live event", call, handle);
  }
  return ACL_SUCCESS;
}

}  // namespace acltape::device
