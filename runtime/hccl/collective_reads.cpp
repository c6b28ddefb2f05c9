// Collectives whose ranks read each other's memory (Note [Reading where it lies]).
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "runtime/hccl/collective.h"
#include "runtime/hccl/process.h"
#include "runtime/hccl/reduce.h"

namespace acltape::hccl {
namespace {

// Data of at least so many bytes is read where it lies (Note [Reading where it lies]).
constexpr uint64_t kReadBytes = uint64_t{1} << 20;
// Between two reads a rank looks whether the communicator has failed.
constexpr uint64_t kReadAtOnce = uint64_t{8} << 20;
// A reduction goes through pieces that stay in a cache.
constexpr uint64_t kReducedAtOnce = uint64_t{1} << 20;

}  // namespace

Collective::Piece Collective::WholeShare(uint32_t rank) const {
  const uint64_t each = (call_.count + ranks_ - 1) / ranks_;
  const uint64_t first = std::min(call_.count, rank * each);
  return {first, std::min(each, call_.count - first)};
}

bool Collective::CanBeReadWhereItLies() const {
  // The places of uneven parts are known to their sender alone.
  if (ranks_ == 1 || (facts_.parts && facts_.has_counts)) return false;
  const uint64_t given = BytesGiven(call_, rank_, ranks_);
  const uint64_t taken = BytesTaken(call_, rank_, ranks_);
  if (std::max(given, taken) < kReadBytes) return false;
  // The data taken must not lie over data that others still read from this rank. In place it lies
  // over the part that no other rank reads.
  const auto send = reinterpret_cast<uintptr_t>(call_.send);
  const auto recv = reinterpret_cast<uintptr_t>(call_.recv);
  const bool apart = given == 0 || taken == 0 || send + given <= recv || recv + taken <= send;
  const bool all_to_all = facts_.parts && facts_.gives == Who::kAll && !facts_.reduces;
  const bool in_place = facts_.parts ? call_.recv == Given(rank_) : call_.send == Taken(rank_);
  return (apart || (in_place && !all_to_all)) && communicator_.ReadsOthers();
}

bool Collective::Read(uint32_t rank, uint64_t from, void* to, uint64_t bytes) {
  Meeting& meeting = communicator_.meeting();
  auto* next = static_cast<char*>(to);
  while (bytes != 0) {
    if (meeting.failure() != HCCL_SUCCESS) return false;
    const uint64_t now = std::min(bytes, kReadAtOnce);
    const int error = ReadMemory(meeting.cell(rank).process.load(), from, next, now);
    if (error == ESRCH) {
      gone_ = rank;
      return false;
    }
    if (error != 0) {
      meeting.Fail(HCCL_E_MEMORY, "rank " + std::to_string(rank_) +
                                      " could not read the memory of rank " + std::to_string(rank) +
                                      " in " + Describe() + " of communicator \"" +
                                      communicator_.name() + "\": " + std::strerror(error));
      return false;
    }
    next += now;
    from += now;
    bytes -= now;
  }
  return true;
}

bool Collective::ReadOthers() {
  if (gone_) return false;
  Meeting& meeting = communicator_.meeting();
  const auto* send = static_cast<const char*>(call_.send);
  auto* recv = static_cast<char*>(call_.recv);
  if (in_two_steps_ && step_ == 0) {
    const Piece piece = WholeShare(rank_);
    const uint64_t offset = piece.first * element_;
    if (!ReduceOthers(recv + offset, send + offset, offset, piece.count)) return false;
  } else if (in_two_steps_) {
    for (uint32_t i = 1; i < ranks_; ++i) {
      const uint32_t from = (rank_ + i) % ranks_;
      const Piece piece = WholeShare(from);
      const uint64_t offset = piece.first * element_;
      if (!Read(from, Said(from).recv + offset, recv + offset, piece.count * element_))
        return false;
    }
  } else if (Takes(rank_) && facts_.reduces) {
    const uint64_t offset = facts_.parts ? rank_ * call_.count * element_ : 0;
    if (!ReduceOthers(recv, send + offset, offset, call_.count)) return false;
  } else if (Takes(rank_)) {
    for (uint32_t i = 0; i < ranks_; ++i) {
      const uint32_t from = (rank_ + i) % ranks_;
      if (!Gives(from)) continue;
      const uint64_t bytes = ElementsFrom(from) * element_;
      const uint64_t offset = facts_.parts ? rank_ * call_.count * element_ : 0;
      if (from != rank_) {
        if (!Read(from, Said(from).send + offset, Taken(from), bytes)) return false;
      } else if (Taken(from) != send + offset) {
        std::memmove(Taken(from), send + offset, bytes);
      }
    }
  }
  const uint64_t step = first_step_ + step_;
  meeting.cell(rank_).filled.store(step + 1);
  meeting.cell(rank_).taken.store(step + 1);
  meeting.RingOthers(rank_);
  return true;
}

bool Collective::OthersHaveRead() const {
  const uint64_t step = first_step_ + step_;
  for (uint32_t other = 0; other < ranks_; ++other) {
    if (other != rank_ && communicator_.meeting().cell(other).filled.load() <= step) return false;
  }
  return true;
}

bool Collective::ReduceOthers(char* to, const char* own, uint64_t offset, uint64_t elements) {
  const uint64_t most = kReducedAtOnce / element_;
  const std::unique_ptr<char[]> sum(new char[kReducedAtOnce]), next(new char[kReducedAtOnce]);
  for (uint64_t done = 0; done < elements; done += most) {
    const uint64_t count = std::min(most, elements - done);
    const uint64_t begin = done * element_;
    const auto operand = [&](uint32_t rank, char* scratch) -> const char* {
      if (rank == rank_) return own + begin;
      return Read(rank, Said(rank).send + offset + begin, scratch, count * element_) ? scratch
                                                                                     : nullptr;
    };
    const char* reduced = operand(0, sum.get());
    for (uint32_t rank = 1; rank < ranks_; ++rank) {
      const char* other = operand(rank, next.get());
      if (reduced == nullptr || other == nullptr) return false;
      char* result = rank + 1 == ranks_ ? to + begin : sum.get();
      Reduce(call_.dtype, call_.op, result, reduced, other, count);
      reduced = result;
    }
  }
  return true;
}

}  // namespace acltape::hccl
