// The way in for tasks that wait for other threads or processes (runtime/waiting_launch.h).
#include "runtime/device/call.h"
#include "runtime/device/standstill.h"
#include "runtime/waiting_launch.h"

using namespace acltape::device;

namespace {

aclError Submit(aclrtStream stream, const char* name, SoftKernelRun run, SoftTaskReady ready,
                SoftKernelDrop drop, void* bound, Task task) {
  task.run = run;
  if (GetProfile().computes) task.ready = ready;
  task.drop = drop;
  task.argument = bound;
  task.name = InternName(name);
  Stream* found = nullptr;
  if (aclError code = FindStream(stream, task.name, &found); code != ACL_SUCCESS) {
    task.Drop();
    return code;
  }
  return SubmitTask(*found, std::move(task));
}

}  // namespace

aclError SoftLaunchWaiting(aclrtStream stream, const char* name, SoftKernelRun run,
                           SoftTaskReady ready, SoftKernelDrop drop, void* bound) {
  return Submit(stream, name, run, ready, drop, bound, Task());
}

aclError SoftLaunchWaitingKernel(aclrtStream stream, const char* name, uint32_t prepared_by,
                                 SoftKernelRun run, SoftTaskReady ready, SoftKernelDrop drop,
                                 void* bound) {
  Task task;
  task.kind = TaskKind::kKernel;
  task.prepared_by = prepared_by;
  return Submit(stream, name, run, ready, drop, bound, std::move(task));
}

bool SoftTaskInterrupted(void) {
  const Runner* runner = Runner::Current();
  return runner != nullptr && runner->Interrupted();
}

void SoftTaskSleeps(bool sleeps) {
  const Runner* runner = Runner::Current();
  if (runner != nullptr) runner->stream()->blocked.store(sleeps);
}

void SoftWorkIsShared(void) { Standstill::MemoryIsShared(); }
