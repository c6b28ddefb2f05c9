// Makes the agent effective in an unmodified program: it is preloaded, attaches to the arena,
// notices when libtorch appears and then loads the torch plug-in.
//
// Note [dlopen and its caller]. dlopen searches the RUNPATH of the object that calls it, so a
// wrapper changes the meaning of a bare file name when the caller has one. There, and where the
// name holds a token such as $ORIGIN, the wrapper jumps to the real function as its last act, which
// keeps the caller's return address, and looks for libtorch at the next occasion instead.
//
// Note [Not while loading]. Constructors run inside dlopen, when libraries of the same load are
// mapped but not initialised; they start threads and open libraries themselves (OpenBLAS does). So
// the plug-in is loaded only when the outermost dlopen of the thread has returned.
#include <dlfcn.h>
#include <link.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <atomic>
#include <new>

#include "kit/identity.h"
#include "kit/place.h"
#include "recorder/agent/engine_steps.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/process.h"
#include "recorder/agent/sandbox.h"

namespace acltape::agent {

namespace {

using ThreadHook = void (*)();

std::atomic<ThreadHook> g_torch_thread_hook{nullptr};
std::atomic<bool> g_torch_tried{false};
thread_local int t_depth = 0;              // dlopen calls of this thread that have not returned
thread_local char* t_jumped_at = nullptr;  // the stack where one was left by a jump

// Finds libtorch in the process, once it is there, and loads the plug-in of its kit. What was built
// for another libtorch never enters the process. Failures leave the program alone.
void LookForTorch() {
  if (g_torch_tried.load(std::memory_order_relaxed) || Arena() == nullptr) return;
  const KeepErrno keep;
  const kit::LoadedTorch torch = kit::FindLoadedTorch();
  if (torch.path[0] == '\0' || g_torch_tried.exchange(true)) return;
  FollowEngineSteps();
  const char* places = getenv(kit::kPlacesVariable);
  kit::Identity identity;
  const bool known = kit::IdentityOf(torch.path, &identity);
  Tape* tape = CurrentTape();
  if (tape != nullptr && known) {
    // The operators of an ACL program can be this libtorch's too.
    tape->WriteMeta("torch_identity", identity.text);
    tape->WriteMeta("torch_library", torch.path);
  }
  if ((Arena()->levels & wire::kLevelAten) == 0 || places == nullptr) return;
  const kit::Path plugin =
      known ? kit::FindInKits(places, identity.text, kit::kPluginFile) : kit::Path{};
  if (plugin.text[0] == '\0') {
    if (tape == nullptr) return;
    char remedy[sizeof torch.path + 64];
    snprintf(remedy, sizeof remedy, "build its kit with `acltape torch add %s`", torch.path);
    tape->WriteLedger(3, 1, "torch_kit_missing", torch.path,
                      known ? "acltape has no plug-in for this libtorch, so that its operators are "
                              "not recorded"
                            : "the file of this libtorch cannot be read, so that no plug-in for it "
                              "can be found",
                      remedy);
    return;
  }
  t_depth++;
  void* loaded = dlopen(plugin.text, RTLD_NOW | RTLD_LOCAL);
  const char* error = loaded == nullptr ? dlerror() : nullptr;
  if (error != nullptr && tape != nullptr) {
    tape->WriteLedger(3, 1, "torch_plugin_failed", plugin.text, error,
                      "remove its folder and build the kit again with `acltape torch add`");
  }
  if (loaded != nullptr) {
    g_torch_thread_hook.store(
        reinterpret_cast<ThreadHook>(dlsym(loaded, "acltape_torch_enter_thread")));
    Arena()->torch_processes.fetch_add(1);
  }
  t_depth--;
}

struct ThreadStart {
  void* (*routine)(void*);
  void* argument;
  bool inside;
  std::atomic<bool> taken;  // for an element of g_starts, true if it is used
};
// Starts for the case that there is no memory: a thread that a device library starts must be known
// as its own.
ThreadStart g_starts[64];

ThreadStart* NewStart() {
  const KeepErrno keep;
  if (void* memory = malloc(sizeof(ThreadStart))) return new (memory) ThreadStart{};
  for (ThreadStart& start : g_starts) {
    if (!start.taken.exchange(true)) return &start;
  }
  return nullptr;
}

void FreeStart(ThreadStart* start) {
  if (start >= g_starts && start < g_starts + sizeof(g_starts) / sizeof(g_starts[0])) {
    start->taken.store(false);
  } else {
    free(start);
  }
}

void* StartThread(void* opaque) {
  auto* given = static_cast<ThreadStart*>(opaque);
  const struct {
    void* (*routine)(void*);
    void* argument;
    bool inside;
  } start = {given->routine, given->argument, given->inside};
  FreeStart(given);
  if (start.inside) {
    t_inside = true;
    t_tape = kNoTape;
    return start.routine(start.argument);
  }
  if (ThreadHook hook = g_torch_thread_hook.load(std::memory_order_acquire)) hook();
  return start.routine(start.argument);
}

// True when the object that holds `address` has a search path of its own.
bool HasRunPath(void* address) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return true;
  for (const ElfW(Dyn)* entry = map->l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH) return true;
  }
  return false;
}

