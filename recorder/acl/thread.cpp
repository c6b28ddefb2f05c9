#include "recorder/acl/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/acl.h"
#include "recorder/acl/communicators.h"
#include "recorder/acl/device_times.h"
#include "recorder/acl/handles.h"
#include "recorder/acl/marks.h"
#include "recorder/acl/memory.h"
#include "recorder/acl/message_groups.h"
#include "recorder/acl/messages.h"
#include "recorder/acl/objects.h"
#include "recorder/acl/operators.h"
#include "recorder/acl/real.h"
#include "recorder/acl/values.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/soft_device.h"
#include "recorder/agent/window.h"

namespace acltape::acl_agent {

namespace {

pthread_key_t g_end_key;
// Without its key a thread's memory would never be given back, and without the handler of forks a
// child would wait for locks for ever: then nothing is recorded.
bool g_usable = false;
std::atomic<uint32_t> g_process_counted{0};

__thread Thread* t_thread __attribute__((tls_model("initial-exec"))) = nullptr;

void EndThread(void* opaque) {
  auto* thread = static_cast<Thread*>(opaque);
  if (t_thread == thread) t_thread = nullptr;
  ForgetMessages();
  ForgetGroup();
  free(thread->signature.data);
  free(thread->slots);
  free(thread->op_rows);
  free(thread);
}

void AfterForkInChild() {
  t_thread = nullptr;
  g_process_counted.store(0);
  ForgetMemoryLocks();
  ForgetHandleLocks();
  ForgetCommunicatorLocks();
  ForgetObjectLocks();
  ForgetMarkLocks();
  ForgetMessageLocks();
  ForgetExecutorLocks();
  ForgetValueLocks();
  ForgetDeviceTimeLocks();
}

__attribute__((constructor)) void Begin() {
  const agent::KeepErrno keep;
  g_usable = pthread_key_create(&g_end_key, EndThread) == 0 &&
             pthread_atfork(nullptr, nullptr, AfterForkInChild) == 0;
  if (!g_usable) agent::LeaveOut(wire::LeftOut::kProcesses);
}

__attribute__((noinline)) Thread* NewThread(agent::Tape* tape) {
  if (!g_usable) return nullptr;
  const agent::KeepErrno keep;
  Thread* thread = t_thread;
  if (thread == nullptr) {
    thread = static_cast<Thread*>(calloc(1, sizeof(Thread)));
    if (thread != nullptr) {
      thread->slots = static_cast<uint64_t*>(malloc(Thread::kMaxSlots * sizeof(uint64_t)));
      thread->op_rows = static_cast<uint32_t*>(calloc(kMaxFunctions, sizeof(uint32_t)));
    }
    if (thread == nullptr || thread->slots == nullptr || thread->op_rows == nullptr ||
        pthread_setspecific(g_end_key, thread) != 0) {
      if (thread != nullptr) EndThread(thread);
      agent::LeaveOut(wire::LeftOut::kCalls);
      return nullptr;
    }
    t_thread = thread;
  }
  std::memset(thread->op_rows, 0, kMaxFunctions * sizeof(uint32_t));
  thread->tape = tape;
  tape->meets_acl = true;
  thread->device = -1;
  if (g_process_counted.exchange(1) == 0) {
    agent::Arena()->acl_processes.fetch_add(1);
    agent::ReportSoftDevice(*tape);
  }
  return thread;
}

}  // namespace

Thread* Enter() {
  agent::Tape* tape = agent::CurrentTape();
  if (tape == nullptr) return nullptr;
  Thread* thread = t_thread;
  if (__builtin_expect(thread == nullptr || thread->tape != tape, 0)) {
    if ((tape->arena->levels & wire::kLevelAcl) == 0) return nullptr;
    thread = NewThread(tape);
  }
  return thread;
}

void NoticeWindow(Thread& thread) {
  thread.muted = !agent::IsOpen(*thread.tape);
  if (__builtin_expect(thread.muted || thread.window == thread.tape->window, 1)) return;
  thread.window = thread.tape->window;
  ForgetContents(thread.window);
}

int32_t CurrentDevice(Thread& thread) {
  if (thread.device >= 0) return thread.device;
  using Function = aclError (*)(int32_t*);
  static Function get_device = nullptr;
  if (get_device == nullptr) get_device = reinterpret_cast<Function>(RealByName("aclrtGetDevice"));
  int32_t device = 0;
  const Inside inside(thread);
  const bool known = get_device != nullptr && get_device(&device) == ACL_SUCCESS;
  if (!known) return 0;
  thread.device = device;
  return device;
}

uint32_t Thread::OpIndex(uint32_t function, uint32_t dialect, const char* name,
                         const char* schema) {
  const uint32_t known = op_rows[function];
  if (__builtin_expect(known != 0, 1)) return known - 1;
  const uint32_t index = tape->next_op++;
  op_rows[function] = index + 1;
  const char* texts[] = {name, "", schema};
  tape->WriteWithTexts(wire::OpRecord{{wire::RecordKind::kOp, 0, 0}, index, dialect}, texts, 3);
  return index;
}

void WriteCall(Thread& thread, const FinishedCall& call) {
  agent::Tape* tape = thread.tape;
  for (uint32_t slot = 0; slot < thread.slot_count; ++slot)
    RecordFirstUse(thread, thread.slots[slot]);
  if (thread.signature.lost && !thread.signature.too_long) {
    agent::LeaveOut(wire::LeftOut::kArguments);
    thread.BeginEncoding();
  }
  if (thread.signature.lost) {
    tape->WriteLedger(2, 1, "arguments_too_long", "calls of the ACL interface",
                      "a call has more than a megabyte of arguments, which were left out",
                      "none known");
    thread.BeginEncoding();
  }
  const size_t slot_bytes = 8 * size_t{thread.slot_count};
  const size_t extra = slot_bytes + thread.signature.size;
  uint32_t total = 0;
  auto* record = tape->Begin<wire::AclCallRecord>(wire::RecordKind::kAclCall, extra, &total);
  if (record == nullptr) return tape->CountCall();
  record->call_id = call.call_id;
  record->parent_id = call.parent_id;
  record->begin_tick = call.begin_tick;
  record->end_tick = call.end_tick;
  record->prepare_ticks = call.prepare_ticks;
  record->op_index = call.op_index;
  record->signature_bytes = static_cast<uint32_t>(thread.signature.size);
  record->stream_id = static_cast<uint32_t>(call.stream_id);
  record->model_id = static_cast<uint32_t>(call.model_id);
  record->status = call.status;
  record->slot_count = static_cast<uint16_t>(thread.slot_count);
  record->phase = wire::Phase::kForward;
  record->launched = call.launched ? 1 : 0;
  record->place_id = call.place_id;
  record->lasting = call.lasting ? 1 : 0;
  auto* out = reinterpret_cast<std::byte*>(record + 1);
  if (thread.signature.size != 0) std::memcpy(out, thread.signature.data, thread.signature.size);
  if (slot_bytes != 0) std::memcpy(out + thread.signature.size, thread.slots, slot_bytes);
  tape->End(total);
  tape->last_tick = call.end_tick;
  tape->CountCall();
}

}  // namespace acltape::acl_agent
