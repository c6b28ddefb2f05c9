// Lets a call that the recorder's agent makes inside the recorded program fail, the n-th of a kind.
// agent_failures.py preloads it.
//
//   ACLTAPE_FAIL=memory:17      the 17th call of the kind "memory" fails, and no other
//   ACLTAPE_FAIL=memory:17:on   the 17th fails, and all that follow
//   ACLTAPE_FAIL_COUNTS=FILE    the counts are kept here: of failures, and of the calls of each
//   kind
//
// Whose a call is. The address to which it returns lies in the library that made it. That library
// is one of the agent's, or somebody else's, or one of the system's (libc, the loader, libstdc++),
// which calls on behalf of another: strdup, dlopen, the copy of a std::string. Then the stack is
// walked to the first frame outside of these. What the agent's own wrappers pass on for the program
// (dlopen, pthread_create, prctl) is the program's.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <new>

namespace {

// agent_failures.py has the same names in this order.
enum Kind { kMemory, kMap, kOpen, kRead, kWrite, kStart, kKinds };
constexpr struct {
  const char* name;
  int error;
} kRows[kKinds] = {{"memory", ENOMEM}, {"map", ENOMEM}, {"open", EMFILE},
                   {"read", EIO},      {"write", EIO},  {"start", EAGAIN}};

struct Counts {
  std::atomic<uint64_t> failed;
  std::atomic<uint64_t> calls[kKinds];
};

Counts g_own;
Counts* g_counts = &g_own;
int g_kind = -1;  // the kind that fails; -1: none
uint64_t g_first = 0;
bool g_all = false;
std::atomic<bool> g_ready{false};
__thread bool t_looking __attribute__((tls_model("initial-exec"))) = false;

enum class Owner : uint8_t { kUnknown, kAgent, kSystem, kOther };

// A library's owner, by where the library begins. Entries are never taken out.
struct Known {
  std::atomic<uintptr_t> begin;
  Owner owner;
};
Known g_known[1024];

Owner OwnerByName(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash != nullptr ? slash + 1 : path;
  for (const char* part :
       {"libacltape_agent.so", "libacltape_acl_agent.so", "libacltape_torch.so"}) {
    if (strcmp(name, part) == 0) return Owner::kAgent;
  }
  for (const char* part :
       {"libc.so", "ld-linux", "libstdc++.so", "libgcc_s.so", "libfailing_agent"}) {
    if (strncmp(name, part, strlen(part)) == 0) return Owner::kSystem;
  }
  return Owner::kOther;
}

Owner OwnerOf(const void* address) {
  dl_find_object found;
  if (_dl_find_object(const_cast<void*>(address), &found) != 0) return Owner::kOther;
  const auto begin = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  constexpr size_t kPlaces = sizeof(g_known) / sizeof(g_known[0]);
  const size_t home = (begin >> 12) * 0x9E3779B97F4A7C15ull % kPlaces;
  for (size_t i = 0; i < kPlaces; ++i) {
    Known& known = g_known[(home + i) % kPlaces];
    const uintptr_t held = known.begin.load(std::memory_order_acquire);
    if (held == begin && known.owner != Owner::kUnknown) return known.owner;
    if (held != 0) continue;
    const Owner owner = OwnerByName(found.dlfo_link_map->l_name);
    uintptr_t none = 0;
    if (known.begin.compare_exchange_strong(none, begin)) known.owner = owner;
    return owner;
  }
  return Owner::kOther;
}

// The agent's functions that pass the program's own call on. They are looked up once, at the start:
// the loader's lock, which a look-up takes, may be held by a thread that waits for the caller.
struct Code {
  const char* begin = nullptr;
  const char* end = nullptr;
};
Code g_passing_on[3];

void FindPassingOn() {
  Code* next = g_passing_on;
  for (const char* name : {"dlopen", "pthread_create", "prctl"}) {
    const void* function = dlsym(RTLD_DEFAULT, name);
    Dl_info info;
    const ElfW(Sym)* symbol = nullptr;
    if (function != nullptr && OwnerOf(function) == Owner::kAgent &&
        dladdr1(function, &info, const_cast<void**>(reinterpret_cast<const void**>(&symbol)),
                RTLD_DL_SYMENT) != 0 &&
        symbol != nullptr) {
      const auto* begin = static_cast<const char*>(function);
      *next++ = {begin, begin + symbol->st_size};
    }
  }
}

// True for an address in one of them.
bool PassesOn(const void* address) {
  const auto* byte = static_cast<const char*>(address);
  for (const Code& code : g_passing_on) {
    if (byte >= code.begin && byte < code.end) return true;
  }
  return false;
}

struct Walk {
  Owner found = Owner::kOther;
  int depth = 0;
};

_Unwind_Reason_Code Visit(_Unwind_Context* context, void* opaque) {
  auto& walk = *static_cast<Walk*>(opaque);
  const auto* address = reinterpret_cast<const void*>(_Unwind_GetIP(context) - 1);
  const Owner owner = OwnerOf(address);
  if (++walk.depth > 64) return _URC_END_OF_STACK;
  if (owner == Owner::kSystem || (owner == Owner::kAgent && PassesOn(address))) {
    return _URC_NO_REASON;
  }
  walk.found = owner;
  return _URC_END_OF_STACK;
}

bool IsTheAgents(const void* caller) {
  const Owner owner = OwnerOf(static_cast<const char*>(caller) - 1);
  if (owner != Owner::kSystem) return owner == Owner::kAgent;
  Walk walk;
  t_looking = true;
  _Unwind_Backtrace(Visit, &walk);
  t_looking = false;
  return walk.found == Owner::kAgent;
}

// Counts a call of the agent's; true when it fails.
bool Fails(Kind kind, const void* caller) {
  if (!g_ready.load(std::memory_order_acquire) || t_looking || !IsTheAgents(caller)) return false;
  const uint64_t number = g_counts->calls[kind].fetch_add(1) + 1;
  if (kind != g_kind || number < g_first || (number > g_first && !g_all)) return false;
  g_counts->failed.fetch_add(1);
  errno = kRows[kind].error;
  return true;
}

template <typename Function>
Function Next(const char* name) {
  auto function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  if (function == nullptr) abort();
  return function;
}

__attribute__((constructor(101))) void Begin() {
  if (const char* fail = getenv("ACLTAPE_FAIL")) {
    char name[16] = "", all[4] = "";
    unsigned long first = 0;
    if (sscanf(fail, "%15[a-z]:%lu:%3s", name, &first, all) >= 2) {
      for (int kind = 0; kind < kKinds; ++kind) {
        if (strcmp(kRows[kind].name, name) == 0) g_kind = kind;
      }
    }
    g_first = first;
    g_all = strcmp(all, "on") == 0;
  }
  const char* path = getenv("ACLTAPE_FAIL_COUNTS");
  const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file >= 0) {
    if (ftruncate(file, sizeof(Counts)) == 0) {
      void* page = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (page != MAP_FAILED) g_counts = static_cast<Counts*>(page);
    }
    close(file);
  }
  FindPassingOn();
  Walk walk;
  _Unwind_Backtrace(Visit, &walk);  // everything that it loads must be loaded now
  g_ready.store(true, std::memory_order_release);
}

}  // namespace

