// A stream: a queue of tasks and the worker thread that runs them in order (STR-01 to STR-18).
//
// Submission writes the task into a ring of fixed slots and wakes the worker only when it sleeps.
// The worker starts with the first task. Positions count tasks from the stream's creation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/handle.h"
#include "runtime/device/stream_order.h"
#include "runtime/device/task.h"

namespace acltape::device {

class Context;
class Model;
class ReportQueue;
class TaskUpdate;

inline constexpr uint32_t kStreamFlagsWithoutCapture =
    ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;  // CAP-02

class Stream {
 public:
  // `id` is a stream number of the context's device that the stream owns from now on.
  Stream(Context& context, uint32_t id, uint32_t flags, uint32_t priority, bool is_default);
  // Ends the worker. Call Finish() first.
  ~Stream();

  // Queues the task; blocks while the queue is full (STR-04). On failure the task is dropped and
  // the stored error of a stopped context or a faulty device is returned (STR-15, ERR-05).
  aclError Submit(Task&& task);

  // Waits until every task submitted before the call has ended. Returns 0 or the newest error of a
  // failed task, which is thereby reported (STR-12); 507046 at time-out; 107023 when aborted.
  aclError Synchronize(int64_t timeout_ns = -1);
  bool Idle() const;
  // The error that the next Synchronize would report.
  aclError PendingError() const;

  // True while no task of it runs, or one that waits (workers_held.h).
  bool Quiet() const {
    return entered_.load(std::memory_order_seq_cst) == completed_.load(std::memory_order_seq_cst) ||
           (blocked.load() && !in_model_.load());
  }
  // Set by Runner::Blocked.
  std::atomic<bool> blocked{false};

  // Drops the tasks that have not run (STR-18).
  void Abort();
  bool AbortedAfter(uint64_t position) const {
    return position < abort_below_.load(std::memory_order_relaxed);
  }
  // Ends the task that runs, if it waits; later tasks run (STR-24).
  void Stop();
  bool Interrupted(uint64_t position) const {
    return AbortedAfter(position) || stopped_.load(std::memory_order_relaxed) == position + 1;
  }
  // Waits until what is submitted has run. False at time-out; an abort ends the wait too.
  bool Drained(int64_t timeout_ns);
  // Drops the tasks that a persistent stream holds (STR-25).
  void DropHeld();

  // Before destruction: lets the queued tasks run, or drops them, and stops the worker. Later ones
  // are refused.
  void Finish(bool run_queued);
  // True in a function of the program that the stream's own worker runs.
  bool RunsHere() const {
    const Runner* runner = Runner::Current();
    return runner != nullptr && runner->stream() == this;
  }

  // For a stream that stays without a handle: gives back what it needs no more (Context::Close).
  void Wipe();

  // Called by tasks that run other tasks, for the report of a failure.
  // `task` as DescribeTask names it. With `stops` the context may stop (STR-15).
  void NoteFailure(aclError code, const std::string& task, const char* message, bool stops = true);

  Context& context() const { return context_; }
  HandleBlock* handle() const { return handle_; }
  uint32_t id() const { return id_; }
  // A number that no other stream of the process has or had.
  uint64_t serial() const { return serial_; }
  // The place after all tasks that were submitted so far.
  StreamPosition Position() const { return {serial_, submitted_.load(std::memory_order_acquire)}; }
  StreamOrder order;
  uint32_t flags() const { return flags_; }
  uint32_t priority() const { return priority_; }
  void set_priority(uint32_t priority) { priority_ = priority; }
  bool is_default() const { return is_default_; }
  bool persistent() const { return (flags_ & ACL_STREAM_PERSISTENT) != 0; }
  bool saturates() const { return saturates_; }  // OVF-03

  // Membership in a capture (CAP-06, CAP-09): written by the capture code, read by anyone.
  std::atomic<uint32_t> capture_status{ACL_MODEL_RI_CAPTURE_STATUS_NONE};
  std::atomic<HandleBlock*> capture_handle{nullptr};
  bool capturing() const {
    return capture_status.load(std::memory_order_acquire) != ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  }
  // When one of these is set, submitted tasks do not run here: a capture stores them, an update
  // takes them as new arguments, or a built model stores them. A capture stands above an update. A
  // stream that is bound to a built model has neither. Guarded by the capture lock.
  Model* capture = nullptr;
  uint32_t capture_member = 0;
  std::shared_ptr<TaskUpdate> update;  // UPD-01
  Model* built = nullptr;              // BLD-02
  uint32_t built_member = 0;
  // True when one of them is set. Call Divert() after a change.
  bool diverted() const { return diverted_.load(std::memory_order_acquire); }
  void Divert() {
    diverted_.store(capture != nullptr || update != nullptr || built != nullptr,
                    std::memory_order_release);
  }

  // The service thread of aclrtLaunchCallback (CB-01); guarded by the callback lock.
  std::shared_ptr<ReportQueue> report_queue;

  // Stored values of stream attributes (STR-19) and resource limits (DEV-16).
  std::atomic<uint32_t> overflow_switch{0};
  std::atomic<uint32_t> user_tag{0};
  std::atomic<uint32_t> cache_op_info{0};
  std::atomic<uint32_t> core_limits[2] = {0, 0};  // 0: not set

  // Allocator of the operator library (MEM-12); guarded by the object lock.
  void* allocator_description = nullptr;

 private:
  // A place for one task in the ring of the stream.
  struct Slot {
    alignas(64) Task task;
  };

  void StartWorker();
  void Work();
  void EnterTask(uint64_t position);
  void RunSlot(Task& task, uint64_t position);
  void Advance(uint64_t completed);
  // False at time-out, or when work has stood still for the profile's `synchronize_wait`.
  bool WaitForCompleted(uint64_t target, int64_t timeout_ns, uint32_t abort_epoch, bool* aborted,
                        Standstill* standstill = nullptr);
  void Jitter(uint64_t position) const;

  std::atomic<bool> diverted_{false};

  Context& context_;
  HandleBlock* handle_;
  const uint32_t id_;
  const uint64_t serial_;
  const uint32_t flags_;
  uint32_t priority_;
  const bool is_default_;
  const bool saturates_;
  const uint32_t depth_;

  // Producers.
  std::mutex submit_mutex_;
  std::unique_ptr<Slot[]> slots_;
  std::vector<Task> held_;  // tasks of a persistent stream, which never run here (STR-08)
  std::thread worker_;
  bool started_ = false;
  alignas(64) std::atomic<uint64_t> submitted_{0};

  // Worker.
  alignas(64) std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> entered_{0};   // tasks that have begun
  std::atomic<bool> in_model_{false};  // the task that runs executes a model
  std::atomic<uint32_t> sleeping_{0};
  std::atomic<bool> stop_{false};

  // Host threads that wait for a position: the worker wakes them when it passes wake_at_.
  alignas(64) std::atomic<uint64_t> wake_at_{UINT64_MAX};
  std::atomic<uint32_t> progress_{0};
  std::atomic<uint64_t> abort_below_{0};
  std::atomic<uint64_t> stopped_{0};  // one more than the position of a stopped task
  std::atomic<uint32_t> abort_epoch_{0};

  std::atomic<aclError> error_{ACL_SUCCESS};
  std::mutex error_mutex_;
  std::string error_text_;
};

// Stands every worker still for the rest of the process; called once at exit.
void StandStillAtExit();

}  // namespace acltape::device
