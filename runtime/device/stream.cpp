#include "runtime/device/stream.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/hash.h"
#include "runtime/device/context.h"
#include "runtime/device/error.h"
#include "runtime/device/exception.h"
#include "runtime/device/fault.h"
#include "runtime/device/futex.h"
#include "runtime/device/host_service.h"
#include "runtime/device/profile.h"
#include "runtime/device/profiling_session.h"
#include "runtime/device/standstill.h"
#include "runtime/device/thread_state.h"
#include "runtime/device/workers_held.h"

namespace acltape::device {
namespace {

// A sleeping host thread looks again this often, in case the process exits.
constexpr int64_t kSliceNs = 100000000;

std::atomic<bool> exiting{false};
// True where a function of the program that a stream waits for ends the process.
std::atomic<bool> function_exits{false};
std::atomic<uint32_t> running_workers{0};
std::atomic<uint64_t> newest_serial{0};

// Registered when the first worker starts, so it runs before the destructors of whatever libraries
// the kernels need: those were loaded earlier.
void RegisterExit() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit(StandStillAtExit);
    // A forked child has no workers: its late destructors must not wait for them.
    pthread_atfork(nullptr, nullptr, [] { exiting.store(true); });
  });
}

}  // namespace

std::atomic<uint32_t> StreamOrder::wanted{0};

bool Exiting() { return exiting.load(std::memory_order_relaxed); }

void StandStillAtExit() {
  if (StreamOfHostFunction() != nullptr) function_exits.store(true);
  if (exiting.exchange(true)) return;  // a forked child: its workers are in the parent
  // Let the tasks that run now end; what is queued after them is given up, as when a device loses
  // its host. A task that takes longer than this keeps running into the exit.
  int64_t limit = NowNs() + 2000000000;
  while (running_workers.load() != 0 && NowNs() < limit) {
    timespec pause{0, 100000};
    nanosleep(&pause, nullptr);
  }
}

Stream::Stream(Context& context, uint32_t id, uint32_t flags, uint32_t priority, bool is_default)
    : context_(context),
      handle_(AllocateHandle(HandleKind::kStream, this)),
      id_(id),
      serial_(newest_serial.fetch_add(1) + 1),
      flags_(flags),
      priority_(priority),
      is_default_(is_default),
      saturates_(context.device().saturates.load()),
      depth_(GetProfile().queue_depth) {}

Stream::~Stream() { Wipe(); }

void Stream::Wipe() {
  if (handle_ != nullptr) WipeHandle(handle_);
  std::lock_guard lock(submit_mutex_);
  slots_.reset();
}

void Stream::StartWorker() {
  RegisterExit();
  slots_.reset(new Slot[depth_]);
  worker_ = std::thread([this] { Work(); });
  started_ = true;
}

aclError Stream::Submit(Task&& task) {
  aclError refusal = context_.Refusal();
  if (refusal != ACL_SUCCESS || Exiting()) [[unlikely]] {
    task.Drop();
    if (refusal == ACL_SUCCESS) return ACL_SUCCESS;
    return Fail(refusal, "task %s refused: %s", task.name, context_.FirstFailure().c_str());
  }
  if (task.run == ComputeNothing && !persistent()) [[unlikely]] {
    task.Drop();
    return ACL_SUCCESS;
  }
  task.thread_id = SystemThreadId();
  if (ProfilingSession::On()) [[unlikely]] {
    task.submitted_ns = ProfilingSession::NowNs();
    task.submitted_by = ProfiledCall::NumberOfInnermost();
  }
  std::lock_guard lock(submit_mutex_);
  if (stop_.load(std::memory_order_relaxed)) [[unlikely]] {
    task.Drop();
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, "task %s refused: stream %u is being destroyed",
                task.name, id_);
  }
  if (persistent()) {
    held_.push_back(task);
    return ACL_SUCCESS;
  }
  if (!started_) [[unlikely]] {
    StartWorker();
  }
  uint64_t position = submitted_.load(std::memory_order_relaxed);
  if (position - completed_.load(std::memory_order_acquire) >= depth_) [[unlikely]] {
    bool aborted = false;
    WaitForCompleted(position - depth_ + 1, -1, abort_epoch_.load(), &aborted);
    if (Exiting()) {
      task.Drop();
      return ACL_SUCCESS;
    }
  }
  slots_[position % depth_].task = task;
  thread_state.last_task_id = static_cast<uint32_t>(position);
  thread_state.last_model = {};
  // Sequentially consistent against the worker's "sleep, then look again".
  submitted_.store(position + 1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) != 0) {
    sleeping_.store(0, std::memory_order_seq_cst);
    FutexWakeAll(sleeping_);
  }
  return ACL_SUCCESS;
}

