// Finds the arena that the collector announced and maps it into this process.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/agent/arena_request.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/native_stack.h"
#include "recorder/agent/process.h"
#include "recorder/agent/source_line.h"
#include "recorder/agent/window.h"
#include "recorder/wire/arena_request.h"

namespace acltape::agent {

namespace {

Process g_process;
char g_program_path[4096] = "";

// Rings of which all together need no more address space are mapped when the process attaches, so
// that a thread that claims one asks the system for nothing (Note [Sandboxes that kill]). More are
// not: a program may have a limit on its address space, or set one. Rings that are not in use stay
// mapped within the same bound.
constexpr size_t kMostMappedAtOnce = size_t{64} << 20;

// A new descriptor of what lies at the arena's path; negative when it cannot be opened.
int OpenArena() {
  const char* path = getenv(wire::kArenaVariable);
  if (path == nullptr || *path == '\0') return -1;
  return open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

// Reads the header of the arena that `fd` names. Elsewhere the same path can lead to any file, also
// to another recording's arena, which has another socket.
wire::ArenaHeader* MapHeader(int fd, const char* socket) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size < static_cast<off_t>(wire::kPage)) {
    return nullptr;
  }
  void* page = mmap(nullptr, wire::kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return nullptr;
  auto* header = static_cast<wire::ArenaHeader*>(page);
  if (header->magic == wire::kArenaMagic && header->version == wire::kArenaVersion &&
      (socket == nullptr || strncmp(header->socket, socket, wire::kSocketBytes) == 0)) {
    return header;
  }
  munmap(page, wire::kPage);
  return nullptr;
}

// True when the descriptor is of the arena that this process is attached to.
bool IsOurArena(int fd) {
  wire::ArenaHeader* header = MapHeader(fd, g_process.arena->socket);
  if (header == nullptr) return false;
  const bool ours = header->collector_pid.load() == g_process.arena->collector_pid.load();
  munmap(header, wire::kPage);
  return ours;
}

std::byte* MapSlots(int fd, const wire::ArenaHeader& header) {
  const size_t bytes = wire::kPage * size_t{header.slot_count};
  void* slots = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, wire::kPage);
  return slots != MAP_FAILED ? static_cast<std::byte*>(slots) : nullptr;
}

// All rings, each twice in a row; null when they are too many, or the system refuses.
std::byte* MapRings(int fd, const wire::ArenaHeader& header) {
  const size_t bytes = header.ring_bytes;
  const size_t all = 2 * bytes * header.slot_count;
  if (all > kMostMappedAtOnce) return nullptr;
  void* room = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* place = static_cast<std::byte*>(room);
  for (uint32_t half = 0; half < 2 * header.slot_count; ++half, place += bytes) {
    const auto offset = static_cast<off_t>(wire::RingOffset(header, half / 2));
    if (mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset) ==
        MAP_FAILED) {
      munmap(room, all);
      return nullptr;
    }
  }
  return static_cast<std::byte*>(room);
}

// Maps header, slots and a few rings of the arena that `fd` names and closes it: wire::MapRing
// needs none, see Note [No descriptor is kept].
bool MapArena(int fd, const char* socket) {
  if (fd < 0) return false;
  wire::ArenaHeader* header = MapHeader(fd, socket);
  std::byte* slots = header != nullptr ? MapSlots(fd, *header) : nullptr;
  if (slots != nullptr) g_process.rings = MapRings(fd, *header);
  close(fd);
  if (slots == nullptr) {
    if (header != nullptr) munmap(header, wire::kPage);
    return false;
  }
  g_process.slots = slots;
  g_process.arena = header;
  if (g_process.rings == nullptr) {
    void* kept = calloc(header->slot_count, sizeof(std::atomic<std::byte*>));
    g_process.kept_rings = static_cast<std::atomic<std::byte*>*>(kept);
  }
  return true;
}

bool AskAndMapArena(const char* socket) {
  if (socket == nullptr) return false;
  const ArenaOffer offer = AskForArena(socket);
  g_process.offered_number = offer.pid;
  return MapArena(offer.fd, socket);
}

void FindProgramPath() {
  const ssize_t bytes = readlink("/proc/self/exe", g_program_path, sizeof(g_program_path) - 1);
  g_program_path[bytes > 0 ? bytes : 0] = '\0';
}

// In a forked child the parent's slots belong to the parent; the child claims its own.
void AfterForkInChild() {
  if (g_process.arena == nullptr) return;
  g_process.forks++;
  g_process.number.store(0);
  g_process.offered_number = 0;
  g_process.arena->attached_processes.fetch_add(1);
  ForgetSourceLocks();
  ForgetTapeAfterFork();
}

}  // namespace

Process& ThisProcess() { return g_process; }

wire::ArenaHeader* Arena() { return g_process.arena; }

const char* ProgramPath() { return g_program_path; }

bool Attach() {
  const KeepErrno keep;
  const char* path = getenv(wire::kArenaVariable);
  if (path == nullptr || *path == '\0') return false;
  const char* socket = getenv(wire::kSocketVariable);
  if (!MapArena(OpenArena(), socket) && !AskAndMapArena(socket)) {
    if (socket != nullptr) SendNotAttached(socket);
    return false;
  }
  wire::ArenaHeader& header = *g_process.arena;
  // A child that takes itself for its parent would write into the parent's rings.
  if (pthread_atfork(nullptr, nullptr, AfterForkInChild) != 0) {
    LeaveOut(wire::LeftOut::kProcesses);
    g_process.arena = nullptr;
    return false;
  }
  FindProgramPath();
  if (header.stacks == wire::StackPolicy::kFull) PrepareNativeStacks();
  header.attached_processes.fetch_add(1);
  PrepareSteps(header);
  return true;
}

std::byte* MapRingOf(uint32_t slot) {
  if (g_process.rings != nullptr) {
    return g_process.rings + slot * 2 * g_process.arena->ring_bytes;
  }
  if (RingIsMapped(slot)) {
    if (std::byte* kept = g_process.kept_rings[slot].exchange(nullptr)) {
      g_process.kept_count.fetch_sub(1);
      return kept;
    }
  }
  std::byte* ring = wire::MapRing(*g_process.arena, slot);
  if (ring != nullptr) return ring;
  const int fd = OpenArena();
  if (fd < 0) return nullptr;
  if (IsOurArena(fd)) ring = wire::MapRing(fd, *g_process.arena, slot);
  close(fd);
  return ring;
}

bool RingIsMapped(uint32_t slot) {
  return g_process.rings != nullptr ||
         (g_process.kept_rings != nullptr && g_process.kept_rings[slot].load() != nullptr);
}

void GiveBackRing(uint32_t slot, std::byte* ring) {
  if (g_process.rings != nullptr) return;
  const size_t most = kMostMappedAtOnce / (2 * g_process.arena->ring_bytes);
  if (g_process.kept_rings == nullptr || g_process.kept_count.fetch_add(1) >= most) {
    g_process.kept_count.fetch_sub(1);
  } else {
    // A child that was forked may have its parent's ring of the slot here.
    ring = g_process.kept_rings[slot].exchange(ring);
    if (ring == nullptr) return;
    g_process.kept_count.fetch_sub(1);
  }
  wire::UnmapRing(ring, *g_process.arena);
}

}  // namespace acltape::agent
