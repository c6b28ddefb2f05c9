#include "recorder/collector/arena_owner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "recorder/wire/clock.h"
#include "recorder/wire/process_number.h"

namespace acltape::collector {
namespace {

struct ClockPair {
  uint64_t tick;
  uint64_t ns;
};

// A tick and a time read at the same moment: of several tries the one least interrupted.
ClockPair ReadBoth() {
  ClockPair best{};
  uint64_t best_width = UINT64_MAX;
  for (int round = 0; round < 50; ++round) {
    const uint64_t before = wire::Tick();
    const uint64_t ns = wire::MonotonicNs();
    const uint64_t after = wire::Tick();
    if (after - before < best_width) {
      best_width = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

}  // namespace

ArenaOwner::ArenaOwner(const ArenaOptions& options) {
  const uint32_t slots = std::clamp<uint32_t>(options.slots, 1, 4096);
  const uint64_t ring_bytes =
      std::bit_ceil(std::clamp<uint64_t>(options.ring_bytes, 64 << 10, uint64_t{4} << 30));
  fd_ = memfd_create("acltape", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const size_t bytes = wire::ArenaBytes(slots, ring_bytes);
  // No process that gets the arena can shorten it, which would end all others that use it.
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const int number = errno;
    if (fd_ >= 0) close(fd_);
    throw Error(ErrorKind::kDevice, fmt::format("cannot create {} bytes of shared memory ({})",
                                                bytes, std::strerror(number)));
  }
  mapped_bytes_ = wire::SlotOffset(slots);
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) {
    const int number = errno;
    close(fd_);
    throw Error(ErrorKind::kDevice,
                fmt::format("cannot map the shared memory ({})", std::strerror(number)));
  }
  memory_ = static_cast<std::byte*>(memory);
  for (uint32_t index = 0; index < slots; ++index) {
    new (memory_ + wire::SlotOffset(index)) wire::Slot{};
  }
  header_ = new (memory_) wire::ArenaHeader{};
  header_->version = wire::kArenaVersion;
  header_->slot_count = slots;
  header_->ring_bytes = ring_bytes;
  header_->levels = options.levels;
  header_->payload = options.payload;
  header_->record_composites = options.composites ? 1 : 0;
  header_->record_modules = options.modules ? 1 : 0;
  header_->stacks = options.stacks;
  header_->window.store(options.open ? 1 : 0);
  options.steps_from.copy(header_->step_name, wire::kStepNameBytes - 1);
  header_->limit_size = options.limit_size ? 1 : 0;
  if (options.steps) {
    header_->choose_steps = 1;
    header_->first_step = options.steps->first;
    header_->last_step = options.steps->second;
  }
  header_->device_times = options.device_times ? 1 : 0;
  header_->patience_ns = options.patience_ns;
  const auto own_pid = static_cast<uint32_t>(getpid());
  header_->collector_pid.store(own_pid);
  const bool proc_is_own = wire::NumberInProc() == own_pid;
  header_->pid_namespace = proc_is_own ? wire::PidNamespace() : 0;
  header_->proc_device = wire::ProcDevice();
  header_->next_call_id.store(1);
  header_->next_buffer_id.store(1);
  header_->next_handle_id.store(1);
  Calibrate();
  header_->magic = wire::kArenaMagic;
}

ArenaOwner::~ArenaOwner() {
  munmap(memory_, mapped_bytes_);
  close(fd_);
}

void ArenaOwner::Calibrate() {
  // Over 20 ms the reading error of some 20 ns is one part in a million.
  const ClockPair first = ReadBoth();
  usleep(20000);
  const ClockPair second = ReadBoth();
  clock_.base_tick = second.tick;
  clock_.base_ns = static_cast<int64_t>(second.ns);
  clock_.ns_per_tick = second.tick == first.tick
                           ? 1.0
                           : static_cast<double>(second.ns - first.ns) /
                                 static_cast<double>(second.tick - first.tick);
  header_->base_tick = clock_.base_tick;
  header_->base_ns = second.ns;
  header_->ns_per_tick = clock_.ns_per_tick;
}

wire::Slot& ArenaOwner::slot(uint32_t index) {
  return *std::launder(reinterpret_cast<wire::Slot*>(memory_ + wire::SlotOffset(index)));
}

std::string ArenaOwner::path() const {
  return fmt::format("/proc/{}/fd/{}", wire::NumberInProc(), fd_);
}

void ArenaOwner::ReleasePages(uint32_t slot, uint64_t from) {
  if (from >= header_->ring_bytes) return;
  // A system that cannot do this keeps the pages, and the next thread uses them again.
  static_cast<void>(fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                              static_cast<off_t>(wire::RingOffset(*header_, slot) + from),
                              static_cast<off_t>(header_->ring_bytes - from)));
}

}  // namespace acltape::collector
