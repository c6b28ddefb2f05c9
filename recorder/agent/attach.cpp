// Finds the arena that the collector announced and maps it into this process.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/agent/arena_request.h"
#include "recorder/agent/native_stack.h"
#include "recorder/agent/process.h"
#include "recorder/agent/source_line.h"
#include "recorder/agent/window.h"
#include "recorder/wire/arena_request.h"

namespace acltape::agent {

namespace {

Process g_process;

// A new descriptor of what lies at the arena's path; negative when it cannot be opened.
int OpenArena() {
  const char* path = getenv(wire::kArenaVariable);
  if (path == nullptr || *path == '\0') return -1;
  return open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

// The header of the arena behind `fd`. Elsewhere the same path can lead to any file, also to
// another recording's arena, which has another socket.
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
  const bool ours = header->collector_pid == g_process.arena->collector_pid;
  munmap(header, wire::kPage);
  return ours;
}

std::byte* MapSlots(int fd, const wire::ArenaHeader& header) {
  const size_t bytes = wire::kPage * size_t{header.slot_count};
  void* slots = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, wire::kPage);
  return slots != MAP_FAILED ? static_cast<std::byte*>(slots) : nullptr;
}

// Maps header and slots of the arena behind `fd` and closes it: wire::MapRing needs none, see
// Note [No descriptor is kept].
bool MapArena(int fd, const char* socket) {
  if (fd < 0) return false;
  wire::ArenaHeader* header = MapHeader(fd, socket);
  std::byte* slots = header != nullptr ? MapSlots(fd, *header) : nullptr;
  close(fd);
  if (slots == nullptr) {
    if (header != nullptr) munmap(header, wire::kPage);
    return false;
  }
  g_process.slots = slots;
  g_process.arena = header;
  return true;
}

bool AskAndMapArena(const char* socket) {
  if (socket == nullptr) return false;
  const ArenaOffer offer = AskForArena(socket);
  g_process.offered_number = offer.pid;
  return MapArena(offer.fd, socket);
}

// In a forked child the parent's slots belong to the parent; the child claims its own.
void AfterForkInChild() {
  g_process.forks++;
  g_process.number.store(0);
  g_process.offered_number = 0;
  if (g_process.arena != nullptr) g_process.arena->attached_processes.fetch_add(1);
  ForgetSourceLocks();
  ForgetTapeAfterFork();
}

}  // namespace

Process& ThisProcess() { return g_process; }

wire::ArenaHeader* Arena() { return g_process.arena; }

bool Attach() {
  const char* path = getenv(wire::kArenaVariable);
  if (path == nullptr || *path == '\0') return false;
  const char* socket = getenv(wire::kSocketVariable);
  if (!MapArena(OpenArena(), socket) && !AskAndMapArena(socket)) return false;
  wire::ArenaHeader& header = *g_process.arena;
  if (header.stacks == wire::StackPolicy::kFull) PrepareNativeStacks();
  header.attached_processes.fetch_add(1);
  PrepareSteps(header);
  pthread_atfork(nullptr, nullptr, AfterForkInChild);
  return true;
}

std::byte* MapRingOf(uint32_t slot) {
  std::byte* ring = wire::MapRing(*g_process.arena, slot);
  if (ring != nullptr) return ring;
  const int fd = OpenArena();
  if (fd < 0) return nullptr;
  if (IsOurArena(fd)) ring = wire::MapRing(fd, *g_process.arena, slot);
  close(fd);
  return ring;
}

}  // namespace acltape::agent
