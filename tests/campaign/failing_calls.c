// Lets a call that `acltape record` makes fail, the n-th of a kind. failures.py preloads it.
//
//   ACLTAPE_FAIL=write:17      the 17th call of the kind "write" fails, and no other
//   ACLTAPE_FAIL=write:17:on   the 17th fails, and all that follow
//   ACLTAPE_FAIL_COUNTS=FILE   the counts are kept here: of failures, and of the calls of each
//   group
//
// Calls count from the creation of the shared memory on, because that is where a recording begins.
// The recorded program does not get this library. Writes to the standard streams never fail here,
// because a sentence must come out. Of SQLite's functions only calls from outside of SQLite fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum Group { kMemory, kWrite, kMap, kOpen, kRead, kStart, kSqlite, kGroups };

// The result of a failed call of each kind. failures.py has the same names.
static const struct {
  const char* name;
  enum Group group;
  int error;  // errno, or a code of SQLite
} kKinds[] = {{"memory", kMemory, ENOMEM}, {"write", kWrite, EIO},
              {"full", kWrite, ENOSPC},    {"map", kMap, ENOMEM},
              {"open", kOpen, EMFILE},     {"read", kRead, EIO},
              {"start", kStart, EAGAIN},   {"sqlite", kSqlite, SQLITE_IOERR}};

struct Counts {
  _Atomic uint64_t failed;
  _Atomic uint64_t calls[kGroups];
};

static struct Counts g_own;
static struct Counts* g_counts = &g_own;
static int g_group = -1;  // the group that fails; -1: none
static int g_error = 0;
static uint64_t g_first = 0;
static bool g_all = false;
static atomic_bool g_counting = false;

// Counts a call; true when it fails.
static bool Fails(enum Group group) {
  if (!atomic_load_explicit(&g_counting, memory_order_relaxed)) return false;
  const uint64_t number = atomic_fetch_add(&g_counts->calls[group], 1) + 1;
  if ((int)group != g_group || number < g_first || (number > g_first && !g_all)) return false;
  atomic_fetch_add(&g_counts->failed, 1);
  errno = g_error;
  return true;
}

static void* Next(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  if (function == NULL) abort();
  return function;
}

// True when the caller at `address` is no part of SQLite itself.
static bool IsOutside(void* address) {
  static void* sqlite = NULL;
  Dl_info info;
  if (sqlite == NULL && dladdr(Next("sqlite3_step"), &info) != 0) sqlite = info.dli_fbase;
  return dladdr(address, &info) == 0 || info.dli_fbase != sqlite;
}

