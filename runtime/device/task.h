// A task: what a stream runs in order, or a capture stores (STR-01, CAP-01).
//
// A task is a function and its argument; small arguments lie inside the task. A task is moved byte
// by byte until it rests where it runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>

#include "acl/acl.h"
#include "runtime/device/standstill.h"

namespace acltape::device {

class Stream;

enum class TaskKind : uint8_t {
  kKernel,
  kCopy,
  kFill,
  kRandom,  // numbers of the generator, which is no core
  kEventRecord,
  kEventWait,
  kEventReset,
  kValueWrite,
  kValueWait,
  kNotify,
  kCallback,
  kModel,
  kControl,
  kInternal,  // a task of the device itself (ENUM-05)
};

// True for what a device without computation leaves out (the setting `compute`).
constexpr bool IsComputation(TaskKind kind) {
  return kind == TaskKind::kKernel || kind == TaskKind::kFill || kind == TaskKind::kRandom;
}
// Stands for the work of such a task. A stream drops the task where it would queue it, so that a
// launch costs neither a queue nor a wake-up.
aclError ComputeNothing(void* argument);

struct Task {
  static constexpr size_t kPayloadBytes = 48;

  aclError (*run)(void* argument) = nullptr;
  // Releases what the argument holds; null: nothing. Called exactly once per task.
  void (*drop)(void* argument) = nullptr;
  // For tasks whose run() blocks until something else happens: true when run() would return at
  // once.
  bool (*ready)(void* argument) = nullptr;
  void* argument = nullptr;  // unless inline_payload
  const char* name = "";     // lives as long as the process
  TaskKind kind = TaskKind::kKernel;
  bool inline_payload = false;
  // Its failure is told by the next synchronisation and stops nothing: it stands for a call that
  // was refused.
  bool refused = false;
  uint32_t thread_id = 0;  // the system's number of the thread that submitted it
  uint32_t object_id = 0;  // the event or notify that it is about
  // For kernels, the system's number of the thread that called the first phase; 0: not known.
  uint32_t prepared_by = 0;
  // While a profile is collected (profiling_session.h): when it was submitted, and by which call.
  int64_t submitted_ns = 0;
  uint64_t submitted_by = 0;
  alignas(8) unsigned char payload[kPayloadBytes];

  void* Argument() { return inline_payload ? static_cast<void*>(payload) : argument; }
  aclError Run() { return run(Argument()); }
  // Runs it, and with the setting `poison` looks at what it may have damaged (memory.h, Guards).
  // While a profile is collected, notes when it ran.
  aclError RunGuarded();
  void Drop() {
    if (drop != nullptr) drop(Argument());
  }
};

// "aclnnIndex, prepared by thread 4711 (python3)": what a message about its failure calls the task.
std::string DescribeTask(const Task& task);

template <typename Payload>
Task MakeTask(TaskKind kind, const char* name, const Payload& payload, aclError (*run)(void*)) {
  static_assert(sizeof(Payload) <= Task::kPayloadBytes && std::is_trivially_copyable_v<Payload>);
  Task task;
  task.run = run;
  task.name = name;
  task.kind = kind;
  task.inline_payload = true;
  std::memcpy(task.payload, &payload, sizeof(payload));
  return task;
}

// The worker that runs tasks in this thread; what blocking tasks ask whether to go on waiting.
class Runner {
 public:
  explicit Runner(Stream* stream) : stream_(stream) {}

  static Runner* Current();
  static void SetCurrent(Runner* runner);

  void set_position(uint64_t position) { position_ = position; }
  // The flag of the model that runs now, or null. Aborting the model interrupts the task, too
  // (EXE-17).
  void set_model_abort(const std::atomic<bool>* aborted) { model_abort_ = aborted; }
  // True when the stream was aborted after this task was submitted, or the process is exiting.
  bool Interrupted() const;
  Stream* stream() const { return stream_; }
  // The task of the stream that runs, or null outside of one. Inside of a graph's execution it is
  // the execution.
  const Task* launched() const { return launched_; }
  void set_launched(const Task* task) { launched_ = task; }

  // While one exists, the runner's stream is blocked: nothing runs on it (workers_held.h).
  class Blocked {
   public:
    explicit Blocked(Runner* runner);
    ~Blocked();
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;

   private:
    Stream* stream_;
  };

  // Set while none of the tasks of a graph that runs can go on.
  std::optional<Standstill::Wait> stands;

 private:
  Stream* stream_;
  uint64_t position_ = 0;
  const Task* launched_ = nullptr;
  const std::atomic<bool>* model_abort_ = nullptr;
};

// Waits until `ready()`; false when the runner was interrupted or `deadline_ns` (0: none) passed.
// For conditions that nobody signals, such as a value in memory.
bool PollUntil(bool (*ready)(void*), void* argument, int64_t deadline_ns);

// Equal names share one copy that lives as long as the process.
const char* InternName(const char* name);

// Set when the process began to exit, or in a forked child: workers stand still and waits return.
bool Exiting();

}  // namespace acltape::device