#define CALLER __builtin_return_address(0)

// The allocator's own names, because dlsym allocates.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) { return Fails(kMemory, CALLER) ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t each) {
  return Fails(kMemory, CALLER) ? nullptr : __libc_calloc(count, each);
}
void* realloc(void* data, size_t bytes) {
  return Fails(kMemory, CALLER) ? nullptr : __libc_realloc(data, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return Fails(kMemory, CALLER) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** data, size_t alignment, size_t bytes) {
  if (Fails(kMemory, CALLER)) return ENOMEM;
  *data = __libc_memalign(alignment, bytes);
  return *data == nullptr ? ENOMEM : 0;
}
}

namespace {
void* New(size_t bytes, size_t alignment, const void* caller) {
  if (Fails(kMemory, caller)) throw std::bad_alloc();
  void* data =
      alignment == 0 ? __libc_malloc(bytes == 0 ? 1 : bytes) : __libc_memalign(alignment, bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
}  // namespace

void* operator new(size_t bytes) { return New(bytes, 0, CALLER); }
void* operator new[](size_t bytes) { return New(bytes, 0, CALLER); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return New(bytes, static_cast<size_t>(alignment), CALLER);
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return New(bytes, static_cast<size_t>(alignment), CALLER);
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Fails(kMemory, CALLER) ? nullptr : __libc_malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return Fails(kMemory, CALLER) ? nullptr : __libc_malloc(bytes == 0 ? 1 : bytes);
}

// A function that fails, or does what the next one of its name does.
#define FAILING(result, failure, kind, name, parameters, arguments)      \
  extern "C" result name parameters {                                    \
    static result(*next) parameters = Next<result(*) parameters>(#name); \
    if (Fails(kind, CALLER)) return failure;                             \
    return next arguments;                                               \
  }

FAILING(void*, MAP_FAILED, kMap, mmap,
        (void* near, size_t bytes, int protection, int flags, int file, off_t offset) noexcept,
        (near, bytes, protection, flags, file, offset))
FAILING(void*, MAP_FAILED, kMap, mmap64,
        (void* near, size_t bytes, int protection, int flags, int file, off64_t offset) noexcept,
        (near, bytes, protection, flags, file, offset))
FAILING(int, -1, kMap, madvise, (void* data, size_t bytes, int advice) noexcept,
        (data, bytes, advice))
extern "C" void* mremap(void* before, size_t old_bytes, size_t bytes, int flags, ...) noexcept {
  static auto next = Next<void* (*)(void*, size_t, size_t, int, void*)>("mremap");
  va_list rest;
  va_start(rest, flags);
  void* to = va_arg(rest, void*);
  va_end(rest);
  return Fails(kMap, CALLER) ? MAP_FAILED : next(before, old_bytes, bytes, flags, to);
}

#define OPENING(name)                                               \
  extern "C" int name(const char* path, int flags, ...) {           \
    static auto next = Next<int (*)(const char*, int, ...)>(#name); \
    va_list rest;                                                   \
    va_start(rest, flags);                                          \
    const unsigned mode = va_arg(rest, unsigned);                   \
    va_end(rest);                                                   \
    return Fails(kOpen, CALLER) ? -1 : next(path, flags, mode);     \
  }
OPENING(open)
OPENING(open64)
FAILING(FILE*, nullptr, kOpen, fopen, (const char* path, const char* mode), (path, mode))
FAILING(int, -1, kOpen, socket, (int domain, int type, int protocol) noexcept,
        (domain, type, protocol))

FAILING(ssize_t, -1, kRead, read, (int file, void* into, size_t bytes), (file, into, bytes))
FAILING(ssize_t, -1, kRead, pread, (int file, void* into, size_t bytes, off_t at),
        (file, into, bytes, at))
FAILING(ssize_t, -1, kRead, pread64, (int file, void* into, size_t bytes, off64_t at),
        (file, into, bytes, at))
FAILING(ssize_t, -1, kRead, readlink, (const char* path, char* into, size_t bytes) noexcept,
        (path, into, bytes))
FAILING(int, -1, kRead, stat, (const char* path, struct stat* into) noexcept, (path, into))
FAILING(int, -1, kRead, fstat, (int file, struct stat* into) noexcept, (file, into))
FAILING(ssize_t, -1, kRead, recvmsg, (int socket, msghdr* message, int flags),
        (socket, message, flags))
FAILING(int, -1, kRead, poll, (pollfd * files, nfds_t count, int milliseconds),
        (files, count, milliseconds))
FAILING(ssize_t, -1, kRead, process_vm_readv,
        (pid_t process, const iovec* into, unsigned long into_count, const iovec* from,
         unsigned long from_count, unsigned long flags) noexcept,
        (process, into, into_count, from, from_count, flags))

FAILING(ssize_t, -1, kWrite, write, (int file, const void* from, size_t bytes), (file, from, bytes))
FAILING(ssize_t, -1, kWrite, send, (int socket, const void* from, size_t bytes, int flags),
        (socket, from, bytes, flags))
FAILING(int, -1, kWrite, connect, (int socket, const sockaddr* to, socklen_t bytes),
        (socket, to, bytes))
FAILING(int, -1, kWrite, setsockopt,
        (int socket, int level, int name, const void* value, socklen_t bytes) noexcept,
        (socket, level, name, value, bytes))

FAILING(int, EAGAIN, kStart, pthread_key_create, (pthread_key_t * key, void (*end)(void*)) noexcept,
        (key, end))
FAILING(int, EAGAIN, kStart, pthread_setspecific, (pthread_key_t key, const void* value) noexcept,
        (key, value))
FAILING(int, ENOMEM, kStart, __register_atfork,
        (void (*before)(), void (*parent)(), void (*child)(), void* library) noexcept,
        (before, parent, child, library))
FAILING(int, -1, kStart, __cxa_atexit, (void (*at_exit)(void*), void* argument, void* library),
        (at_exit, argument, library))
