// How a rank sleeps until another one rings.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "runtime/hccl/meeting.h"

namespace acltape::hccl {

// A sleeping rank looks up after so long, for what nobody rings: aborts, ends of processes, time.
inline constexpr int64_t kSliceNs = 20'000'000;

inline int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Sleeps unless something has rung after the bell was read as `heard`. May return early.
inline void SleepUntilRung(const Meeting& meeting, uint32_t rank, uint32_t heard,
                           int64_t timeout_ns) {
  RankCell& cell = meeting.cell(rank);
  const timespec limit{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  cell.sleepers.fetch_add(1);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&cell.bell), FUTEX_WAIT, heard, &limit, nullptr,
          0);
  cell.sleepers.fetch_sub(1);
}

}  // namespace acltape::hccl
