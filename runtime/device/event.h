// Events (EVT-01 to EVT-23).
//
// Each record makes a point: a shared object that the record task completes and that later waits
// and queries refer to (EVT-05). The types differ in what they mean before the first record and
// after a reset:
//   old       set from its record until it is reset; a wait before the record waits for it
//   Ex        a wait before the first record passes (EVT-06); can belong to a capture (CAP-40)
//   external  one live flag that waits and resets look at when they run, also inside graphs
//             (CAP-50)
//   IPC       as Ex, but shared between processes (EVT-23)
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "runtime/device/context.h"
#include "runtime/device/stream_order.h"

namespace acltape::device {

// A count of references in the object itself, so that tasks can hold one in their payload.
template <typename T>
class Shared {
 public:
  void Retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete static_cast<T*>(this);
  }

 private:
  std::atomic<uint32_t> references_{1};
};

// One record of an event.
class EventPoint : public Shared<EventPoint> {
 public:
  void Complete();
  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  // Monotonic time at which the record ran; valid when done().
  int64_t time_ns() const { return time_ns_; }
  // Waits until done, `deadline_ns` (0: none), or the runner's interruption; returns done().
  bool Wait(int64_t deadline_ns);

  // The record's stream knew this of others (stream_order.h); or null. The event's mutex guards it.
  std::shared_ptr<const StreamOrder::Known> told;

 private:
  std::atomic<uint32_t> done_{0};
  std::atomic<uint32_t> sleepers_{0};
  int64_t time_ns_ = 0;
};

// The state of an external event.
struct LiveFlag : Shared<LiveFlag> {
  std::atomic<uint32_t> set{0};
};

// Stream waits of an old event that have not run yet (EVT-11).
struct WaitCount : Shared<WaitCount> {
  std::atomic<uint32_t> outstanding{0};
};

// The state of an old event for host calls: its newest record, until the reset has run (EVT-08).
struct HostView : Shared<HostView> {
  std::mutex mutex;
  EventPoint* point = nullptr;

  void Set(EventPoint* newest);
  // Clears the view if it still shows `reset`.
  void Clear(const EventPoint* reset);
  ~HostView() { Set(nullptr); }
};

class IpcCell;

enum class EventType : uint8_t { kOld, kEx, kExternal, kIpc };

class Event {
 public:
  // `number_taken`: an event number of the device that the event owns (EVT-17).
  Event(Context& context, EventType type, uint32_t flags);
  // An IPC event on this cell, which it owns from now on.
  Event(Context& context, IpcCell* cell);
  ~Event();

  // The streams must not be capturing. All three take effect in the order of the calls.
  aclError Record(Stream& stream);
  aclError Wait(Stream& stream, int64_t timeout_ns);  // 0: for ever
  aclError Reset(Stream& stream);

  // The newest record that host calls see; the caller releases it. Null: never recorded, or reset.
  EventPoint* NewestPoint() const;
  uint32_t OutstandingWaits() const { return waits_ ? waits_->outstanding.load() : 0; }

  // EVT-20: the first record call, and the first wait call, fix the flag for good; 107000 for a
  // call with the other flag.
  aclError FixRecordFlag(uint32_t flag, const char* call) { return Fix(record_flag_, flag, call); }
  aclError FixWaitFlag(uint32_t flag, const char* call) { return Fix(wait_flag_, flag, call); }

  // EXT-04: `point` is the newest record from now on. Returns the former one, which the caller
  // releases or gives back by Retract.
  EventPoint* Publish(EventPoint* point);
  // EXT-06: `former` is the newest record again, unless there was another after `point`. Keeps the
  // caller's references as they are.
  void Retract(EventPoint* point, EventPoint* former);

  // The flag of an event that consists of one live flag: an external event, or an event in a bound
  // stream of a built model.
  LiveFlag* Live();

  // The tasks of an external event, which go to capturing streams too.
  Task ExternalRecordTask();
  Task ExternalWaitTask(int64_t timeout_ns);
  Task ExternalResetTask();

  Context& context() const { return context_; }
  HandleBlock* handle() const { return handle_; }
  IpcCell* ipc_cell() const { return ipc_cell_; }  // null unless an IPC event
  EventType type() const { return type_; }
  uint32_t flags() const { return flags_; }
  // EVT-04: whether streams may wait on it.
  bool waitable() const {
    return type_ == EventType::kExternal || type_ == EventType::kIpc ||
           (flags_ & (ACL_EVENT_SYNC | 0x4)) != 0;
  }
  bool has_time_line() const { return (flags_ & ACL_EVENT_TIME_LINE) != 0; }
  uint32_t id() const { return id_; }

  // Takes the device's event number if the event needs one and has none yet (EVT-17, EVT-21).
  aclError TakeNumber(const char* call);

  // The capture that the event belongs to (CAP-40); written under the capture lock.
  std::atomic<Model*> graph{nullptr};
  uint32_t graph_node = 0;    // its newest record there
  uint32_t graph_member = 0;  // the stream of that record
  // Recorded in a bound stream of a built model, where the host cannot wait for it (EVT-12).
  std::atomic<bool> recorded_in_model{false};

 private:
  static constexpr uint32_t kUnset = UINT32_MAX;
  aclError Fix(std::atomic<uint32_t>& fixed, uint32_t flag, const char* call);

  std::atomic<uint32_t> record_flag_{kUnset};
  std::atomic<uint32_t> wait_flag_{kUnset};
  Context& context_;
  HandleBlock* handle_;
  const EventType type_;
  const uint32_t flags_;
  uint32_t id_;
  bool owns_number_ = false;

  mutable std::mutex mutex_;
  EventPoint* newest_ = nullptr;
  bool newest_is_recorded_ = false;  // false: made by a wait that came before the record
  LiveFlag* live_ = nullptr;         // not for external events; made at first use
  WaitCount* waits_ = nullptr;
  IpcCell* ipc_cell_ = nullptr;
  HostView* host_view_ = nullptr;  // old events have one
};

aclError FindEvent(aclrtEvent handle, const char* call, Event** event);

}  // namespace acltape::device