void Stream::Work() {
  Runner runner(this);
  Runner::SetCurrent(&runner);
  uint64_t position = 0;
  auto has_task = [&] {
    return submitted_.load(std::memory_order_acquire) > position ||
           stop_.load(std::memory_order_relaxed);
  };
  while (true) {
    if (!has_task() && !SpinUntil(has_task)) {
      sleeping_.store(1, std::memory_order_seq_cst);
      if (submitted_.load(std::memory_order_seq_cst) == position && !stop_.load()) {
        FutexWait(sleeping_, 1, kSliceNs * 600);
      }
      sleeping_.store(0, std::memory_order_seq_cst);
      continue;
    }
    if (submitted_.load(std::memory_order_acquire) == position) return;  // stopped and drained
    running_workers.fetch_add(1);
    const Standstill::Work work;
    if (Exiting()) {
      running_workers.fetch_sub(1);
      while (true) pause();
    }
    do {
      runner.set_position(position);
      EnterTask(position);
      Task& task = slots_[position % depth_].task;
      runner.set_launched(&task);
      RunSlot(task, position);
      runner.set_launched(nullptr);
      Advance(++position);
    } while (submitted_.load(std::memory_order_acquire) > position && !Exiting());
    running_workers.fetch_sub(1);
  }
}

// Either the holder sees that the task has begun, or the worker sees that workers are held.
void Stream::EnterTask(uint64_t position) {
  entered_.store(position + 1, std::memory_order_seq_cst);
  while (WorkersHeld::Now() && !Exiting()) {
    entered_.store(position, std::memory_order_seq_cst);
    timespec pause{0, 20000};
    nanosleep(&pause, nullptr);
    entered_.store(position + 1, std::memory_order_seq_cst);
  }
}

void Stream::RunSlot(Task& task, uint64_t position) {
  if (task.kind == TaskKind::kModel) in_model_.store(true);
  if (GetProfile().jitter_seed != 0) Jitter(position);
  if (FaultsGiven()) [[unlikely]] {
    DelayTask(id_, position);
  }
  if (!AbortedAfter(position) && !context_.Stopped()) {
    aclError code = task.RunGuarded();
    // A task that runs others has reported them itself; one that an abort interrupted is no
    // failure.
    if (code != ACL_SUCCESS && task.kind != TaskKind::kModel && !Interrupted(position)) {
      NoteFailure(code, DescribeTask(task), TakeOwnMessage(), !task.refused);
    }
    if (code != ACL_SUCCESS && !Interrupted(position)) {
      ReportException({static_cast<uint32_t>(position), id_, task.thread_id,
                       static_cast<uint32_t>(context_.device().id), static_cast<uint32_t>(code),
                       &task});
    }
  }
  if (task.kind == TaskKind::kModel) in_model_.store(false);
  task.Drop();
}

void Stream::Advance(uint64_t completed) {
  completed_.store(completed, std::memory_order_seq_cst);
  if (completed >= wake_at_.load(std::memory_order_seq_cst)) [[unlikely]] {
    wake_at_.store(UINT64_MAX, std::memory_order_seq_cst);
    progress_.fetch_add(1, std::memory_order_seq_cst);
    FutexWakeAll(progress_);
  }
}

bool Stream::WaitForCompleted(uint64_t target, int64_t timeout_ns, uint32_t abort_epoch,
                              bool* aborted, Standstill* standstill) {
  auto reached = [&] { return completed_.load(std::memory_order_acquire) >= target; };
  if (SpinUntil(reached)) return true;
  int64_t deadline = timeout_ns < 0 ? INT64_MAX : NowNs() + timeout_ns;
  while (true) {
    uint32_t progress = progress_.load(std::memory_order_seq_cst);
    uint64_t wake_at = wake_at_.load(std::memory_order_seq_cst);
    while (wake_at > target && !wake_at_.compare_exchange_weak(wake_at, target)) {
    }
    if (completed_.load(std::memory_order_seq_cst) >= target || Exiting()) return true;
    if (abort_epoch_.load() != abort_epoch) {
      *aborted = true;
      return true;
    }
    int64_t now = NowNs();
    if (now >= deadline) return false;
    if (standstill != nullptr && standstill->Lasts(GetProfile().synchronize_wait_ns)) return false;
    FutexWait(progress_, progress, std::min(kSliceNs, deadline - now));
  }
}

