// The way in for kernels of the operator library (runtime/kernel_launch.h).
#include "runtime/device/call.h"
#include "runtime/device/findings.h"
#include "runtime/device/function.h"
#include "runtime/device/profile.h"
#include "runtime/prepared_launch.h"

using namespace acltape::device;

namespace {

Task KernelTask(const char* name, SoftKernelRun run, SoftKernelDrop drop, void* bound) {
  Task task;
  task.run = run;
  task.drop = drop;
  task.argument = bound;
  task.name = InternName(name);
  task.kind = TaskKind::kKernel;
  return task;
}

}  // namespace

aclError SoftLaunchKernel(aclrtStream stream, const char* name, SoftKernelRun run,
                          SoftKernelDrop drop, void* bound) {
  return SoftLaunchPreparedKernel(stream, name, 0, run, drop, bound);
}

aclError SoftLaunchPreparedKernel(aclrtStream stream, const char* name, uint32_t prepared_by,
                                  SoftKernelRun run, SoftKernelDrop drop, void* bound) {
  Task task = KernelTask(name, run, drop, bound);
  const ProfiledCall profiled(task.name);
  task.prepared_by = prepared_by;
  Stream* found = nullptr;
  if (aclError code = FindStream(stream, task.name, &found); code != ACL_SUCCESS) {
    task.Drop();
    return code;
  }
  return SubmitTask(*found, std::move(task));
}

aclError SoftInjectedFault(const char* call) {
  ACLTAPE_RETURN_IF_REFUSED(call);
  return ACL_SUCCESS;
}

bool SoftFlipsBits(const char* name) { return FaultsGiven() && FlipsBits(name); }

void SoftFlipBits(const char* name, const SoftOutput* outputs, size_t count) {
  FlipBits(name, outputs, count);
}

aclError SoftLaunchKernelWithArgs(aclrtStream stream, const char* name, SoftKernelRun run,
                                  const void* args, size_t bytes) {
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, name, &found));
  return SubmitTask(*found, KernelTaskWithArgs(name, run, args, bytes));
}

const char* SoftDescribe(void) {
  static const std::string& text = *new std::string([] {
    const Profile& profile = GetProfile();
    std::string members = "{\"generator\":" + std::to_string(profile.generator);
    const std::pair<const char*, uint64_t> modes[] = {
        {"jitter", profile.jitter_seed}, {"order", profile.order}, {"poison", profile.poison}};
    for (const auto& [name, value] : modes) {
      if (value != 0) members += ",\"" + std::string(name) + "\":" + std::to_string(value);
    }
    if (!profile.computes) members += ",\"compute\":\"nothing\"";
    return members + "}";
  }());
  return text.c_str();
}

bool SoftWatchesReads(void) { return GetProfile().poison && KeepsFindings(); }

void SoftReportUnwrittenRead(const char* op, const char* what) {
  ReportFinding(kUnwrittenRead, op, what);
}

int SoftRandomGenerator(void) { return static_cast<int>(GetProfile().generator); }

const char* SoftErrorMessage(void) { return OwnMessage(); }

void SoftSetErrorMessage(const char* text) { SetMessage(text != nullptr ? text : ""); }

aclError SoftSetLastError(aclError code) { return SetLastError(code); }
