#include "runtime/device/task.h"

#include <time.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <string>
#include <unordered_set>

#include "runtime/device/futex.h"
#include "runtime/device/memory.h"
#include "runtime/device/profile.h"
#include "runtime/device/profiling_session.h"
#include "runtime/device/standstill.h"
#include "runtime/device/stream.h"

namespace acltape::device {
namespace {

thread_local constinit Runner* current_runner = nullptr;

struct Names {
  std::mutex mutex;
  std::unordered_set<std::string> set;
};

Names& GetNames() {
  static Names& names = *new Names;  // outlives late tasks
  return names;
}

// Names seen by this thread, by the address they came from: callers pass string literals.
struct CachedName {
  const char* address;
  const char* interned;
};
thread_local constinit CachedName cached_names[64] = {};

// The name of a thread of this process; empty when it has ended.
std::string ThreadName(uint32_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

aclError ComputeNothing(void*) { return ACL_SUCCESS; }

aclError Task::RunGuarded() {
  const Runner* runner = ProfilingSession::On() ? Runner::Current() : nullptr;
  const bool noted = runner != nullptr && runner->stream() != nullptr;
  const int64_t begin_ns = noted ? ProfilingSession::NowNs() : 0;
  const aclError code = Run();
  if (noted) [[unlikely]]
    ProfilingSession::Get().NoteTask(*this, *runner, begin_ns, ProfilingSession::NowNs());
  const bool of_program = kind == TaskKind::kKernel || kind == TaskKind::kCallback;
  if (code != ACL_SUCCESS || !of_program || !GetProfile().poison) return code;
  return CheckGuards(*name != '\0' ? name : "a host function");
}

std::string DescribeTask(const Task& task) {
  std::string text = task.name;
  if (task.prepared_by == 0) return text;
  text += ", prepared by thread " + std::to_string(task.prepared_by);
  const std::string name = ThreadName(task.prepared_by);
  return name.empty() ? text : text + " (" + name + ")";
}

Runner* Runner::Current() { return current_runner; }
void Runner::SetCurrent(Runner* runner) { current_runner = runner; }

bool Runner::Interrupted() const {
  return stream_->Interrupted(position_) || Exiting() ||
         (model_abort_ != nullptr && model_abort_->load(std::memory_order_relaxed));
}

Runner::Blocked::Blocked(Runner* runner) : stream_(runner != nullptr ? runner->stream_ : nullptr) {
  if (stream_ != nullptr) stream_->blocked.store(true);
}
Runner::Blocked::~Blocked() {
  if (stream_ != nullptr) stream_->blocked.store(false);
}

bool PollUntil(bool (*ready)(void*), void* argument, int64_t deadline_ns) {
  if (SpinUntil([&] { return ready(argument); })) return true;
  const Runner::Blocked blocked(Runner::Current());
  const Standstill::Wait wait(deadline_ns == 0 && Runner::Current() != nullptr);
  int64_t pause_ns = 10000;
  while (!ready(argument)) {
    Runner* runner = Runner::Current();
    if (runner != nullptr && runner->Interrupted()) return false;
    if (deadline_ns != 0 && NowNs() >= deadline_ns) return false;
    timespec pause{0, pause_ns};
    nanosleep(&pause, nullptr);
    pause_ns = std::min<int64_t>(pause_ns * 2, 500000);
  }
  return true;
}

const char* InternName(const char* name) {
  if (name == nullptr) return "";
  CachedName& cached = cached_names[(reinterpret_cast<uintptr_t>(name) >> 3) % 64];
  // The bytes at an address may have changed, so the text decides.
  if (cached.address == name && std::strcmp(cached.interned, name) == 0) return cached.interned;
  Names& names = GetNames();
  std::lock_guard lock(names.mutex);
  cached = {name, names.set.emplace(name).first->c_str()};
  return cached.interned;
}

}  // namespace acltape::device