aclError Stream::Synchronize(int64_t timeout_ns) {
  if (persistent()) return ACL_SUCCESS;
  if (StreamOfHostFunction() == this) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "stream %u: it waits for the end of the function that asks for its end", id_);
  }
  bool aborted = false;
  uint32_t epoch = abort_epoch_.load();
  uint64_t target = submitted_.load(std::memory_order_acquire);
  Standstill standstill;
  Standstill* end_of_patience = timeout_ns < 0 ? &standstill : nullptr;
  const bool reached = WaitForCompleted(target, timeout_ns, epoch, &aborted, end_of_patience);
  // With an answer the program would go on, and end with another exit code than the function gave.
  while (function_exits.load() && StreamOfHostFunction() == nullptr) pause();
  if (!reached) {
    if (timeout_ns < 0) {
      context_.DropStandingWork("a synchronisation");
      return Fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                  "stream %u: its work waited for what nothing records or writes, and was dropped",
                  id_);
    }
    return Fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                "stream %u: %llu tasks were not finished in time; they go on", id_,
                static_cast<unsigned long long>(target - completed_.load()));
  }
  if (aborted) {
    return Fail(ACL_ERROR_RT_STREAM_ABORT, "stream %u was aborted during the synchronisation", id_);
  }
  aclError stored = context_.Refusal();
  aclError own = error_.exchange(ACL_SUCCESS, std::memory_order_acq_rel);
  if (stored == ACL_SUCCESS && own == ACL_SUCCESS) return ACL_SUCCESS;
  std::string text;
  {
    std::lock_guard lock(error_mutex_);
    text = error_text_;
  }
  if (text.empty()) text = context_.FirstFailure();
  FailedTaskIsReported();
  return Fail(stored != ACL_SUCCESS ? stored : own, "stream %u: %s", id_, text.c_str());
}

bool Stream::Drained(int64_t timeout_ns) {
  if (persistent()) return true;
  bool aborted = false;
  const uint64_t target = submitted_.load(std::memory_order_acquire);
  return WaitForCompleted(target, timeout_ns, abort_epoch_.load(), &aborted) && !aborted;
}

bool Stream::Idle() const {
  return persistent() ||
         completed_.load(std::memory_order_acquire) == submitted_.load(std::memory_order_acquire);
}

aclError Stream::PendingError() const {
  aclError stored = context_.Refusal();
  return stored != ACL_SUCCESS ? stored : error_.load(std::memory_order_acquire);
}

void Stream::NoteFailure(aclError code, const std::string& task, const char* message, bool stops) {
  std::string text = "task " + task + " failed with " + CodeText(code);
  if (message != nullptr && *message != '\0') text += std::string(": ") + message;
  {
    std::lock_guard lock(error_mutex_);
    error_text_ = text;
  }
  NoteFailedTask(("stream " + std::to_string(id_) + ": " + text).c_str());
  error_.store(code, std::memory_order_release);
  if (stops) context_.NoteTaskFailure(code, text);
}

void Stream::Abort() {
  abort_below_.store(submitted_.load(std::memory_order_acquire));
  abort_epoch_.fetch_add(1);
  progress_.fetch_add(1);
  FutexWakeAll(progress_);
}

void Stream::Stop() {
  const uint64_t entered = entered_.load();
  if (entered > completed_.load()) stopped_.store(entered);
}

void Stream::DropHeld() {
  std::lock_guard lock(submit_mutex_);
  for (Task& task : held_) task.Drop();
  held_.clear();
}

void Stream::Finish(bool run_queued) {
  // No more waiting for workers that stand still.
  if (Exiting()) return;
  // Before the lock, too: who holds it may wait for room in the queue.
  if (!run_queued) abort_below_.store(submitted_.load(std::memory_order_acquire));
  {
    std::lock_guard lock(submit_mutex_);
    stop_.store(true);
    if (!run_queued) abort_below_.store(submitted_.load(std::memory_order_acquire));
    for (Task& task : held_) task.Drop();
    held_.clear();
    if (!started_) return;
  }
  sleeping_.store(0);
  FutexWakeAll(sleeping_);
  if (RunsHere()) {
    worker_.detach();  // a callback destroys its own stream: a client error, but no deadlock
    return;
  }
  worker_.join();
}

void Stream::Jitter(uint64_t position) const {
  uint64_t draw =
      base::MixBits(GetProfile().jitter_seed ^ base::MixBits((uint64_t{id_} << 40) + position));
  if (draw % 4 != 0) return;
  timespec pause{0, static_cast<long>(base::MixBits(draw) % 200000)};
  nanosleep(&pause, nullptr);
}

}  // namespace acltape::device
