// Finds the arena that the collector announced and maps it into this process.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder/agent/native_stack.h"
#include "recorder/agent/process.h"
#include "recorder/agent/source_line.h"
#include "recorder/agent/window.h"

namespace acltape::agent {

namespace {

Process g_process;

// A new descriptor of the arena that the environment names; negative when there is none.
int OpenArena() {
  const char* path = getenv(wire::kArenaVariable);
  return path != nullptr && *path != '\0' ? open(path, O_RDWR | O_CLOEXEC) : -1;
}

wire::ArenaHeader* MapHeader(int fd) {
  void* page = mmap(nullptr, wire::kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return nullptr;
  auto* header = static_cast<wire::ArenaHeader*>(page);
  if (header->magic == wire::kArenaMagic && header->version == wire::kArenaVersion) return header;
  munmap(page, wire::kPage);
  return nullptr;
}

// True when the descriptor is of the arena that this process is attached to.
bool IsOurArena(int fd) {
  wire::ArenaHeader* header = MapHeader(fd);
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

// In a forked child the parent's slots belong to the parent; the child claims its own.
void AfterForkInChild() {
  g_process.forks++;
  g_process.pid = static_cast<uint32_t>(getpid());
  if (g_process.arena != nullptr) g_process.arena->attached_processes.fetch_add(1);
  ForgetSourceLocks();
  ForgetTapeAfterFork();
}

}  // namespace

Process& ThisProcess() { return g_process; }

wire::ArenaHeader* Arena() { return g_process.arena; }

bool Attach() {
  const int fd = OpenArena();
  if (fd < 0) return false;
  wire::ArenaHeader* header = MapHeader(fd);
  std::byte* slots = header != nullptr ? MapSlots(fd, *header) : nullptr;
  close(fd);  // wire::MapRing needs none, see Note [No descriptor is kept]
  if (slots == nullptr) {
    if (header != nullptr) munmap(header, wire::kPage);
    return false;
  }
  g_process.slots = slots;
  g_process.pid = static_cast<uint32_t>(getpid());
  if (header->stacks == wire::StackPolicy::kFull) PrepareNativeStacks();
  g_process.arena = header;
  header->attached_processes.fetch_add(1);
  PrepareSteps(*header);
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