bool CallerMatters(const char* file, void* caller) {
  if (file == nullptr || strchr(file, '$') != nullptr) return file != nullptr;
  return strchr(file, '/') == nullptr && HasRunPath(caller);
}

using DlopenFunction = void* (*)(const char*, int);
using PrctlFunction = int (*)(int, unsigned long, unsigned long, unsigned long, unsigned long);
using CreateFunction = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

DlopenFunction g_dlopen = nullptr;

__attribute__((constructor)) void Begin() {
  g_dlopen = NextFunction<DlopenFunction>("dlopen");
  const bool closes = PrepareThreadEnd();
  if (!Attach()) return;
  if (closes) {
    LookForTorch();
  } else {
    LeaveOut(wire::LeftOut::kProcesses);
    ThisProcess().arena = nullptr;
  }
}

__attribute__((destructor)) void Finish() { CloseTape(true); }

}  // namespace
}  // namespace acltape::agent

extern "C" {

ACLTAPE_AGENT_API __attribute__((optimize("O2"))) void* dlopen(const char* file, int mode) {
  using namespace acltape::agent;
  if (g_dlopen == nullptr) g_dlopen = NextFunction<DlopenFunction>("dlopen");
  if (Arena() == nullptr) return g_dlopen(file, mode);
  char* frame = static_cast<char*>(__builtin_frame_address(0));
  if (t_jumped_at != nullptr && frame >= t_jumped_at) t_jumped_at = nullptr;
  if (CallerMatters(file, __builtin_return_address(0))) {
    if (t_jumped_at == nullptr) t_jumped_at = frame;
    return g_dlopen(file, mode);  // a tail call, see Note [dlopen and its caller]
  }
  t_depth++;
  void* handle = g_dlopen(file, mode);
  t_depth--;
  if (handle != nullptr && t_depth == 0 && t_jumped_at == nullptr) LookForTorch();
  return handle;
}

// A thread's very first operator is seen only if its thread-local dispatch keys are set before.
ACLTAPE_AGENT_API int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                     void* (*routine)(void*), void* argument) {
  using namespace acltape::agent;
  static CreateFunction create = nullptr;
  if (create == nullptr) create = NextFunction<CreateFunction>("pthread_create");
  if (Arena() == nullptr) return create(thread, attributes, routine, argument);
  ThreadStart* start = NewStart();
  if (start == nullptr) {
    LeaveOut(acltape::wire::LeftOut::kCalls);
    return create(thread, attributes, routine, argument);
  }
  start->routine = routine;
  start->argument = argument;
  start->inside = t_inside;
  const int result = create(thread, attributes, StartThread, start);
  if (result != 0) FreeStart(start);
  return result;
}

// See Note [Sandboxes that kill] in sandbox.cpp and Note [Counters that are forbidden] in clock.h.
// What the caller did not give is passed on as it
// lies there, as libc does.
ACLTAPE_AGENT_API int prctl(int option, ...) {
  using namespace acltape::agent;
  va_list rest;
  va_start(rest, option);
  unsigned long values[4];
  for (unsigned long& value : values) value = va_arg(rest, unsigned long);
  va_end(rest);
  static PrctlFunction real = nullptr;
  if (real == nullptr) real = NextFunction<PrctlFunction>("prctl");
  if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS) PrepareForSandbox();
  if (const acltape::wire::ArenaHeader* arena = Arena(); arena != nullptr) {
    const bool forbids = option == PR_SET_TSC && values[0] == PR_TSC_SIGSEGV;
    const bool strict = option == PR_SET_SECCOMP && values[0] == SECCOMP_MODE_STRICT;
    if (forbids || strict) ChangeClock(strict ? Clock::kNone : Clock::kSystem, *arena);
  }
  return real(option, values[0], values[1], values[2], values[3]);
}

}  // extern "C"
