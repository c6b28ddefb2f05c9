// An allocator in which each call takes the same instructions, whatever was allocated before. That
// of glibc takes some 100 more or fewer by how the heap happens to lie, which changes with any
// change of the environment and would hide what the recorder adds.
//
// A block has a size of a power of two and comes from the free list of its size, or else from fresh
// memory. It never changes its size. The line in front of it tells its size.
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { kLine = 64, kSizes = 48, kFreshBytes = 8 << 20 };

struct Front {
  struct Front* next;  // in its free list
  char*
      begin;  // start of the whole block, whose first line this is unless the caller asked for alignment
  unsigned size;  // the whole block has 2^size bytes
};

static struct Front* g_free[kSizes];
static char* g_fresh = NULL;
static size_t g_fresh_bytes = 0;
static atomic_flag g_lock = ATOMIC_FLAG_INIT;

static char* Fresh(size_t bytes) {
  if (bytes > g_fresh_bytes) {
    g_fresh_bytes = bytes > kFreshBytes ? bytes : kFreshBytes;
    g_fresh = mmap(NULL, g_fresh_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g_fresh == MAP_FAILED) {
      g_fresh_bytes = 0;
      return NULL;
    }
  }
  char* block = g_fresh;
  g_fresh += bytes;
  g_fresh_bytes -= bytes;
  return block;
}

static struct Front* FrontOf(void* data) { return (struct Front*)((char*)data - kLine); }

static size_t RoomOf(void* data) {
  const struct Front* front = FrontOf(data);
  return (size_t)(front->begin + ((size_t)1 << front->size) - (char*)data);
}

void* malloc(size_t bytes) {
  if (bytes > PTRDIFF_MAX - kLine) {
    errno = ENOMEM;
    return NULL;
  }
  const unsigned size = 64 - (unsigned)__builtin_clzll(bytes + kLine);
  while (atomic_flag_test_and_set_explicit(&g_lock, memory_order_acquire)) {
  }
  struct Front* front = g_free[size];
  if (front != NULL) {
    g_free[size] = front->next;
  } else {
    front = (struct Front*)Fresh((size_t)1 << size);
  }
  atomic_flag_clear_explicit(&g_lock, memory_order_release);
  if (front == NULL) {
    errno = ENOMEM;
    return NULL;
  }
  front->begin = (char*)front;
  front->size = size;
  return (char*)front + kLine;
}

void free(void* data) {
  if (data == NULL) return;
  const struct Front* front = FrontOf(data);
  const unsigned size = front->size;
  struct Front* whole = (struct Front*)front->begin;
  while (atomic_flag_test_and_set_explicit(&g_lock, memory_order_acquire)) {
  }
  whole->next = g_free[size];
  g_free[size] = whole;
  atomic_flag_clear_explicit(&g_lock, memory_order_release);
}

void* calloc(size_t count, size_t each) {
  size_t bytes;
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  void* data = malloc(bytes);
  return data == NULL ? NULL : memset(data, 0, bytes);
}

void* realloc(void* data, size_t bytes) {
  if (data == NULL) return malloc(bytes);
  if (bytes == 0) {
    free(data);
    return NULL;
  }
  const size_t room = RoomOf(data);
  if (bytes <= room) return data;
  void* larger = malloc(bytes);
  if (larger == NULL) return NULL;
  memcpy(larger, data, room);
  free(data);
  return larger;
}

void* memalign(size_t alignment, size_t bytes) {
  if (alignment <= kLine) return malloc(bytes);
  if (bytes > PTRDIFF_MAX - alignment) {
    errno = ENOMEM;
    return NULL;
  }
  char* data = malloc(bytes + alignment);
  if (data == NULL) return NULL;
  const struct Front whole = *FrontOf(data);
  char* aligned = (char*)(((uintptr_t)data + alignment - 1) & -(uintptr_t)alignment);
  struct Front* front = FrontOf(aligned);
  front->begin = whole.begin;
  front->size = whole.size;
  return aligned;
}

int posix_memalign(void** data, size_t alignment, size_t bytes) {
  *data = memalign(alignment, bytes);
  return *data == NULL ? ENOMEM : 0;
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void* valloc(size_t bytes) { return memalign(4096, bytes); }
void* pvalloc(size_t bytes) { return memalign(4096, (bytes + 4095) & ~(size_t)4095); }
size_t malloc_usable_size(void* data) { return data == NULL ? 0 : RoomOf(data); }