__attribute__((constructor)) static void Begin(void) {
  const char* fail = getenv("ACLTAPE_FAIL");
  char name[16] = "", all[4] = "";
  unsigned long first = 0;
  if (fail != NULL && sscanf(fail, "%15[a-z]:%lu:%3s", name, &first, all) >= 2) {
    for (size_t i = 0; i < sizeof(kKinds) / sizeof(kKinds[0]); ++i) {
      if (strcmp(kKinds[i].name, name) != 0) continue;
      g_group = (int)kKinds[i].group;
      g_error = kKinds[i].error;
    }
    g_first = first;
    g_all = strcmp(all, "on") == 0;
  }
  const char* path = getenv("ACLTAPE_FAIL_COUNTS");
  const int file = path == NULL ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file >= 0) {
    if (ftruncate(file, sizeof(struct Counts)) == 0) {
      void* page = mmap(NULL, sizeof(struct Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (page != MAP_FAILED) g_counts = page;
    }
    close(file);
  }
  unsetenv("LD_PRELOAD");
  unsetenv("ACLTAPE_FAIL");
  unsetenv("ACLTAPE_FAIL_COUNTS");
}

// A function that fails with -1, or does what the next one of its name does.
#define FAILING(result, failure, condition, group, name, parameters, arguments) \
  result name parameters {                                                      \
    static result(*next) parameters = NULL;                                     \
    if (next == NULL) next = Next(#name);                                       \
    if ((condition) && Fails(group)) return failure;                            \
    return next arguments;                                                      \
  }

// The allocator's own names, because dlsym allocates.
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) { return Fails(kMemory) ? NULL : __libc_malloc(bytes); }
void* calloc(size_t count, size_t each) {
  return Fails(kMemory) ? NULL : __libc_calloc(count, each);
}
void* realloc(void* data, size_t bytes) {
  return Fails(kMemory) ? NULL : __libc_realloc(data, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return Fails(kMemory) ? NULL : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** data, size_t alignment, size_t bytes) {
  if (Fails(kMemory)) return ENOMEM;
  *data = __libc_memalign(alignment, bytes);
  return *data == NULL ? ENOMEM : 0;
}

#define IS_FILE (file > STDERR_FILENO)
FAILING(ssize_t, -1, IS_FILE, kWrite, write, (int file, const void* from, size_t bytes),
        (file, from, bytes))
FAILING(ssize_t, -1, IS_FILE, kWrite, pwrite, (int file, const void* from, size_t bytes, off_t at),
        (file, from, bytes, at))
FAILING(ssize_t, -1, IS_FILE, kWrite, pwrite64,
        (int file, const void* from, size_t bytes, off64_t at), (file, from, bytes, at))
FAILING(ssize_t, -1, IS_FILE, kWrite, pwritev,
        (int file, const struct iovec* parts, int count, off_t at), (file, parts, count, at))
FAILING(ssize_t, -1, IS_FILE, kWrite, pwritev64,
        (int file, const struct iovec* parts, int count, off64_t at), (file, parts, count, at))
FAILING(int, -1, IS_FILE, kWrite, ftruncate, (int file, off_t bytes), (file, bytes))
FAILING(int, -1, IS_FILE, kWrite, ftruncate64, (int file, off64_t bytes), (file, bytes))
FAILING(int, -1, IS_FILE, kWrite, fallocate, (int file, int mode, off_t at, off_t bytes),
        (file, mode, at, bytes))
FAILING(int, -1, IS_FILE, kWrite, fallocate64, (int file, int mode, off64_t at, off64_t bytes),
        (file, mode, at, bytes))
FAILING(int, g_error, IS_FILE, kWrite, posix_fallocate, (int file, off_t at, off_t bytes),
        (file, at, bytes))
FAILING(int, g_error, IS_FILE, kWrite, posix_fallocate64, (int file, off64_t at, off64_t bytes),
        (file, at, bytes))

FAILING(void*, MAP_FAILED, true, kMap, mmap,
        (void* near, size_t bytes, int protection, int flags, int file, off_t at),
        (near, bytes, protection, flags, file, at))
FAILING(void*, MAP_FAILED, true, kMap, mmap64,
        (void* near, size_t bytes, int protection, int flags, int file, off64_t at),
        (near, bytes, protection, flags, file, at))

// memfd_create begins the recording, and is itself the first call that can fail.
int memfd_create(const char* name, unsigned flags) {
  static int (*next)(const char*, unsigned) = NULL;
  if (next == NULL) next = Next("memfd_create");
  atomic_store(&g_counting, true);
  return Fails(kOpen) ? -1 : next(name, flags);
}
FAILING(FILE*, NULL, true, kOpen, fopen, (const char* path, const char* mode), (path, mode))
FAILING(FILE*, NULL, true, kOpen, fopen64, (const char* path, const char* mode), (path, mode))
FAILING(int, -1, true, kOpen, socket, (int domain, int type, int protocol),
        (domain, type, protocol))

#define OPENING(name)                                   \
  int name(const char* path, int flags, ...) {          \
    static int (*next)(const char*, int, ...) = NULL;   \
    if (next == NULL) next = Next(#name);               \
    va_list rest;                                       \
    va_start(rest, flags);                              \
    const unsigned mode = va_arg(rest, unsigned);       \
    va_end(rest);                                       \
    return Fails(kOpen) ? -1 : next(path, flags, mode); \
  }
OPENING(open)
OPENING(open64)

FAILING(ssize_t, -1, IS_FILE, kRead, read, (int file, void* into, size_t bytes),
        (file, into, bytes))
FAILING(ssize_t, -1, IS_FILE, kRead, pread, (int file, void* into, size_t bytes, off_t at),
        (file, into, bytes, at))
FAILING(ssize_t, -1, IS_FILE, kRead, pread64, (int file, void* into, size_t bytes, off64_t at),
        (file, into, bytes, at))

FAILING(int, -1, true, kStart, pipe2, (int ends[2], int flags), (ends, flags))
FAILING(int, -1, true, kStart, socketpair, (int domain, int type, int protocol, int ends[2]),
        (domain, type, protocol, ends))
FAILING(int, g_error, true, kStart, pthread_create,
        (pthread_t * thread, const pthread_attr_t* attributes, void* (*routine)(void*),
         void* argument),
        (thread, attributes, routine, argument))

// A child is on its way to the recorded program, or the recorder's keeper; nothing fails there.
pid_t fork(void) {
  static pid_t (*next)(void) = NULL;
  if (next == NULL) next = Next("fork");
  if (Fails(kStart)) return -1;
  const pid_t child = next();
  if (child == 0) atomic_store(&g_counting, false);
  return child;
}

#define IS_OUTSIDE (atomic_load(&g_counting) && IsOutside(__builtin_return_address(0)))
FAILING(int, g_error, IS_OUTSIDE, kSqlite, sqlite3_step, (sqlite3_stmt * statement), (statement))
FAILING(int, g_error, IS_OUTSIDE, kSqlite, sqlite3_exec,
        (sqlite3 * database, const char* sql, int (*row)(void*, int, char**, char**),
         void* argument, char** error),
        (database, sql, row, argument, error))
FAILING(int, g_error, IS_OUTSIDE, kSqlite, sqlite3_prepare_v3,
        (sqlite3 * database, const char* sql, int bytes, unsigned flags, sqlite3_stmt** statement,
         const char** tail),
        (database, sql, bytes, flags, statement, tail))
FAILING(int, g_error, IS_OUTSIDE, kSqlite, sqlite3_open_v2,
        (const char* path, sqlite3** database, int flags, const char* layer),
        (path, database, flags, layer))
